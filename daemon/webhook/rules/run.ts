import { DoorwardError } from '../../../shared/errors.ts'
import { formatDuration } from '../../../shared/text.ts'
import type { Log } from '../../log/log.ts'
import { expandWorkspace } from '../../workspace/request.ts'
import { type AcceptedEvent, toEventFile } from '../events/accepted-event.ts'
import type { KeptPayloads } from '../events/kept-payloads.ts'
import type { CompiledRule } from '../compiled-webhook.ts'
import { type DeliveryKey, ofRule, type SeenDeliveries } from '../dedupe.ts'
import {
  type Accepted,
  addRejected,
  type Delivery,
  pass,
  toAccepted,
  toKnownDelivery,
  type ContactParts,
} from '../delivery.ts'
import type { PlacedEvent, RunEvent } from '../events/runner.ts'
import type { EventScope } from '../event-scope.ts'
import type { Payload } from '../body.ts'
import { makePrompt } from '../prompt.ts'
import { expandTargets } from '../targets.ts'
import type { VerifiedBody } from '../signatures/verify.ts'
import { formatMaxRuns, type RunBudgets } from './budgets.ts'
import { chooseRules } from './choose.ts'
import { describeEmptyKey, type EventGroups, toCoalesced, toUpdateKey } from './groups.ts'

/** A verified delivery that is neither a handshake nor caused by doorward. */
type Read = {
  readonly delivery: Delivery
  readonly verified: VerifiedBody
  readonly payload: Payload
  readonly scope: EventScope
  readonly key: DeliveryKey | undefined
  /** Gives the bytes of the body back to the budget. */
  readonly release: () => void
}

export type RunRulesParts = ContactParts & {
  readonly deliveries: SeenDeliveries
  readonly budgets: RunBudgets
  readonly groups: EventGroups
  /** For another run under another definition. */
  readonly payloads: KeptPayloads
  readonly log: Pick<Log, 'warn'>
}

/**
 * Queues an event for each rule that matches, or adds one event that says why there is none. A promise only
 * where another machine has to confirm them.
 */
export const runRules = (
  read: Read,
  runEvent: RunEvent,
  parts: RunRulesParts,
): Accepted | Promise<Accepted> => {
  const { delivery, scope, key, release } = read
  const { webhook, headers, receivedAt } = delivery
  const rules = chooseRules(webhook, headers, scope)
  if (typeof rules === 'string') return pass(delivery, 'filtered', rules, parts)
  const due: Due[] = []
  const overBudget: CompiledRule[] = []
  const seen: string[] = []
  for (const rule of rules) {
    const before = findSeen(rule, key, parts)
    // After a rule has failed, a repeated delivery is for that rule alone.
    if (before !== undefined) seen.push(before)
    else {
      const coalesced = toCoalesced(rule, scope, receivedAt)
      if (mayRun(rule, coalesced, parts)) due.push({ rule, coalesced })
      else overBudget.push(rule)
    }
  }
  if (seen.length === rules.length)
    return pass(delivery, 'duplicate', `the same delivery as ${seen.join(', ')}`, parts)
  delivery.stage = 'expand'
  const { accepted, ready } = expandEach(due, read, parts)
  delivery.stage = 'queue'
  // The prompts replace the body, whose bytes become free for them. One that another machine has to confirm
  // keeps both until then.
  if (!runEvent.needsConfirmation) release()
  const chosen = { read, ready, overBudget }
  const placed = runEvent.accept(accepted)
  return placed instanceof Promise
    ? placed.then((each) => answerAccepted(each, chosen, parts))
    : answerAccepted(placed, chosen, parts)
}

type Chosen = {
  readonly read: Read
  /** Those that were given to the queue. */
  readonly ready: readonly CompiledRule[]
  /** Those that have used up their `max_runs`. */
  readonly overBudget: readonly CompiledRule[]
}

/** Keeps what another run needs, counts the runs, and answers the sender. */
const answerAccepted = (
  placed: readonly PlacedEvent[],
  { read, ready, overBudget }: Chosen,
  parts: RunRulesParts,
): Accepted => {
  const { delivery, verified } = read
  const now = performance.now()
  const accepted: string[] = []
  const events: EventOfRule[] = placed.map(({ id, status }, index) => {
    const rule = ready[index]
    if (rule && status === 'accepted') {
      accepted.push(id)
      parts.budgets.count(rule, now)
    }
    return { id, status, rule: rule?.name }
  })
  parts.payloads.keep(accepted, { body: verified, headers: delivery.headers })
  for (const rule of overBudget) events.push(passOver(delivery, rule, parts))
  const [{ id, status } = { id: '', status: 'accepted' as const }] = events
  const answer = toAccepted(delivery, id, status)
  return events.length > 1 ? { ...answer, events } : answer
}

/** A rule that a delivery runs, and the group of its event. */
type Due = { readonly rule: CompiledRule; readonly coalesced: ReturnType<typeof toCoalesced> }

/** Within `max_runs`, or instead of an event that has not run. */
export const mayRun = (
  rule: CompiledRule,
  coalesced: Due['coalesced'],
  { groups, budgets }: Pick<RunRulesParts, 'groups' | 'budgets'>,
): boolean =>
  (typeof coalesced === 'object' && groups.hasWaiting(coalesced)) ||
  !budgets.isOver(rule, performance.now())

type EventOfRule = NonNullable<Accepted['events']>[number]

/**
 * The events of these rules. A template that cannot be filled rejects its own rule alone; throws the reason
 * where no rule is left.
 */
const expandEach = (
  due: readonly Due[],
  read: Read,
  parts: RunRulesParts,
): { readonly accepted: readonly AcceptedEvent[]; readonly ready: readonly CompiledRule[] } => {
  const accepted: AcceptedEvent[] = []
  const ready: CompiledRule[] = []
  const failed: { readonly rule: CompiledRule; readonly error: DoorwardError }[] = []
  for (const { rule, coalesced } of due)
    try {
      accepted.push(expand(rule, read, coalesced))
      ready.push(rule)
    } catch (error) {
      if (!(error instanceof DoorwardError)) throw error
      failed.push({ rule, error })
    }
  if (failed[0] && accepted.length === 0) throw failed[0].error
  for (const { rule, error } of failed) addRejected(read.delivery, error, parts, rule)
  return { accepted, ready }
}

const expand = (
  rule: CompiledRule,
  { delivery, verified, payload, scope, key }: Read,
  coalesced: Due['coalesced'],
): AcceptedEvent => {
  const { webhook, headers } = delivery
  const { prompt, context } = makePrompt(rule, scope)
  const { coalesced: group, detail } = describeCoalesced(coalesced)
  return {
    webhook: rule,
    receivedAt: delivery.receivedAt,
    known: toKnownDelivery(delivery, rule),
    prompt,
    context,
    workspace: rule.workspace && expandWorkspace(rule.workspace, scope),
    targets: expandTargets(rule.targets, scope),
    updateKey: toUpdateKey(rule, scope, delivery.receivedAt),
    payload: toEventFile(rule.agent, { body: verified, headers }, payload, webhook.scheme),
    coalesced: group,
    detail,
    delivery: ofRule(key, rule.name),
  }
}

const describeCoalesced = (
  coalesced: Due['coalesced'],
): Pick<AcceptedEvent, 'coalesced' | 'detail'> => {
  if (coalesced === undefined) return {}
  if (typeof coalesced === 'string') return { detail: `it is ${describeEmptyKey(coalesced)}` }
  const { quietMs } = coalesced
  return quietMs === 0
    ? { coalesced }
    : { coalesced, detail: `it waits for newer events with its key: ${formatDuration(quietMs)}` }
}

/** Adds the event of a rule that has used up its `max_runs`, which the log says once. */
const passOver = (
  delivery: Delivery,
  rule: CompiledRule,
  { events, budgets, log }: RunRulesParts,
): EventOfRule => {
  const { path, name, maxRuns } = rule
  const limit = maxRuns ? formatMaxRuns(maxRuns) : 'max_runs'
  const why = { code: 'over-budget', detail: `the ${limit} is used up` }
  const known = toKnownDelivery(delivery, rule)
  const { id } = events.add(delivery.receivedAt, { state: 'filtered', ...why, ...known })
  if (budgets.passOver(rule))
    log.warn({ event: id, webhook: path, rule: name, code: why.code }, `the ${limit} is used up`)
  return { id, status: 'filtered', rule: name }
}

/** The id of the event that this delivery became before by this rule. */
export const findSeen = (
  { name }: CompiledRule,
  key: DeliveryKey | undefined,
  { deliveries }: Pick<RunRulesParts, 'deliveries'>,
): string | undefined => {
  const own = ofRule(key, name)
  return own && deliveries.eventFor(own, performance.now())
}
