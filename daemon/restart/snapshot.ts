import type { EventRecord } from '../../shared/api.ts'
import type { ResolvedTarget } from '../delivery/sender.ts'
import type { EventsSnapshot } from '../events/event-store.ts'
import type { Detail } from '../events/event-texts.ts'
import { isFinal } from '../events/event-record.ts'
import type { Job } from '../queue/queue.ts'
import type { Memory } from '../state.ts'
import type { AcceptedEvent } from '../webhook/events/accepted-event.ts'
import { copyError, type ErrorCopy, toError } from './error-copy.ts'

/*
 * What one daemon knows, in a form that another process can go on with. Times of `performance.now()` mean
 * nothing there, so stores that keep such times pass on ages.
 */

export type Snapshot = DeliveryState & {
  readonly events: EventsSnapshot
  readonly counts: ReturnType<Memory['counts']['snapshot']>
  readonly kept: readonly (readonly [id: string, event: AcceptedCopy])[]
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

/** An accepted event but its prompt, which the event store has; keys of signatures stay behind. */
export type AcceptedCopy = Omit<AcceptedEvent, 'prompt' | 'targets'> & {
  readonly targets: readonly TargetCopy[]
}

type TargetCopy =
  | Exclude<ResolvedTarget, { kind: 'invalid' }>
  | { readonly text: string; readonly kind: 'invalid'; readonly error: ErrorCopy }

/** A change of one event after the snapshot, while the old process finishes what it runs. */
export type EventCopy = Partial<DeliveryState> & {
  readonly record: EventRecord
  readonly detail?: Detail | undefined
}

/** An event that was accepted after the snapshot, on a connection from before. */
export type LateEvent = QueuedCopy & {
  readonly record: EventRecord
  readonly detail: Detail
  readonly accepted: AcceptedCopy
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
      return [id, copyAccepted({ ...event, payload })]
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
    accepted: copyAccepted(event),
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

export const copyAccepted = ({
  webhook,
  receivedAt,
  known,
  payload,
  targets,
  updateKey,
  code,
  workspace,
  context,
  coalesced,
  delivery,
}: AcceptedEvent): AcceptedCopy => {
  const { path, agentName, agent, values, deliverEmpty, allowsWorkflows } = webhook
  return {
    webhook: { path, agentName, agent, values, deliverEmpty, allowsWorkflows },
    receivedAt,
    known,
    payload,
    targets: targets.map((target) =>
      target.kind === 'invalid' ? { ...target, error: copyError(target.error) } : target,
    ),
    updateKey,
    code,
    workspace,
    context,
    coalesced,
    delivery,
  }
}

const restoreAccepted = (
  { events, kept, groups }: Memory,
  id: string,
  copy: AcceptedCopy,
): void => {
  const prompt = events.get(id)?.prompt
  if (prompt === undefined) return
  const targets = copy.targets.map((target): ResolvedTarget =>
    target.kind === 'invalid' ? { ...target, error: toError(target.error) } : target,
  )
  kept.keep(id, { ...copy, prompt, targets })
  const { coalesced } = copy
  const state = events.record(id)?.state
  if (coalesced && (state === 'running' || state === 'delivering'))
    groups.noteRunning(id, coalesced.group)
}
