import type { EventRecord, Stage } from '../../shared/api.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { Invoke } from '../agents/invoke.ts'
import type { Deliver } from '../deliver/deliver.ts'
import type { EventStore } from '../events.ts'
import type { Log } from '../log.ts'
import type { Queue } from '../queue.ts'
import type { ReadyTarget } from './expand-targets.ts'
import { previewOf } from './preview.ts'
import type { ReadyWebhook } from './ready-webhook.ts'

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

/** The second half of the story: queue -> agent -> deliver -> done, or failed with its stage. */
export const createRunEvent =
  (invoke: Invoke, deliver: Deliver, log: Log): RunEvent =>
  (queue, events, { webhook, receivedAt, known, prompt, targets }) => {
    // The id is known once the queue has taken the job, and the job runs in a later turn.
    let id = ''
    const queuedAt = performance.now()
    const result: { state: EventRecord['state']; stage?: Stage } = { state: 'accepted' }
    const change = (changes: Partial<EventRecord>, detail?: { result: string }) => {
      Object.assign(result, changes)
      events.update(id, changes, detail)
    }
    const note = () => {
      const { state, stage } = result
      log.info({ event: id, webhook: webhook.path, state, ...(stage ? { stage } : {}) }, 'event')
    }

    const run = async (signal: AbortSignal) => {
      const durations: { queuedMs: number; agentMs?: number; deliverMs?: number } = {
        queuedMs: since(queuedAt),
      }
      let stage: Stage = 'agent'
      const startedAt = performance.now()
      try {
        change({ state: 'running', attempts: 1, durations: { ...durations } })
        const answer = await invoke(webhook.agent, prompt, signal).finally(() => {
          durations.agentMs = since(startedAt)
        })
        stage = 'deliver'
        const deliveringAt = performance.now()
        change(
          {
            state: 'delivering',
            durations: { ...durations },
            resultPreview: previewOf(answer.text),
            ...(answer.cut ? { detail: 'the answer was longer than output_limit and is cut' } : {}),
          },
          { result: answer.text },
        )
        const delivered = await deliver(targets, {
          eventId: id,
          webhook: webhook.path,
          receivedAt,
          text: answer.text,
        })
        durations.deliverMs = since(deliveringAt)
        const failed = delivered.find(({ state }) => state === 'failed')
        change({
          durations: { ...durations },
          targets: delivered,
          ...(failed
            ? {
                state: 'failed',
                stage,
                code: 'delivery-failed',
                detail: `${failed.target}: ${failed.detail ?? 'not delivered'}`,
              }
            : { state: 'done' }),
        })
      } catch (error) {
        const known = error instanceof DoorwardError ? error : undefined
        change({
          state: 'failed',
          stage,
          code: known?.code ?? 'internal',
          detail: known?.localDetail ?? known?.message ?? 'something went wrong inside the daemon',
          durations: { ...durations },
        })
        if (!known) log.error({ event: id, stage, error: nameOnly(error) }, 'internal error')
      }
      note()
    }

    const drop = () => {
      change({
        state: 'dropped',
        stage: 'queue',
        code: 'event-dropped',
        detail: 'the daemon stopped before its turn came: deliver it again from the sender',
      })
      log.warn(
        {
          event: id,
          webhook: webhook.path,
          deliveryId: known.deliveryId,
          size: known.size,
          receivedAt: receivedAt.toISOString(),
        },
        'event dropped',
      )
    }

    queue.add({
      agentName: webhook.agentName,
      agentConcurrency: webhook.agent.concurrency,
      bytes: Buffer.byteLength(prompt),
      run,
      drop,
    })
    const [first] = targets
    id = events.add(receivedAt, {
      ...known,
      state: 'accepted',
      ...(first ? { target: targets.map(({ text }) => text).join(', ') } : {}),
      targets: targets.map(({ text }) => ({ target: text, state: 'waiting', attempts: 0 })),
    }).id
    events.update(id, { state: 'queued' }, { prompt })
    return id
  }

const since = (start: number): number => Math.round(performance.now() - start)

const nameOnly = (error: unknown): string => (error instanceof Error ? error.name : typeof error)
