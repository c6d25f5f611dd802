import type { EventDetail, EventRecord, EventState } from '../../shared/api.ts'
import { createById } from '../by-id.ts'
import { type Detail, type Detailed, createEventDetails } from './event-texts.ts'
import {
  changedRecord,
  type EventChange,
  type EventChanges,
  type EventFields,
  type FullRecord,
  fullRecord,
  isFinal,
  newEventId,
  newRecord,
  plainRecord,
} from './event-record.ts'
import { type Fifo, createFifo } from '../util/fifo.ts'
import { randomHex } from '../random-hex.ts'
import { createRecentChanges } from './replay-buffer.ts'

/** Which ring an event is kept in: a flood of one sort cannot push out another. */
type Ring = 'ran' | 'passed' | 'refused' | 'own'

type Stored = Detailed & {
  record: FullRecord
  readonly ring: Ring
  /** The number of its last change. */
  sequence: number
}

/** All that a store holds, for another one to go on with; nothing in it changes any more. */
export type EventsCopy = {
  readonly era: string
  readonly sequence: number
  /** In the order they came. */
  readonly events: readonly (Detail & {
    readonly record: EventRecord
    readonly sequence?: number
  })[]
  /** Ids in the order they ended. */
  readonly finished: readonly string[]
  readonly changes: readonly EventChange[]
  /** Somebody has followed, who may come back. */
  readonly keepsChanges?: boolean
}

/** `detail` is what has been learned with this change. */
export type EventListener = (change: EventChange, detail?: Detail) => void

export type EventFilter = {
  readonly limit: number
  readonly webhook?: string
  readonly state?: string
  readonly kind?: EventRecord['kind']
}

/** Everything known of what happened, in memory only. */
export type EventStore = {
  /** Under an id of its own, or one that `newEventId` made before. */
  readonly add: (receivedAt: Date, fields: EventFields, id?: string) => EventRecord
  readonly update: (id: string, changes: EventChanges, detail?: Detail) => void
  readonly list: (filter: EventFilter) => EventRecord[]
  /** What failed or was dropped, the last to end first. Looks through no others, however many there are. */
  readonly failures: (limit: number) => EventRecord[]
  /** What an agent ran for, or was dropped, that ended last. */
  readonly lastRun: () => EventRecord | undefined
  readonly get: (id: string) => EventDetail | undefined
  /** The event without its prompt and answer. */
  readonly record: (id: string) => EventRecord | undefined
  /** Takes over an event as another store has it, whether it is known here or not. */
  readonly put: (record: EventRecord, detail?: Detail) => void
  /** Calls back at each change until the returned function is called. */
  readonly follow: (listener: EventListener) => () => void
  /** Whose numbers its changes have: random for a new store, and that of the one it goes on with. */
  readonly era: () => string
  /** From now on each change is kept for a while, for who follows and comes back; of before, the last of each event. */
  readonly keepChanges: () => void
  /** The changes after this one that are kept. */
  readonly since: (sequence: number) => readonly EventChange[]
  /** Calls back with the id of each event whose prompt and answer are let go. */
  readonly onForget: (listener: (id: string) => void) => void
  /** How many finished events of each sort are kept from now on. */
  readonly resize: (keep: number) => void
  readonly copy: () => EventsCopy
  /** Goes on where another store was, with its numbers; for a store that has nothing yet. */
  readonly restore: (copy: EventsCopy) => void
}

/** Events from before changes were kept: with details of 8 KB each, no more than a client may leave unread. */
const mostBefore = 250

/**
 * Keeps the newest `keep` events of each sort, and every event that is not finished. Prompts and
 * answers of finished events are kept under a limit of their own, the oldest are let go first.
 */
export const createEventStore = (initialKeep: number): EventStore => {
  let keep = initialKeep
  const events = createById<Stored>()
  const finished: Record<Ring, Fifo<string>> = {
    ran: createFifo(),
    passed: createFifo(),
    refused: createFifo(),
    own: createFifo(),
  }
  /** Those of them that ran and failed or were dropped. */
  const failed = createFifo<string>()
  const changes = createRecentChanges()
  const listeners = new Set<EventListener>()
  const forgetListeners = new Set<(id: string) => void>()
  const details = createEventDetails<Stored>(({ record }) => {
    for (const listener of forgetListeners) listener(record.id)
  })
  let era = randomHex(6)
  let sequence = 0

  const publish = (stored: Stored, before: EventState | undefined, detail?: Detail) => {
    sequence += 1
    stored.sequence = sequence
    const change = { sequence, record: stored.record, before }
    changes.add(change)
    for (const listener of listeners) listener(change, detail)
  }
  const finish = (stored: Stored) => {
    const ring = finished[stored.ring]
    ring.add(stored.record.id)
    if (stored.ring === 'ran') {
      details.finished(stored)
      if (stored.record.state !== 'done') failed.add(stored.record.id)
    }
    shorten(ring)
  }
  const shorten = (ring: Fifo<string>) => {
    while (ring.size() > keep) {
      const oldest = ring.shift()
      // Both are in the order in which events ended.
      if (failed.first() === oldest) failed.shift()
      const gone = oldest === undefined ? undefined : events.get(oldest)
      if (!gone) continue
      details.forget(gone)
      events.delete(gone.record.id)
    }
  }
  /** An event that is tried again is kept until it is finished again. */
  const reopen = (stored: Stored) => {
    finished[stored.ring].remove(stored.record.id)
    details.reopened(stored)
    failed.remove(stored.record.id)
  }

  const insert = (record: FullRecord): Stored => {
    const ring = getRing(record)
    const stored: Stored = { record, ring, sequence: 0, prompt: undefined, result: undefined }
    events.set(record.id, stored)
    return stored
  }
  const replace = (stored: Stored, record: FullRecord, detail?: Detail) => {
    const before = stored.record.state
    const wasFinal = isFinal(before)
    stored.record = record
    if (detail) details.set(stored, detail)
    const isNowFinal = isFinal(record.state)
    if (!wasFinal && isNowFinal) finish(stored)
    if (wasFinal && !isNowFinal) reopen(stored)
    publish(stored, before, detail)
  }

  return {
    add: (receivedAt, fields, id = newEventId()) => {
      const record = newRecord(id, receivedAt, fields)
      const stored = insert(record)
      if (isFinal(record.state)) finish(stored)
      publish(stored, undefined)
      return record
    },
    update: (id, update, detail) => {
      const stored = events.get(id)
      if (stored) replace(stored, changedRecord(stored.record, update), detail)
    },
    put: (record, detail) => {
      const known = events.get(record.id)
      const full = fullRecord(record)
      if (known) return replace(known, full, detail)
      const stored = insert(full)
      if (detail) details.set(stored, detail)
      if (isFinal(record.state)) finish(stored)
      publish(stored, undefined, detail)
    },
    list: ({ limit, webhook, state, kind }) => {
      const found: FullRecord[] = []
      for (const { record } of events.values()) {
        if (webhook !== undefined && record.webhook !== webhook) continue
        if (state !== undefined && record.state !== state) continue
        if (kind !== undefined && record.kind !== kind) continue
        found.push(record)
        // The newest come last; no more of the others is held than twice what is asked for.
        if (found.length > limit * 2) found.splice(0, limit)
      }
      return found.slice(-limit).toReversed().map(plainRecord)
    },
    failures: (limit) =>
      failed
        .values()
        .slice(-limit)
        .toReversed()
        .flatMap((id) => events.get(id)?.record ?? [])
        .map(plainRecord),
    lastRun: () => {
      const id = finished.ran.last()
      const stored = id === undefined ? undefined : events.get(id)
      return stored && plainRecord(stored.record)
    },
    get: (id) => {
      const stored = events.get(id)
      if (!stored) return undefined
      return { ...plainRecord(stored.record), ...details.of(stored) }
    },
    record: (id) => events.get(id)?.record,
    follow: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    era: () => era,
    keepChanges: () => {
      if (changes.isKeeping()) return
      const inOrder = events.values().toSorted((a, b) => a.sequence - b.sequence)
      changes.keep(inOrder.slice(-mostBefore).map(({ sequence, record }) => ({ sequence, record })))
    },
    since: changes.since,
    onForget: (listener) => void forgetListeners.add(listener),
    resize: (newKeep) => {
      keep = newKeep
      for (const ring of Object.values(finished)) shorten(ring)
    },
    copy: () => ({
      era,
      sequence,
      events: events.values().map((stored) => ({
        record: stored.record,
        sequence: stored.sequence,
        ...details.of(stored),
      })),
      finished: Object.values(finished).flatMap((ring) => ring.values()),
      changes: changes.all(),
      keepsChanges: changes.isKeeping(),
    }),
    restore: (copy) => {
      ;({ era, sequence } = copy)
      if (copy.keepsChanges ?? copy.changes.length > 0) changes.keep([])
      for (const change of copy.changes) changes.add(change)
      for (const { record, sequence: last = 0, ...detail } of copy.events) {
        const stored = insert(fullRecord(record))
        stored.sequence = last
        details.set(stored, detail)
      }
      for (const id of copy.finished) {
        const stored = events.get(id)
        if (stored) finish(stored)
      }
    },
  }
}

/** Of their own: logins, tokens that were given away, and what the daemon did. */
const getRing = ({ kind, state }: EventRecord): Ring => {
  if (kind !== 'webhook') return 'own'
  if (state === 'rejected') return 'refused'
  return state === 'filtered' || state === 'duplicate' ? 'passed' : 'ran'
}
