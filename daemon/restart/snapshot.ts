import type { EventRecord } from '../../shared/api/api.ts'
import type { Session } from '../sessions/sessions.ts'
import type { UnwrittenEvents } from '../history/history.ts'
import type { EventsSnapshot } from '../events/event-store.ts'
import type { Detail } from '../events/event-record.ts'
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
  /** An older version has none of these. */
  readonly eventNames?: ReturnType<Memory['eventNames']['snapshot']>
  readonly budgets?: ReturnType<Memory['budgets']['snapshot']>
  readonly runs?: Memory['runs']
  readonly questions?: ReturnType<Memory['questions']['all']>
  readonly sessions?: ReturnType<Memory['sessions']['snapshot']>
  readonly browsers?: ReturnType<Memory['browsers']['snapshot']>
  readonly history?: UnwrittenEvents
  /** The events that wait for an agent, in order. */
  readonly queued: readonly QueuedCopy[]
}

/** What deliveries to targets remember, at most 1,000 entries each. */
type DeliveryState = {
  readonly progress: ReturnType<Memory['progress']['snapshot']>
  readonly messages: ReturnType<Memory['messages']['snapshot']>
}

type QueuedCopy = Pick<Job, 'id' | 'onlyDelivers'>

/** How an event ended in the old process, with what its delivery has left behind. */
export type EndedEvent = {
  readonly record: EventRecord
  readonly detail: Detail
  /** For a retry. */
  readonly accepted: EventOnWire | undefined
  /** The conversation as its run has left it. */
  readonly session?: Session | undefined
  /** Of an event that ran. */
  readonly delivered: DeliveryState | undefined
}

export const takeSnapshot = (
  memory: Memory,
  queued: readonly Job[],
  unwritten: UnwrittenEvents = [],
): Snapshot => {
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
    eventNames: memory.eventNames.snapshot(now),
    rateLimits: memory.rateLimits.snapshot(now),
    budgets: memory.budgets.snapshot(now),
    progress: memory.progress.snapshot(),
    messages: memory.messages.snapshot(),
    runs: memory.runs,
    questions: memory.questions.all(),
    sessions: memory.sessions.snapshot(),
    browsers: memory.browsers.snapshot(),
    history: unwritten,
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
  memory.eventNames.restore(snapshot.eventNames ?? [], now)
  memory.rateLimits.restore(snapshot.rateLimits, now)
  memory.budgets.restore(snapshot.budgets ?? [], now)
  memory.runs.madeAt = snapshot.runs?.madeAt
  memory.questions.restore(snapshot.questions ?? [])
  memory.sessions.restore(snapshot.sessions ?? [])
  memory.browsers.restore(snapshot.browsers ?? [])
  memory.progress.restore(snapshot.progress)
  memory.messages.restore(snapshot.messages)
}

export const copyEnded = (
  { events, kept, progress, messages, sessions }: Memory,
  { id }: EventRecord,
  accepted = kept.get(id),
): EndedEvent | undefined => {
  const record = events.plain(id)
  if (!record) return undefined
  return {
    record,
    detail: events.texts(id),
    accepted: accepted && toWire(accepted),
    session: sessions.leftBy(id),
    // Any sender can cause a refusal, and these are long.
    delivered: hasRun(record.state)
      ? { progress: progress.snapshot(), messages: messages.snapshot() }
      : undefined,
  }
}

const hasRun = (state: EventRecord['state']): boolean =>
  state === 'done' || state === 'failed' || state === 'dropped'

/** Adds or ends the event of the old process. */
export const restoreEnded = (memory: Memory, ended: EndedEvent): void => {
  const { events, deliveries, progress, messages } = memory
  const { record, detail, accepted, delivered } = ended
  const { id, state } = record
  const delivery = memory.kept.get(id)?.delivery ?? accepted?.delivery
  // Both steps, as each is counted.
  if (hasRun(state) && !events.record(id)) events.put({ ...record, state: 'accepted' })
  if (delivered) {
    progress.restore(delivered.progress)
    messages.restore(delivered.messages)
  }
  events.put(record, detail)
  if (accepted) restoreAccepted(memory, id, accepted)
  if (ended.session) memory.sessions.restore([ended.session])
  // The sender may deliver it again.
  if (delivery && (state === 'failed' || state === 'dropped')) deliveries.forget(delivery, id)
}

const restoreAccepted = (
  { events, kept, groups, sessions }: Memory,
  id: string,
  copy: EventOnWire,
): void => {
  const prompt = events.get(id)?.prompt
  if (prompt === undefined) return
  kept.keep(id, fromWire(copy, prompt))
  const { coalesced, session } = copy
  const state = events.record(id)?.state
  if (coalesced && (state === 'running' || state === 'delivering'))
    groups.noteRunning(id, coalesced.group, coalesced)
  if (session && state === 'running') sessions.enter(session.name, id)
}
