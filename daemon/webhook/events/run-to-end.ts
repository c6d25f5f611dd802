import type { EventRecord, OutputResult, Stage, TargetResult } from '../../../shared/api/api.ts'
import { DoorwardError, errorName } from '../../../shared/errors.ts'
import { toPlainText } from '../../../shared/text.ts'
import { isOutputsKind } from '../../../shared/targets/schema.ts'
import { publishesChange } from '../../../shared/targets/targets.ts'
import type { Answer } from '../../agents/answer.ts'
import type { Deliver, EventLinkTo } from '../../delivery/deliver.ts'
import { isEmpty } from '../../delivery/format/parts.ts'
import { readAnswer, type ReadAnswer } from '../../delivery/outputs/read-answer.ts'
import type { AgentReply, ResolvedTarget, SeenCode } from '../../delivery/sender.ts'
import type { Inspect, Inspected } from '../../delivery/secrets/inspect.ts'
import type { Detail, EventChanges } from '../../events/event-record.ts'
import type { EventStore } from '../../events/event-store.ts'
import type { Log } from '../../log/log.ts'
import { isCancelled } from '../../util/concurrency.ts'
import type { UsageLog } from '../../usage/usage-log.ts'
import { createHoldBack, type HoldBack, type HoldBackParts } from '../approvals/hold-back.ts'
import { deliveredEnd, hasNoWayOut, openPlaces, waitingFor, withResult } from '../targets.ts'
import type { Signs } from '../signs/signs.ts'
import { type AcceptedEvent, toCounted } from './accepted-event.ts'
import { type AskParts, createAsk, toRunInput } from './ask.ts'

/*
 * The slow part: run the agent, unless there is an answer already, and deliver the answer to the targets that
 * do not have it yet.
 */

type Run = {
  readonly id: string
  readonly event: AcceptedEvent
  /** Of an earlier run, when only the delivery is missing. */
  readonly answer: string | undefined
  readonly queuedMs: number
  readonly signal: AbortSignal
  readonly change: (changes: EventChanges, texts?: Detail) => void
  /** Keeps the code of the run, for a retry of its delivery. */
  readonly saw: (code: SeenCode | undefined) => void
  /** Frees the agent for the next job, as a target may be slow or down. */
  readonly agentIsDone: () => void
}

/** Runs the agent of one event and delivers the answer. Never rejects; resolves with the final changes. */
type RunToEnd = (run: Run) => Promise<Partial<EventRecord>>

export type RunToEndParts = AskParts &
  HoldBackParts & {
    readonly deliver: Deliver
    readonly inspect: Inspect
    readonly events: EventStore
    readonly usage: UsageLog
    readonly signs: Pick<Signs, 'checkOf'>
    readonly log: Log
  }

type Durations = EventRecord['durations']

export const createRunToEnd = (parts: RunToEndParts): RunToEnd => {
  const { deliver, inspect, events, signs, usage, log } = parts
  const ask = createAsk(parts)
  const holdBack = createHoldBack(parts)
  const toReply = createToReply(signs)
  const bringToTargets = createBringToTargets(deliver, events, toReply, holdBack)
  const look = createLook(inspect)

  return async (run) => {
    const { id, event, signal, change } = run
    const before = events.record(id)
    const { ranElsewhere, attempts, queuedMs } = toAttempt(run, before)
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
      let looked: Looked
      if (run.answer === undefined && hasNoWayOut(event)) {
        stage = 'deliver'
        const ended = await bringToTargets(run, '', earlier)
        return { attempts, durations: { queuedMs }, ...ended, detail: withoutAgent(ended) }
      }
      if (run.answer === undefined) {
        const asked = { approval: undefined, outputs: undefined, ...toRunInput(event) }
        change({ state: 'running', attempts, durations: { queuedMs }, ...asked })
        const { answer, seen, notes } = await ask({
          ...run,
          had: (input, asked) => {
            if (input.usage) usage.count(toCounted(event), input.usage)
            change(input, asked === undefined ? undefined : { asked })
          },
        })
        looked = await look(run, seen, answer.text, describeAnswer(answer, notes))
        run.saw(looked.code)
        const durations = time()
        ;({ agentMs } = durations)
        const { text: result, detail } = looked
        const next = holdBack.concerns(event) ? {} : ({ state: 'delivering' } as const)
        const shown = { resultPreview: toPreview(result), ...(detail !== '' && { detail }) }
        change({ ...next, durations, ...shown }, { result })
      } else {
        looked = await look(run, event.code, run.answer)
        const { refusal, text: result } = looked
        const hidden = refusal && { resultPreview: toPreview(result) }
        const durations = { queuedMs, agentMs }
        change({ state: 'delivering', attempts, durations, ...hidden }, refusal && { result })
      }
      const { code, text, refusal } = looked
      stage = 'deliver'
      if (refusal)
        return { durations: { queuedMs, agentMs, deliverMs: 0 }, ...failedEnd(stage, refusal) }
      const nothingSent = { state: 'done', durations: { queuedMs, agentMs, deliverMs: 0 } } as const
      if (earlier.length === 0) return nothingSent
      const said = readAnswer(text, event.webhook.outputs, event.targets)
      if (run.answer === undefined || ranElsewhere) tellDropped(said, change)
      const isSilent = isEmpty(said.text)
      const isMeant = isSilent ? toMeant(said, code) : undefined
      if (isMeant && !event.targets.some(isMeant))
        return { ...nothingSent, detail: 'the answer is empty: nothing was delivered' }
      // While the folder of a program that had answered was being removed.
      if (isCancelled(signal)) throw new DoorwardError('event-cancelled', 'it was cancelled')
      // This may start other jobs.
      run.agentIsDone()
      start = performance.now()
      const ended = await bringToTargets(run, text, earlier, code, isMeant)
      const silent = isSilent && { detail: describeSilent(said) }
      return { durations: time(), ...silent, ...ended }
    } catch (error) {
      if (!(error instanceof DoorwardError))
        log.error({ event: id, stage, error: errorName(error) }, 'internal error')
      return { durations: time(), ...failedEnd(stage, error) }
    }
  }
}

/** An answer as its targets get it. */
export const createToReply =
  (signs: Pick<Signs, 'checkOf'>) =>
  async (id: string, event: AcceptedEvent, text: string, code?: SeenCode): Promise<AgentReply> => {
    const { webhook, receivedAt, known, updateKey, checkName } = event
    const { path, publish, outputs, bot } = webhook
    const { rule, subject } = known
    const said = readAnswer(text, outputs, event.targets)
    return {
      eventId: id,
      webhook: path,
      title: subject?.title,
      rule,
      subject,
      receivedAt,
      text: said.text,
      ...(outputs && { reviewText: said.reviewText, actions: said.actions }),
      updateKey,
      checkName,
      liveCheck: await signs.checkOf(id),
      code,
      publish,
      bot,
    }
  }

const toAttempt = (run: Run, before: EventRecord | undefined) => {
  // Another machine ran its agent.
  const ranElsewhere = before?.state === 'running'
  return {
    ranElsewhere,
    attempts: (before?.attempts ?? 0) + (ranElsewhere ? 0 : 1),
    queuedMs: ranElsewhere ? (before.durations.queuedMs ?? 0) : run.queuedMs,
  }
}

const withoutAgent = ({ detail }: Partial<EventRecord>) => `${detail}; the agent was not run`

type Looked = Inspected & { readonly code: SeenCode | undefined }

/** Searches an answer and the change beside it for secrets: a change that has one is not kept. */
const createLook =
  (inspect: Inspect) =>
  async (
    { id, event, signal }: Run,
    code: SeenCode | undefined,
    text: string,
    detail?: string,
  ): Promise<Looked> => {
    const { allowSecrets: allowed } = event.webhook
    const { change } = code ?? {}
    const looked = await inspect({ eventId: id, text, detail, change, allowed, signal })
    return { ...looked, code: looked.refusal && code ? { ...code, change: undefined } : code }
  }

/**
 * Delivers an answer to the targets that do not have it yet, unless it is held back; resolves with the end of the
 * job.
 */
const createBringToTargets =
  (
    deliver: Deliver,
    events: EventStore,
    toReply: ReturnType<typeof createToReply>,
    holdBack: HoldBack,
  ) =>
  async (
    run: Run,
    text: string,
    earlier: readonly TargetResult[],
    code?: SeenCode,
    isMeant: (target: ResolvedTarget) => boolean = () => true,
  ): Promise<Partial<EventRecord>> => {
    const { id, event, signal, change } = run
    const { targets } = event
    const only = openPlaces(earlier).filter((place) => {
      const target = targets[place]
      return target !== undefined && isMeant(target)
    })
    let results = [...earlier]
    const changed = (place: number, result: TargetResult) => {
      results = withResult(results, earlier, place, result)
      if (result.state === 'waiting') change({ targets: results })
    }
    const reply = await toReply(id, event, text, code)
    const held = await holdBack.hold(run, reply, only)
    if (held) return held
    if (events.record(id)?.state === 'running') change({ state: 'delivering' })
    const made = (link: EventLinkTo) =>
      change({ links: [...(events.record(id)?.links ?? []), link] })
    const requested = (happened: readonly OutputResult[]) =>
      change({ outputs: [...(events.record(id)?.outputs ?? []), ...happened] })
    // `changed` reports each result.
    await deliver(targets, reply, { only, signal, changed, made, requested })
    return deliveredEnd(results)
  }

/** Tells what the rule does not allow, once for each answer. */
const tellDropped = ({ dropped }: ReadAnswer, change: Run['change']): void => {
  if (dropped.length > 0) change({ outputs: [...dropped] })
}

/** The targets for an answer without words: an agent that says nothing may still have changed or requested something. */
const toMeant =
  ({ reviewText, actions }: ReadAnswer, code: SeenCode | undefined) =>
  (target: ResolvedTarget): boolean => {
    if (isOutputsKind(target.kind)) return actions.length > 0
    if (target.kind.endsWith('-review') || target.kind === 'github-check')
      return !isEmpty(reviewText)
    return publishesChange(target) && code?.change !== undefined && code.change !== 'none'
  }

const describeSilent = ({ actions, reviewText }: ReadAnswer): string =>
  actions.length > 0 || !isEmpty(reviewText)
    ? 'the answer has only requests'
    : 'the answer is empty: only the change was delivered'

export const describeAnswer = ({ cut, note }: Answer, notes: readonly string[]): string =>
  [
    ...(cut ? ['the answer was longer than output_limit and is cut'] : []),
    ...(note === undefined ? [] : [note]),
    ...notes,
  ].join('; ')

export const failedEnd = (stage: Stage, error: unknown): Partial<EventRecord> => {
  const known = error instanceof DoorwardError ? error : undefined
  // Conditions that only the run can check.
  if (known?.code === 'paths-unmatched' || known?.code === 'not-allowed')
    return { state: 'filtered', code: known.code, detail: known.message }
  const detail = known?.localDetail ?? known?.message ?? 'something went wrong inside the daemon'
  return { state: 'failed', stage, code: known?.code ?? 'internal', detail }
}

const previewCharacters = 600

/** Previews are copied through this: a UTF-16 unit takes three bytes of UTF-8 at most. */
const room = Buffer.allocUnsafeSlow(previewCharacters * 3)

/** The first 600 characters of an answer, safe to show, for the record of its event. */
export const toPreview = (text: string): string => {
  const head = text.slice(0, previewCharacters)
  // Nearly always; otherwise characters are removed, and more of the text fits.
  const isPlain = toPlainText(head) === head
  const first = isPlain
    ? head
    : toPlainText(text.slice(0, previewCharacters * 2)).slice(0, previewCharacters)
  if (text.length <= previewCharacters) return first
  // A slice in V8 refers to the whole text and keeps it in memory.
  return room.toString('utf8', 0, room.write(first))
}
