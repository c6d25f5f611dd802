import type { EventRecord, Stage, TargetResult } from '../../shared/api.ts'
import { DoorwardError, nameOf } from '../../shared/errors.ts'
import type { Answer } from '../agents/answer.ts'
import type { Invoke } from '../agents/invoke.ts'
import type { Deliver } from '../deliver/deliver.ts'
import { type EventChanges, type EventStore, newEventId } from '../events.ts'
import type { Log } from '../log.ts'
import type { Queue } from '../queue.ts'
import type { Deliveries, DeliveryKey } from './deliveries.ts'
import type { KeptEvents } from './kept-events.ts'
import { previewOf } from './preview.ts'
import type { ReadyTarget } from './expand-targets.ts'
import type { ReadyWebhook } from './ready-webhook.ts'

/*
 * The second half of the story of a delivery, after the sender has its answer:
 *
 *   queue -> agent -> deliver -> done, or failed with the stage; or dropped when the daemon stops first
 */

/** An event that was accepted: all that is kept of a delivery. The payload itself is gone by now. */
export type AcceptedEvent = {
  readonly webhook: ReadyWebhook
  readonly receivedAt: Date
  readonly known: Pick<EventRecord, 'webhook' | 'agent' | 'size' | 'deliveryId'>
  readonly prompt: string
  readonly targets: readonly ReadyTarget[]
  /** What the sender's repeat of this delivery would have in common with it. */
  readonly delivery?: DeliveryKey | undefined
}

export type RunEvent = {
  /** Puts an event into the queue and returns its id. Throws `queue-full` or `stopping`. */
  readonly accept: (event: AcceptedEvent) => string
  /**
   * Puts an event that has failed into the queue again. With the answer it got only what was not
   * delivered is, else its agent runs. Throws `queue-full` or `stopping`.
   */
  readonly again: (id: string, event: AcceptedEvent, answer?: string) => void
}

export type RunEventParts = {
  readonly invoke: Invoke
  readonly deliver: Deliver
  readonly queue: Queue
  readonly events: EventStore
  readonly deliveries: Deliveries
  /** For a retry. */
  readonly kept: KeptEvents<AcceptedEvent>
  readonly log: Log
}

type Durations = { queuedMs: number; agentMs?: number; deliverMs?: number }

type Run = {
  readonly id: string
  readonly event: AcceptedEvent
  /** Of an earlier run, when only the delivery is to be done. */
  readonly answer: string | undefined
  readonly queuedMs: number
  readonly signal: AbortSignal
  readonly change: (changes: EventChanges, result?: string) => void
}

/** What takes events through agents to targets, under one configuration. */
export const createRunEvent = (parts: RunEventParts): RunEvent => {
  const { invoke, deliver, queue, events, deliveries, kept, log } = parts
  /** Takes one event through its agent to its targets. Never rejects; returns how it ended. */
  const runToEnd = async ({ id, event, answer, queuedMs, signal, change }: Run) => {
    const { webhook, receivedAt, prompt, targets } = event
    const before = events.get(id)
    const attempts = (before?.attempts ?? 0) + 1
    const { agentMs } = before?.durations ?? {}
    const isDelivery = answer !== undefined
    const durations: Durations = {
      queuedMs,
      ...(isDelivery && agentMs !== undefined && { agentMs }),
    }
    let stage: Stage = isDelivery ? 'deliver' : 'agent'
    try {
      if (isDelivery) change({ state: 'delivering', attempts, durations: { ...durations } })
      else change({ state: 'running', attempts, durations: { ...durations } })
      const text = answer ?? (await answerOf())
      stage = 'deliver'
      const earlier = before?.targets ?? []
      const open = targets.filter((_, index) => earlier[index]?.state !== 'done')
      const answered = { eventId: id, webhook: webhook.path, receivedAt, text }
      const results = await timed(durations, 'deliverMs', deliver(open, answered))
      return { ...deliveredEnd(withEarlier(earlier, results)), durations: { ...durations } }
    } catch (error) {
      if (!(error instanceof DoorwardError))
        log.error({ event: id, stage, error: nameOf(error) }, 'internal error')
      return { ...failedEnd(stage, error), durations: { ...durations } }
    }

    async function answerOf(): Promise<string> {
      const question = { prompt, webhook: webhook.path, eventId: id }
      const run = invoke(webhook.agentName, webhook.agent, question, signal)
      const given = await timed(durations, 'agentMs', run)
      change({ ...deliveringChange(given), durations: { ...durations } }, given.text)
      return given.text
    }
  }

  /** Throws when there is no room; else the job starts in a later turn. */
  const enqueue = (id: string, event: AcceptedEvent, answer?: string): void => {
    const { webhook, receivedAt, known, prompt, delivery } = event
    const queuedAt = performance.now()
    let isOver = false
    const change: Run['change'] = (changes, result) => {
      if (!isOver) events.update(id, changes, result === undefined ? undefined : { result })
    }
    const end = (changes: EventChanges) => {
      change(changes)
      isOver = true
      // The sender may bring it again, and it runs then.
      if (changes.state !== 'done' && delivery) deliveries.forget(delivery, id)
    }

    queue.add({
      agentName: webhook.agentName,
      agentConcurrency: webhook.agent.concurrency,
      bytes: Buffer.byteLength(answer ?? prompt),
      run: async (signal) => {
        const queuedMs = since(queuedAt)
        const ended = await runToEnd({ id, event, answer, queuedMs, signal, change })
        if (isOver) return
        end(ended)
        const { state, stage } = ended
        log.info({ event: id, webhook: webhook.path, state, stage }, 'event')
      },
      drop: (when) => {
        end(droppedEnd(when))
        const { deliveryId, size } = known
        const details = { event: id, webhook: webhook.path, deliveryId, size, receivedAt }
        log.warn(details, 'event dropped')
      },
    })
    if (delivery && deliveries.eventOf(delivery, queuedAt) === undefined)
      deliveries.remember(delivery, id, queuedAt)
  }

  return {
    accept: (event) => {
      const { receivedAt, known, prompt, targets } = event
      const id = newEventId()
      enqueue(id, event)
      // There was room. The job starts in a later turn, when the event is there.
      events.add(receivedAt, { ...known, state: 'accepted', ...waitingTargets(targets) }, id)
      events.update(id, { state: 'queued' }, { prompt })
      kept.keep(id, event)
      return id
    },
    again: (id, event, answer) => {
      enqueue(id, event, answer)
      kept.keep(id, event)
      events.update(id, { state: 'queued', stage: undefined, code: undefined, detail: undefined })
    },
  }
}

/** The results in the order of the targets: what was done before stays, the others are tried again. */
const withEarlier = (
  earlier: readonly TargetResult[],
  results: readonly TargetResult[],
): TargetResult[] => {
  const next = results.values()
  if (earlier.length === 0) return [...results]
  return earlier.flatMap((before) => {
    if (before.state === 'done') return [before]
    const { value } = next.next()
    return value ? [{ ...value, attempts: before.attempts + value.attempts }] : [before]
  })
}

const waitingTargets = (targets: readonly ReadyTarget[]): Partial<EventRecord> => ({
  ...(targets.length > 0 && { target: targets.map(({ text }) => text).join(', ') }),
  targets: targets.map(({ text }) => ({ target: text, state: 'waiting', attempts: 0 })),
})

const deliveringChange = ({ text, cut }: Answer): Partial<EventRecord> => ({
  state: 'delivering',
  resultPreview: previewOf(text),
  ...(cut && { detail: 'the answer was longer than output_limit and is cut' }),
})

const deliveredEnd = (targets: TargetResult[]): Partial<EventRecord> => {
  const failed = targets.find(({ state }) => state === 'failed')
  if (!failed) return { state: 'done', targets }
  const detail = `${failed.target}: ${failed.detail ?? 'not delivered'}`
  return { state: 'failed', stage: 'deliver', code: 'delivery-failed', detail, targets }
}

const failedEnd = (stage: Stage, error: unknown): Partial<EventRecord> => {
  const known = error instanceof DoorwardError ? error : undefined
  const detail = known?.localDetail ?? known?.message ?? 'something went wrong inside the daemon'
  return { state: 'failed', stage, code: known?.code ?? 'internal', detail }
}

const droppedEnd = (when: 'waiting' | 'running'): Partial<EventRecord> => ({
  state: 'dropped',
  stage: when === 'waiting' ? 'queue' : 'agent',
  code: 'event-dropped',
  detail: `the daemon stopped ${when === 'waiting' ? 'before its turn came' : 'while it ran'}: deliver it again from the sender`,
})

/** Notes how long something took, also when it fails. */
const timed = async <Value>(
  durations: Durations,
  name: keyof Durations,
  work: Promise<Value>,
): Promise<Value> => {
  const start = performance.now()
  try {
    return await work
  } finally {
    durations[name] = since(start)
  }
}

const since = (start: number): number => Math.round(performance.now() - start)
