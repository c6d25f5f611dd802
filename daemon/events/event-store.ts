import { randomBytes } from 'node:crypto'
import type { EventDetail, EventRecord, EventState } from '../../shared/api/api.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { type Fifo, createFifo } from '../util/collections.ts'
import {
  changedRecord,
  type EventChange,
  type EventChanges,
  type EventFields,
  type FullRecord,
  isFinal,
  newEventId,
  newRecord,
  plainRecord,
} from './event-record.ts'
import {
  type Detail,
  EventTexts,
  type EventWithTexts,
  toDetail,
  toWholeDetail,
} from './event-record.ts'

/** The ring that an event is kept in: a flood of one sort cannot push out another. */
type Ring = 'ran' | 'passed' | 'refused' | 'own'

type Stored = EventWithTexts & {
  record: FullRecord
  ring: Ring
  /** The number of its last change. */
  sequence: number
}

/** The whole content of a store, for the store of another process. */
export type EventsSnapshot = {
  readonly era: string
  readonly sequence: number
  /** In the order in which they arrived. */
  readonly events: readonly (Detail & { readonly record: EventRecord; readonly sequence: number })[]
  /** Ids in the order in which they finished. */
  readonly finished: readonly string[]
  readonly changes: readonly EventChange[]
  /** A client has followed, and may reconnect. */
  readonly isRecording: boolean
}

/** `detail` has the texts that came with this change. */
export type EventListener = (change: EventChange, detail?: Detail) => void

export type EventFilter = {
  readonly limit: number
  readonly webhook?: string
  readonly state?: string
  readonly kind?: EventRecord['kind']
}

/** Changes from before recording began; with 8 KB each, no more than a client may leave unread. */
const maxReplayedEvents = 250

/**
 * All events, in memory only. Keeps the newest `keep` of each ring, and every event that is not finished.
 * Prompts and answers of finished events have a limit of their own.
 */
export class EventStore {
  #keep: number
  readonly #events = new Map<string, Stored>()
  readonly #finished: Record<Ring, Fifo<string>> = {
    ran: createFifo(),
    passed: createFifo(),
    refused: createFifo(),
    own: createFifo(),
  }
  /** Those of `ran` that failed or were dropped. */
  readonly #failed = createFifo<string>()
  readonly #replay = new ReplayBuffer()
  readonly #listeners = new Set<EventListener>()
  readonly #forgetListeners = new Set<(id: string) => void>()
  readonly #texts = new EventTexts<Stored>(({ record }) => {
    for (const listener of this.#forgetListeners) listener(record.id)
  })
  #era = randomBytes(6).toString('hex')
  #sequence = 0

  constructor(keep: number) {
    this.#keep = keep
  }

  /** Adds an event under a new id, or under one that `newEventId` made. */
  add(receivedAt: Date, fields: EventFields, id = newEventId()): EventRecord {
    const { record } = this.#insert(newRecord(id, receivedAt.toISOString(), fields))
    return record
  }

  update(id: string, changes: EventChanges, detail?: Detail): void {
    const stored = this.#events.get(id)
    if (stored) this.#replace(stored, changedRecord(stored.record, changes), detail)
  }

  /** Stores the record of an event of another process, known here or not. */
  put(record: EventRecord, detail?: Detail): void {
    const full = newRecord(record.id, record.receivedAt, record)
    const known = this.#events.get(record.id)
    if (known) this.#replace(known, full, detail)
    else this.#insert(full, detail)
  }

  /** The newest first. */
  list({ limit, webhook, state, kind }: EventFilter): EventRecord[] {
    const found: FullRecord[] = []
    for (const { record } of this.#events.values()) {
      if (webhook !== undefined && record.webhook !== webhook) continue
      if (state !== undefined && record.state !== state) continue
      if (kind !== undefined && record.kind !== kind) continue
      found.push(record)
      // The newest come last; never collect more than twice the limit.
      if (found.length > limit * 2) found.splice(0, limit)
    }
    return found.slice(-limit).toReversed().map(plainRecord)
  }

  /** The events that failed or were dropped, the last to finish first. */
  failures(limit: number): EventRecord[] {
    return this.#failed
      .values()
      .slice(-limit)
      .toReversed()
      .flatMap((id) => this.#events.get(id)?.record ?? [])
      .map(plainRecord)
  }

  /** The last event to finish of those that were accepted. */
  lastRun(): EventRecord | undefined {
    const id = this.#finished.ran.last()
    const stored = id === undefined ? undefined : this.#events.get(id)
    return stored && plainRecord(stored.record)
  }

  get(id: string): EventDetail | undefined {
    const stored = this.#events.get(id)
    if (!stored) return undefined
    const { previews, record } = stored
    const shown = previews && { targets: withPreviews(record.targets, previews) }
    return { ...plainRecord(record), ...shown, ...toDetail(stored) }
  }

  /** All texts of an event, for another process. */
  texts(id: string): Detail {
    const stored = this.#events.get(id)
    return stored ? toWholeDetail(stored) : {}
  }

  /**
   * The prompt of the last run with its contexts, as the agent had it. Throws `event-not-found`, or
   * `prompt-not-found` with the reason.
   */
  agentPrompt(id: string): string {
    const stored = this.#events.get(id)
    if (!stored) throw eventNotFound()
    const { record, prompt, asked } = stored
    const whole = record.context === undefined ? prompt : asked
    if (record.promptSize !== undefined && whole !== undefined) return whole
    throw promptNotFound(record)
  }

  /**
   * The id of the one event that is typed so: a whole id, or four or more digits of its beginning, with or without
   * `evt_`. Throws `event-not-found`.
   */
  resolve(typed: string): string {
    const id = this.tryResolve(typed)
    if (id === undefined) throw eventNotFound()
    return id
  }

  /** The same, or undefined. Throws `event-not-found` where several begin so. */
  tryResolve(typed: string): string | undefined {
    if (this.#events.has(typed)) return typed
    const start = `evt_${typed.replace(/^evt_/, '')}`
    const ids =
      start.length < 8 ? [] : [...this.#events.keys()].filter((id) => id.startsWith(start))
    if (ids.length > 1) throw eventNotFound('several events begin so')
    return ids[0]
  }

  /** The event without its prompt and answer. */
  record(id: string): EventRecord | undefined {
    return this.#events.get(id)?.record
  }

  /** The same without the fields that are not set, for another process. */
  plain(id: string): EventRecord | undefined {
    const stored = this.#events.get(id)
    return stored && plainRecord(stored.record)
  }

  /**
   * Removes the texts of a finished event, and what its record has of its payload. Throws `event-not-found`, or
   * `event-not-finished`.
   */
  forget(id: string): EventRecord {
    const stored = this.#events.get(id)
    if (!stored) throw eventNotFound()
    if (!isFinal(stored.record.state))
      throw new DoorwardError('event-not-finished', `it is ${stored.record.state}`, {
        hint: `doorward events cancel ${id}`,
      })
    this.#texts.forget(stored)
    const texts = { subject: undefined, detail: undefined, links: undefined, context: undefined }
    const targets = stored.record.targets.map(({ target, state, attempts }) => ({
      target: target.replace(/:.*$/s, ''),
      state,
      attempts,
    }))
    const more = { resultPreview: undefined, session: undefined, target: undefined, targets }
    this.update(id, { ...texts, ...more })
    return plainRecord(stored.record)
  }

  /** Calls back at each change until the returned function is called. */
  follow(listener: EventListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Calls back with the id of each event whose prompt and answer are removed. */
  onForget(listener: (id: string) => void): void {
    this.#forgetListeners.add(listener)
  }

  /** Names the numbering of changes: random for a new store, and kept over a restart. */
  era(): string {
    return this.#era
  }

  /** Records each change from now on, and the last change of each event before. */
  keepChanges(): void {
    if (this.#replay.isRecording) return
    const inOrder = [...this.#events.values()].toSorted((a, b) => a.sequence - b.sequence)
    const newest = inOrder.slice(-maxReplayedEvents)
    this.#replay.start(newest.map(({ sequence, record }) => ({ sequence, record })))
  }

  /** The recorded changes after this number. */
  since(sequence: number): readonly EventChange[] {
    return this.#replay.since(sequence)
  }

  /** How many finished events of each ring are kept from now on. */
  resize(keep: number): void {
    this.#keep = keep
    for (const ring of Object.values(this.#finished)) this.#shorten(ring)
  }

  snapshot(): EventsSnapshot {
    return {
      era: this.#era,
      sequence: this.#sequence,
      events: [...this.#events.values()].map((stored) => ({
        record: stored.record,
        sequence: stored.sequence,
        ...toWholeDetail(stored),
      })),
      finished: Object.values(this.#finished).flatMap((ring) => ring.values()),
      changes: this.#replay.since(0),
      isRecording: this.#replay.isRecording,
    }
  }

  /** Fills an empty store. */
  restore(snapshot: EventsSnapshot): void {
    this.#era = snapshot.era
    this.#sequence = snapshot.sequence
    if (snapshot.isRecording) this.#replay.start(snapshot.changes)
    for (const { record, sequence, ...detail } of snapshot.events) {
      const stored = this.#store(newRecord(record.id, record.receivedAt, record), detail)
      stored.sequence = sequence
    }
    for (const id of snapshot.finished) {
      const stored = this.#events.get(id)
      if (stored) this.#finish(stored)
    }
  }

  #insert(record: FullRecord, detail?: Detail): Stored {
    const stored = this.#store(record, detail)
    if (isFinal(record.state)) this.#finish(stored)
    this.#publish(stored, undefined, detail)
    return stored
  }

  #store(record: FullRecord, detail?: Detail): Stored {
    const ring = getRing(record)
    const texts = { prompt: undefined, result: undefined, previews: undefined, asked: undefined }
    const stored: Stored = { record, ring, sequence: 0, ...texts }
    this.#events.set(record.id, stored)
    if (detail) this.#texts.set(stored, detail)
    return stored
  }

  #replace(stored: Stored, record: FullRecord, detail?: Detail): void {
    const before = stored.record.state
    const wasFinal = isFinal(before)
    stored.record = record
    if (detail) this.#texts.set(stored, detail)
    const isNowFinal = isFinal(record.state)
    if (!wasFinal && isNowFinal) this.#finish(stored)
    if (wasFinal && !isNowFinal) this.#reopen(stored)
    this.#publish(stored, before, detail)
  }

  #publish(stored: Stored, before: EventState | undefined, detail?: Detail): void {
    this.#sequence += 1
    stored.sequence = this.#sequence
    const change = { sequence: this.#sequence, record: stored.record, before }
    this.#replay.add(change)
    for (const listener of this.#listeners) listener(change, detail)
  }

  #finish(stored: Stored): void {
    const { record } = stored
    // An event that a newer one replaced was accepted, but did not run.
    stored.ring = getRing(record)
    const ring = this.#finished[stored.ring]
    ring.add(record.id)
    this.#texts.finished(stored)
    const hasFailed = record.state === 'failed' || record.state === 'dropped'
    if (stored.ring === 'ran' && hasFailed) this.#failed.add(record.id)
    this.#shorten(ring)
  }

  #shorten(ring: Fifo<string>): void {
    while (ring.size() > this.#keep) {
      const id = ring.shift()
      // Both are in the order in which events finished.
      if (this.#failed.first() === id) this.#failed.shift()
      const oldest = id === undefined ? undefined : this.#events.get(id)
      if (!oldest) continue
      this.#texts.forget(oldest)
      this.#events.delete(oldest.record.id)
    }
  }

  /** A retried event is kept until it finishes again. */
  #reopen(stored: Stored): void {
    this.#finished[stored.ring].remove(stored.record.id)
    this.#texts.reopened(stored)
    this.#failed.remove(stored.record.id)
  }
}

const withPreviews = (targets: EventRecord['targets'], previews: readonly string[]) =>
  targets.map((target, place) => {
    const preview = target.state === 'done' ? undefined : previews[place]
    return preview === undefined ? target : { ...target, preview }
  })

/** For an id that no event in memory has, or more than one. */
export const eventNotFound = (what = 'there is no such event in memory') =>
  new DoorwardError('event-not-found', what, {
    hint: 'doorward events --since 30d lists those of the history too, which can be shown and forgotten, not run',
  })

const promptNotFound = ({ state, promptSize, context, machine }: EventRecord) => {
  const why =
    promptSize === undefined
      ? isFinal(state)
        ? 'no agent was asked'
        : 'its agent has no prompt yet'
      : 'its prompt is no longer in memory'
  const hint =
    context === undefined || machine === undefined
      ? undefined
      : `it was made on the machine ${machine}, which may still have it`
  return new DoorwardError('prompt-not-found', why, { hint })
}

const maxChanges = 1000

/**
 * The newest changes of events, for clients that reconnect with `Last-Event-ID`. Records nothing until
 * the first client follows: the records of every change would outlive all else that a delivery allocates.
 */
class ReplayBuffer {
  readonly #changes: EventChange[] = []
  #isRecording = false

  get isRecording(): boolean {
    return this.#isRecording
  }

  /** Records from now on, after these. */
  start(before: readonly EventChange[]): void {
    this.#isRecording = true
    this.#changes.push(...before)
  }

  add(change: EventChange): void {
    if (!this.#isRecording) return
    this.#changes.push(change)
    if (this.#changes.length > maxChanges)
      this.#changes.splice(0, this.#changes.length - maxChanges / 2)
  }

  /** The changes after this number. */
  since(sequence: number): readonly EventChange[] {
    return this.#changes.filter((change) => change.sequence > sequence)
  }
}

/** `own`: logins, issued tokens, and what the daemon itself did. */
const getRing = ({ kind, state }: EventRecord): Ring => {
  if (kind !== 'webhook') return 'own'
  if (state === 'rejected') return 'refused'
  return state === 'filtered' || state === 'duplicate' ? 'passed' : 'ran'
}
