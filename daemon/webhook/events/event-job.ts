import { type EventChanges } from '../../events/event-record.ts'
import type { Job, Queue } from '../../queue/queue.ts'
import type { Sessions } from '../../sessions/sessions.ts'
import { cancelled, isCancelled } from '../../util/concurrency.ts'
import { hasNoWayOut } from '../targets.ts'
import type { AcceptedEvent } from './accepted-event.ts'
import { EventEnding, type EndingParts } from './event-ending.ts'
import { createRunToEnd, failedEnd, type RunToEndParts } from './run-to-end.ts'

export type JobParts = RunToEndParts &
  EndingParts & {
    readonly sessions: Sessions
    readonly queue: Queue
  }

export type EventJob = Job & { readonly end: (changes: EventChanges) => void }

/** Makes the job of an event, which records what becomes of it. `asking` has those of which is asked who began them. */
export const createToJob = (
  parts: JobParts,
  asking: ReadonlySet<string>,
): ((id: string, event: AcceptedEvent, answer?: string, accepted?: () => void) => EventJob) => {
  const { groups, signs, sessions, queue } = parts
  const runToEnd = createRunToEnd(parts)
  return (id, event, answer, accepted) => {
    const { webhook, prompt, payload, coalesced } = event
    // A worker has its own: a receiver does not wait for its turns.
    const session = answer === undefined && !queue.machines ? event.session?.name : undefined
    const queuedAt = performance.now()
    const ending = new EventEnding(id, event, parts)
    const { change, saw, end } = ending
    const isReady = (isStopping: boolean): boolean =>
      (session === undefined || sessions.isFree(session)) &&
      (!coalesced || (!asking.has(id) && groups.isReady(id, coalesced.group, isStopping)))
    return {
      id,
      event: answer === undefined && !hasNoWayOut(event) ? event : undefined,
      accepted,
      agentName: webhook.agentName,
      agentConcurrency: webhook.agent.concurrency,
      bytes: Buffer.byteLength(answer ?? prompt) + (payload?.length ?? 0),
      onlyDelivers: answer !== undefined,
      isReady: coalesced || session !== undefined ? isReady : undefined,
      run: async (signal, whenAgentIsDone) => {
        if (session !== undefined) sessions.enter(session, id)
        const agentIsDone = () => {
          if (session !== undefined) sessions.leave(session, id)
          whenAgentIsDone()
        }
        const queuedMs = Math.round(performance.now() - queuedAt)
        if (coalesced) change({ detail: undefined })
        const run = { id, event, answer, queuedMs, signal, change, saw, agentIsDone }
        const outcome = await runToEnd(run)
        const note = event.seen || event.check ? await signs.noteOf(id) : undefined
        if (session !== undefined) {
          sessions.leave(session, id)
          queue.trigger()
        }
        if (ending.isOver) return
        if (outcome.state === 'waiting') return ending.wait(addNote(outcome, note))
        const wasCancelled = outcome.state === 'failed' && isCancelled(signal)
        ending.finish(addNote(outcome, note), wasCancelled, signal.aborted)
        await ending.ended()
      },
      end,
      fail: (error, why) => ending.finish(failedEnd('agent', error), why === cancelled, false),
      drop: (why) => ending.drop(why),
    }
  }
}

const addNote = (outcome: EventChanges, note: string | undefined): EventChanges =>
  note === undefined
    ? outcome
    : { ...outcome, detail: outcome.detail === undefined ? note : `${outcome.detail}; ${note}` }
