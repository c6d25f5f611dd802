import { randomBytes } from 'node:crypto'
import type { EventRecord, EventState } from '../../shared/api.ts'
import { isoTime } from '../iso-time.ts'

/** What is known of an event from its beginning. */
export type EventFields = Partial<Omit<EventRecord, 'id' | 'receivedAt'>> & {
  readonly state: EventState
}

/** A change to undefined takes the field away. */
export type EventChanges = { readonly [Key in keyof EventRecord]?: EventRecord[Key] | undefined }

/** One step of an event. */
export type EventChange = {
  readonly sequence: number
  /** As it is from now on; nothing in it changes any more. */
  readonly record: EventRecord
  /** The state before; undefined for an event that is new, or where it is not known any more. */
  readonly before?: EventState | undefined
}

/**
 * A record that names every field, in one order, whether it is set or not: V8 makes and reads what is all of
 * one shape in a fraction of the time. In JSON there is no difference; others see it by `plainRecord`.
 */
export type FullRecord = { [Key in keyof Required<EventRecord>]: EventRecord[Key] }

/** The first record of an event. */
export const newRecord = (id: string, receivedAt: Date, fields: EventFields): FullRecord => ({
  id,
  kind: fields.kind ?? 'webhook',
  webhook: fields.webhook ?? null,
  receivedAt: isoTime(receivedAt.getTime()),
  state: fields.state,
  stage: fields.stage,
  code: fields.code,
  detail: fields.detail,
  deliveryId: fields.deliveryId,
  signed: fields.signed,
  size: fields.size,
  agent: fields.agent ?? null,
  target: fields.target,
  attempts: fields.attempts ?? 0,
  durations: fields.durations ?? noDurations,
  targets: fields.targets ?? noTargets,
  resultPreview: fields.resultPreview,
})

// Nothing of a record changes: those that have none share these.
const noDurations: EventRecord['durations'] = {}
const noTargets: EventRecord['targets'] = []

/** A record of its own with the same in it. */
export const fullRecord = (record: EventRecord): FullRecord => ({
  id: record.id,
  kind: record.kind,
  webhook: record.webhook,
  receivedAt: record.receivedAt,
  state: record.state,
  stage: record.stage,
  code: record.code,
  detail: record.detail,
  deliveryId: record.deliveryId,
  signed: record.signed,
  size: record.size,
  agent: record.agent,
  target: record.target,
  attempts: record.attempts,
  durations: record.durations,
  targets: record.targets,
  resultPreview: record.resultPreview,
})

/** The record after a change. */
export const changedRecord = (record: FullRecord, changes: EventChanges): FullRecord =>
  Object.assign(fullRecord(record), changes)

/** The record with the fields that are set, and no others. */
export const plainRecord = (record: FullRecord): EventRecord => {
  const plain: EventRecord = { ...record }
  for (const key in plain) {
    const name = key as keyof EventRecord
    if (plain[name] === undefined) delete plain[name]
  }
  return plain
}

/** True once nothing more happens to an event in this state by itself. */
export const isFinal = (state: EventState): boolean => {
  switch (state) {
    case 'done':
    case 'failed':
    case 'dropped':
    case 'filtered':
    case 'duplicate':
    case 'rejected':
      return true
    case 'accepted':
    case 'queued':
    case 'running':
    case 'delivering':
      return false
  }
}

const prefix = 'evt_'
const bytesEach = 9
const made = 256

/** Ids one behind the other, each given out once. */
let ids = Buffer.alloc(0)
let next = 0

/**
 * 72 random bits; what an event is called in lists, links and logs. Many are made at a time, and each is a
 * string of its own: one put together of two pieces is kept, and moved by the garbage collector, as three.
 */
export const newEventId = (): string => {
  if (next === ids.length) {
    const digits = randomBytes(bytesEach * made).toString('hex')
    ids = Buffer.from(
      digits.replaceAll(/.{18}/g, (id) => prefix + id),
      'latin1',
    )
    next = 0
  }
  const start = next
  next += prefix.length + 2 * bytesEach
  return ids.toString('latin1', start, next)
}
