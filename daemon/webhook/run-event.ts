import type { EventRecord } from '../../shared/api.ts'
import { stageAt } from '../../shared/event-stages.ts'
import { newEventId } from '../events/event-id.ts'
import type { EventChanges } from '../events/event-record.ts'
import type { Queue } from '../queue.ts'
import type { AcceptedEvent } from './accepted-event.ts'
import type { Deliveries } from './deliveries.ts'
import type { KeptEvents } from './kept-events.ts'
import { type RunToEndParts, createRunToEnd } from './run-to-end.ts'
import { waitingAgain, waitingFor } from './target-results.ts'

/*
 * The second half of the story of a delivery, after the sender has its answer:
 *
 *   queue -> agent -> deliver -> done, or failed with the stage; or dropped when the daemon stops first
 *
 * What a stop cuts off in the agent or on its way to a target is failed, too.
 *
 * What happens from the agent on is in `run-to-end.ts`.
 */

export type RunEvent = {
  /** Puts an event into the queue and returns its id. Throws `queue-full`, `body-too-large` or `stopping`. */
  readonly accept: (event: AcceptedEvent) => string
  /**
   * Puts an event that has failed into the queue again. With the answer it got only what was not
   * delivered is, else its agent runs. Throws `queue-full`, `body-too-large` or `stopping`.
   */
  readonly again: (id: string, event: AcceptedEvent, answer?: string) => void
}

export type RunEventParts = RunToEndParts & {
  readonly queue: Queue
  readonly deliveries: Deliveries
  /** For a retry. */
  readonly kept: KeptEvents<AcceptedEvent>
}

/** What takes events through agents to targets, under one configuration. */
export const createRunEvent = (parts: RunEventParts): RunEvent => {
  const { queue, events, deliveries, kept, log } = parts
  const runToEnd = createRunToEnd(parts)

  /** Throws when there is no room; else the job starts in a later turn. */
  const enqueue = (id: string, event: AcceptedEvent, answer?: string): void => {
    const { webhook, prompt, delivery } = event
    const queuedAt = performance.now()
    let isOver = false
    const change = (changes: EventChanges, result?: string) => {
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
      run: async (signal, agentIsDone) => {
        const queuedMs = Math.round(performance.now() - queuedAt)
        const ended = await runToEnd({ id, event, answer, queuedMs, signal, change, agentIsDone })
        if (isOver) return
        end(ended)
        const { state, stage, code } = ended
        const details = { event: id, webhook: webhook.path, state, stage, code }
        // Nobody can retry it after the stop.
        if (state === 'failed' && signal.aborted)
          log.warn({ ...details, ...atSender(event) }, 'event not finished')
        else log.info(details, 'event')
      },
      drop: () => {
        const ended = droppedEnd(events.record(id)?.state)
        end(ended)
        const { stage } = ended
        log.warn({ event: id, webhook: webhook.path, stage, ...atSender(event) }, 'event dropped')
      },
    })
  }

  return {
    accept: (event) => {
      const { receivedAt, known, prompt, targets, delivery } = event
      const id = newEventId()
      enqueue(id, event)
      if (delivery) deliveries.remember(delivery, id, performance.now())
      // There was room. The job starts in a later turn, when the event is there.
      const { target, targets: results } = waitingFor(targets)
      events.add(receivedAt, { state: 'accepted', target, targets: results, ...known }, id)
      events.update(id, { state: 'queued' }, { prompt })
      kept.keep(id, event)
      return id
    },
    again: (id, event, answer) => {
      enqueue(id, event, answer)
      const { delivery } = event
      const now = performance.now()
      if (delivery && deliveries.eventOf(delivery, now) === undefined)
        deliveries.remember(delivery, id, now)
      kept.keep(id, event)
      const targets = waitingAgain(events.record(id)?.targets ?? [])
      const noReason = { stage: undefined, code: undefined, detail: undefined }
      events.update(id, { state: 'queued', targets, ...noReason })
    },
  }
}

/** By which its sender finds a delivery, once nothing here remembers it. */
const atSender = ({ known: { deliveryId, size }, receivedAt }: AcceptedEvent) => ({
  deliveryId,
  size,
  receivedAt,
})

const droppedEnd = (state: EventRecord['state'] | undefined): EventChanges => {
  const stage = (state && stageAt[state]) ?? 'queue'
  return {
    state: 'dropped',
    stage,
    code: 'event-dropped',
    detail: `the daemon stopped ${whenAt[stage]}: deliver it again from the sender`,
  }
}

const whenAt = {
  queue: 'before its turn came',
  agent: 'while its agent ran',
  deliver: 'while its answer was being delivered',
} as const
