/*
 * Apart from the schemas of the API: the tray does without zod.
 */

/** How far an event has come (contract section 3). */
export const eventStates = [
  'accepted',
  'queued',
  'running',
  'delivering',
  'done',
  'filtered',
  'duplicate',
  'rejected',
  'failed',
  'dropped',
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
