import type { EventRecord, Stage, TargetResult } from '../../shared/api.ts'
import { DoorwardError, nameOf } from '../../shared/errors.ts'
import type { Invoke } from '../agents/invoke.ts'
import type { Deliver } from '../deliver/deliver.ts'
import type { EventChanges } from '../events/event-record.ts'
import type { EventStore } from '../events/event-store.ts'
import type { Log } from '../log/log.ts'
import { previewOf } from './preview.ts'
import type { AcceptedEvent } from './accepted-event.ts'
import { deliveredEnd, openPlaces, waitingFor, withResult } from './target-results.ts'

/*
 * The part of the story that takes time: the agent is asked, unless its answer is there already, and the
 * answer goes to the targets that have not got it.
 */

export type Run = {
  readonly id: string
  readonly event: AcceptedEvent
  /** Of an earlier run, when only the delivery is to be done. */
  readonly answer: string | undefined
  readonly queuedMs: number
  readonly signal: AbortSignal
  readonly change: (changes: EventChanges, result?: string) => void
  /** A target that is slow or down keeps nobody else from the agent. */
  readonly agentIsDone: () => void
}

/** Takes one event through its agent to its targets. Never rejects; resolves with how it ended. */
export type RunToEnd = (run: Run) => Promise<Partial<EventRecord>>

export type RunToEndParts = {
  readonly invoke: Invoke
  readonly deliver: Deliver
  readonly events: EventStore
  readonly log: Log
}

type Durations = EventRecord['durations']

export const createRunToEnd = ({ invoke, deliver, events, log }: RunToEndParts): RunToEnd => {
  const bringToTargets = async (
    { id, event, signal, change }: Run,
    text: string,
    earlier: readonly TargetResult[],
  ) => {
    const { webhook, receivedAt, targets } = event
    const only = openPlaces(earlier)
    let results = [...earlier]
    const changed = (place: number, result: TargetResult) => {
      results = withResult(results, earlier, place, result)
      if (result.state === 'waiting') change({ targets: results })
    }
    const answered = { eventId: id, webhook: webhook.path, receivedAt, text }
    // What it resolves with, `changed` has said of each.
    await deliver(targets, answered, { only, signal, changed })
    return results
  }

  return async (run) => {
    const { id, event, queuedMs, signal, change } = run
    const before = events.record(id)
    const attempts = (before?.attempts ?? 0) + 1
    const { targets: earlier } = before ?? waitingFor(event.targets)
    let stage: Extract<Stage, 'agent' | 'deliver'> = 'agent'
    let agentMs = run.answer === undefined ? undefined : before?.durations.agentMs
    let start = performance.now()
    const time = (): Durations => {
      const took = Math.round(performance.now() - start)
      if (stage === 'agent') return { queuedMs, agentMs: took }
      return { queuedMs, agentMs, deliverMs: took }
    }
    try {
      let text = run.answer
      if (text === undefined) {
        change({ state: 'running', attempts, durations: { queuedMs } })
        const { webhook, prompt } = event
        const question = { prompt, webhook: webhook.path, eventId: id }
        const answer = await invoke(webhook.agentName, webhook.agent, question, signal)
        text = answer.text
        const durations = time()
        ;({ agentMs } = durations)
        const answered = { state: 'delivering', durations, resultPreview: previewOf(text) } as const
        change(answer.cut ? { detail: cutDetail, ...answered } : answered, text)
      } else {
        change({ state: 'delivering', attempts, durations: { queuedMs, agentMs } })
      }
      stage = 'deliver'
      if (earlier.length === 0)
        return { state: 'done', durations: { queuedMs, agentMs, deliverMs: 0 } }
      // Other jobs may start in here.
      run.agentIsDone()
      start = performance.now()
      const results = await bringToTargets(run, text, earlier)
      return { durations: time(), ...deliveredEnd(results) }
    } catch (error) {
      if (!(error instanceof DoorwardError))
        log.error({ event: id, stage, error: nameOf(error) }, 'internal error')
      return { durations: time(), ...failedEnd(stage, error) }
    }
  }
}

const cutDetail = 'the answer was longer than output_limit and is cut'

const failedEnd = (stage: Stage, error: unknown): Partial<EventRecord> => {
  const known = error instanceof DoorwardError ? error : undefined
  const detail = known?.localDetail ?? known?.message ?? 'something went wrong inside the daemon'
  return { state: 'failed', stage, code: known?.code ?? 'internal', detail }
}
