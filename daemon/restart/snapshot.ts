import type { EventRecord } from '../../shared/api.ts'
import type { EventsSnapshot } from '../events/event-store.ts'
import type { Detail } from '../events/event-texts.ts'
import { isFinal } from '../events/event-record.ts'
import type { Job } from '../queue/queue.ts'
import type { Memory } from '../state.ts'
import { type EventOnWire, fromWire, toWire } from '../webhook/events/accepted-event.ts'

/*
 * What one daemon knows, in a form that another process can go on with. Times of `performance.now()` mean
 * nothing there, so stores that keep such times pass on ages.
 */

export type Snapshot = DeliveryState & {
  readonly events: EventsSnapshot
  readonly counts: ReturnType<Memory['counts']['snapshot']>
  readonly kept: readonly (readonly [id: string, event: EventOnWire])[]
  readonly deliveries: ReturnType<Memory['deliveries']['snapshot']>
  readonly rateLimits: ReturnType<Memory['rateLimits']['snapshot']>
  /** An older version has none. */
  readonly budgets?: ReturnType<Memory['budgets']['snapshot']>
  readonly runs?: Memory['runs']
  /** What waits for an agent, in order. */
  readonly queued: readonly QueuedCopy[]
}

/** What deliveries to targets remember, at most 1,000 entries each. */
type DeliveryState = {
  readonly progress: ReturnType<Memory['progress']['snapshot']>
  readonly messages: ReturnType<Memory['messages']['snapshot']>
}

type QueuedCopy = Pick<Job, 'id' | 'onlyDelivers'>

/** A change of one event after the snapshot, while the old process finishes what it runs. */
export type EventCopy = Partial<DeliveryState> & {
  readonly record: EventRecord
  readonly detail?: Detail | undefined
}

/** An event that was accepted after the snapshot, on a connection from before. */
export type LateEvent = QueuedCopy & {
  readonly record: EventRecord
  readonly detail: Detail
  readonly accepted: EventOnWire
}

export const takeSnapshot = (memory: Memory, queued: readonly Job[]): Snapshot => {
  const now = performance.now()
  const isQueued = new Set(queued.map(({ id }) => id))
  return {
    events: memory.events.snapshot(),
    counts: memory.counts.snapshot(),
    kept: memory.kept.entries().map(([id, event]) => {
      // What runs, finishes here.
      const payload = isQueued.has(id) ? event.payload : undefined
      return [id, toWire({ ...event, payload })]
    }),
    deliveries: memory.deliveries.snapshot(now),
    rateLimits: memory.rateLimits.snapshot(now),
    budgets: memory.budgets.snapshot(now),
    progress: memory.progress.snapshot(),
    messages: memory.messages.snapshot(),
    runs: memory.runs,
    queued: queued.map(({ id, onlyDelivers }) => ({ id, onlyDelivers })),
  }
}

/** Fills an empty memory; what waits is queued by the caller. */
export const restoreSnapshot = (memory: Memory, snapshot: Snapshot): void => {
  const now = performance.now()
  memory.events.restore(snapshot.events)
  memory.counts.restore(snapshot.counts)
  for (const [id, event] of snapshot.kept) restoreAccepted(memory, id, event)
  memory.deliveries.restore(snapshot.deliveries, now)
  memory.rateLimits.restore(snapshot.rateLimits, now)
  memory.budgets.restore(snapshot.budgets ?? [], now)
  memory.runs.madeAt = snapshot.runs?.madeAt
  memory.progress.restore(snapshot.progress)
  memory.messages.restore(snapshot.messages)
}

/** The last change of a run brings what its delivery has left behind. */
export const copyEvent = (
  memory: Memory,
  record: EventRecord,
  detail: Detail | undefined,
): EventCopy => {
  const wasRun =
    record.kind === 'webhook' &&
    (record.state === 'done' || memory.kept.get(record.id) !== undefined)
  if (!isFinal(record.state) || !wasRun) return { record, detail }
  return {
    record,
    detail,
    progress: memory.progress.snapshot(),
    messages: memory.messages.snapshot(),
  }
}

export const restoreEvent = (
  { events, kept, deliveries, progress, messages }: Memory,
  copy: EventCopy,
): void => {
  const { record } = copy
  const delivery = kept.get(record.id)?.delivery
  events.put(record, copy.detail)
  if (copy.progress) progress.restore(copy.progress)
  if (copy.messages) messages.restore(copy.messages)
  // The sender may deliver it again.
  if (delivery && isFinal(record.state) && record.state !== 'done' && record.state !== 'filtered')
    deliveries.forget(delivery, record.id)
}

/** Undefined for a job whose event is not in memory, which cannot be. */
export const copyLateEvent = (
  { events, kept }: Memory,
  { id, onlyDelivers }: Job,
): LateEvent | undefined => {
  const record = events.record(id)
  const event = kept.get(id)
  if (!record || !event) return undefined
  return {
    id,
    onlyDelivers,
    record,
    detail: { prompt: event.prompt },
    accepted: toWire(event),
  }
}

export const restoreLateEvent = (memory: Memory, { id, record, ...late }: LateEvent): void => {
  const { events, deliveries } = memory
  // Both steps, as each is counted.
  if (!events.record(id)) events.put({ ...record, state: 'accepted' })
  events.put(record, late.detail)
  restoreAccepted(memory, id, late.accepted)
  if (late.accepted.delivery) deliveries.remember(late.accepted.delivery, id, performance.now())
}

const restoreAccepted = ({ events, kept, groups }: Memory, id: string, copy: EventOnWire): void => {
  const prompt = events.get(id)?.prompt
  if (prompt === undefined) return
  kept.keep(id, fromWire(copy, prompt))
  const { coalesced } = copy
  const state = events.record(id)?.state
  if (coalesced && (state === 'running' || state === 'delivering'))
    groups.noteRunning(id, coalesced.group)
}
