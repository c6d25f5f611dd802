/*
 * In a file of its own: the tray needs these lists, and does without zod, which would take a fifth of its
 * memory.
 */

/** How far an event has come (contract section 3). */
export const eventStates = [
  'accepted',
  'queued',
  'running',
  'waiting',
  'delivering',
  'done',
  'filtered',
  'duplicate',
  'rejected',
  'failed',
  'dropped',
  'declined',
  'expired',
] as const

/** The stages of a delivery, in their order. */
export const stages = [
  'receive',
  'verify',
  'parse',
  'filter',
  'expand',
  'queue',
  'agent',
  'deliver',
] as const
