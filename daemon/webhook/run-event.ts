import type { EventRecord, Stage, TargetResult } from '../../shared/api.ts'
import { DoorwardError, nameOf } from '../../shared/errors.ts'
import type { Answer } from '../agents/answer.ts'
import type { Invoke } from '../agents/invoke.ts'
import type { Deliver } from '../deliver/deliver.ts'
import { type EventStore, newEventId } from '../events.ts'
import type { Log } from '../log.ts'
import type { Queue } from '../queue.ts'
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
}

/** Puts an event into the queue and returns its id. Throws `queue-full` or `stopping`. */
export type RunEvent = (queue: Queue, events: EventStore, event: AcceptedEvent) => string

type Durations = { queuedMs: number; agentMs?: number; deliverMs?: number }

type Run = {
  readonly id: string
  readonly event: AcceptedEvent
  readonly queuedMs: number
  readonly signal: AbortSignal
  readonly change: (changes: Partial<EventRecord>, result?: string) => void
}

export const createRunEvent = (invoke: Invoke, deliver: Deliver, log: Log): RunEvent => {
  /** Takes one event through its agent to its targets. Never rejects; returns how it ended. */
  const runToEnd = async ({ id, event, queuedMs, signal, change }: Run) => {
    const { webhook, receivedAt, prompt, targets } = event
    const durations: Durations = { queuedMs }
    let stage: Stage = 'agent'
    try {
      change({ state: 'running', attempts: 1, durations: { ...durations } })
      const answer = await timed(
        durations,
        'agentMs',
        invoke(webhook.agentName, webhook.agent, prompt, signal),
      )
      stage = 'deliver'
      change({ ...deliveringChange(answer), durations: { ...durations } }, answer.text)
      const answered = { eventId: id, webhook: webhook.path, receivedAt, text: answer.text }
      const sofar = waitingTargets(targets)
      const changed = (place: number, result: TargetResult) => {
        sofar[place] = result
        if (result.state === 'waiting') change({ targets: [...sofar] })
      }
      const delivery = deliver(targets, answered, { signal, changed })
      const results = await timed(durations, 'deliverMs', delivery)
      return { ...deliveredEnd(results), durations: { ...durations } }
    } catch (error) {
      if (!(error instanceof DoorwardError))
        log.error({ event: id, stage, error: nameOf(error) }, 'internal error')
      return { ...failedEnd(stage, error), durations: { ...durations } }
    }
  }

  return (queue, events, event) => {
    const { webhook, receivedAt, known, prompt, targets } = event
    const id = newEventId()
    const queuedAt = performance.now()
    const change: Run['change'] = (changes, result) =>
      events.update(id, changes, result === undefined ? undefined : { result })

    queue.add({
      agentName: webhook.agentName,
      agentConcurrency: webhook.agent.concurrency,
      bytes: Buffer.byteLength(prompt),
      run: async (signal) => {
        const end = await runToEnd({ id, event, queuedMs: since(queuedAt), signal, change })
        change(end)
        log.info({ event: id, webhook: webhook.path, state: end.state, stage: end.stage }, 'event')
      },
      drop: () => {
        change(droppedEnd)
        const { deliveryId, size } = known
        const details = { event: id, webhook: webhook.path, deliveryId, size, receivedAt }
        log.warn(details, 'event dropped')
      },
    })
    // There was room. The job starts in a later turn, when the event is there.
    events.add(receivedAt, { ...known, state: 'accepted', ...waitingFor(targets) }, id)
    events.update(id, { state: 'queued' }, { prompt })
    return id
  }
}

const waitingFor = (targets: readonly ReadyTarget[]): Partial<EventRecord> => ({
  ...(targets.length > 0 && { target: targets.map(({ text }) => text).join(', ') }),
  targets: waitingTargets(targets),
})

const waitingTargets = (targets: readonly ReadyTarget[]): TargetResult[] =>
  targets.map(({ text }) => ({ target: text, state: 'waiting', attempts: 0 }))

const deliveringChange = ({ text, cut }: Answer): Partial<EventRecord> => ({
  state: 'delivering',
  resultPreview: previewOf(text),
  ...(cut && { detail: 'the answer was longer than output_limit and is cut' }),
})

const deliveredEnd = (targets: TargetResult[]): Partial<EventRecord> => {
  const failed = targets.find(({ state }) => state === 'failed')
  if (!failed) return { state: 'done', targets }
  const detail = `${failed.target}: ${failed.detail ?? 'not delivered'}`
  const { code = 'delivery-failed' } = failed
  return { state: 'failed', stage: 'deliver', code, detail, targets }
}

const failedEnd = (stage: Stage, error: unknown): Partial<EventRecord> => {
  const known = error instanceof DoorwardError ? error : undefined
  const detail = known?.localDetail ?? known?.message ?? 'something went wrong inside the daemon'
  return { state: 'failed', stage, code: known?.code ?? 'internal', detail }
}

const droppedEnd: Partial<EventRecord> = {
  state: 'dropped',
  stage: 'queue',
  code: 'event-dropped',
  detail: 'the daemon stopped before its turn came: deliver it again from the sender',
}

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
