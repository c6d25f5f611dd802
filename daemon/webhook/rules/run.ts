import { DoorwardError } from '../../../shared/errors.ts'
import type { SignatureScheme } from '../../../shared/signatures/scheme.ts'
import { formatDuration } from '../../../shared/text.ts'
import type { Log } from '../../log/log.ts'
import { expandWorkspace } from '../../workspace/request.ts'
import { type AcceptedEvent, type KeptPayloads, toEventFile } from '../events/accepted-event.ts'
import type { CompiledRule } from '../compiled-webhook.ts'
import { type DeliveryKey, ofRule, type SeenDeliveries } from '../dedupe.ts'
import {
  type Accepted,
  addRejected,
  type Delivery,
  pass,
  toAccepted,
  toKnownDelivery,
} from '../delivery.ts'
import type { RunEvent } from '../events/runner.ts'
import type { EventScope } from '../event-scope.ts'
import type { Payload } from '../parse.ts'
import { makePrompt } from '../prompt.ts'
import type { ContactParts } from '../senders/contact.ts'
import type { SignatureHeaders } from '../signatures/header.ts'
import { expandTargets } from '../targets.ts'
import type { VerifiedBody } from '../signatures/verify.ts'
import { formatMaxRuns, type RunBudgets } from './budgets.ts'
import { chooseRules } from './choose.ts'
import { type EventGroups, toCoalesced, toUpdateKey } from './groups.ts'

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
  const seen = rules.map((rule) => findSeen(rule, key, parts))
  if (!seen.includes(undefined))
    return pass(delivery, 'duplicate', `the same delivery as ${seen.join(', ')}`, parts)
  // After a rule has failed, a repeated delivery is for that rule alone.
  const unseen = rules.filter((_, index) => seen[index] === undefined)
  const groupOf = new Map(unseen.map((rule) => [rule, toCoalesced(rule, scope, receivedAt)]))
  const due = unseen.filter((rule) => {
    const coalesced = groupOf.get(rule)
    // What it replaces has not run.
    const replaces = typeof coalesced === 'object' && parts.groups.hasWaiting(coalesced)
    return replaces || !parts.budgets.isOver(rule, performance.now())
  })
  delivery.stage = 'expand'
  const { accepted, ready } = expandEach(due, read, groupOf, parts)
  delivery.stage = 'queue'
  // The prompts replace the body, whose bytes become free for them. One that another machine has to confirm
  // keeps both until then.
  if (!runEvent.needsConfirmation) release()
  const answer = (ids: readonly string[]) =>
    answerAccepted(
      ids,
      { read, accepted, ready, passed: unseen.filter((rule) => !due.includes(rule)) },
      parts,
    )
  const ids = runEvent.accept(accepted)
  return ids instanceof Promise ? ids.then(answer) : answer(ids)
}

type Chosen = {
  readonly read: Read
  readonly accepted: readonly AcceptedEvent[]
  /** Their rules. */
  readonly ready: readonly CompiledRule[]
  /** Those that have used up their `max_runs`. */
  readonly passed: readonly CompiledRule[]
}

/** Keeps what another run needs, counts the runs, and answers the sender. */
const answerAccepted = (
  ids: readonly string[],
  { read, accepted, ready, passed }: Chosen,
  parts: RunRulesParts,
): Accepted => {
  const { delivery, verified } = read
  const { webhook, headers, receivedAt } = delivery
  const shown = withoutProof(headers, webhook.scheme)
  const kept = { body: verified.compact(), headers: shown, receivedAt }
  const placed = ids.map((id) => statusOf(id, parts))
  accepted.forEach(({ known, delivery: seenAs }, index) => {
    if (placed[index] === 'accepted')
      parts.payloads.keep(ids[index] ?? '', { ...kept, known, delivery: seenAs })
  })
  ready.forEach((rule, index) => {
    if (placed[index] === 'accepted') parts.budgets.count(rule, performance.now())
  })
  const events = [
    ...ids.map((id, index) => ({
      id,
      status: placed[index] ?? 'accepted',
      rule: ready[index]?.name,
    })),
    ...passed.map((rule) => passOver(delivery, rule, parts)),
  ]
  const [{ id, status } = { id: '', status: 'accepted' as const }] = events
  const answer = toAccepted(delivery, id, status)
  return events.length > 1 ? { ...answer, events } : answer
}

/** Another door may have accepted it. */
const statusOf = (id: string, { events }: RunRulesParts): 'accepted' | 'duplicate' =>
  events.record(id)?.state === 'duplicate' ? 'duplicate' : 'accepted'

/**
 * The events of these rules. A template that cannot be filled rejects its own rule alone; throws the reason
 * where no rule is left.
 */
const expandEach = (
  rules: readonly CompiledRule[],
  read: Read,
  groupOf: GroupOf,
  parts: RunRulesParts,
): { readonly accepted: readonly AcceptedEvent[]; readonly ready: readonly CompiledRule[] } => {
  const expandOne = (rule: CompiledRule) => expand(rule, read, groupOf.get(rule))
  const [only] = rules
  if (rules.length === 1 && only) return { accepted: [expandOne(only)], ready: rules }
  const failed = new Map<CompiledRule, DoorwardError>()
  const accepted = rules.flatMap((rule) => {
    try {
      return [expandOne(rule)]
    } catch (error) {
      if (!(error instanceof DoorwardError)) throw error
      failed.set(rule, error)
      return []
    }
  })
  const [reason] = failed.values()
  if (reason && accepted.length === 0) throw reason
  for (const [rule, error] of failed) addRejected(read.delivery, error, parts, rule)
  return { accepted, ready: rules.filter((rule) => !failed.has(rule)) }
}

type GroupOf = ReadonlyMap<CompiledRule, ReturnType<typeof toCoalesced>>

const expand = (
  rule: CompiledRule,
  { delivery, verified, payload, scope, key }: Read,
  coalesced: ReturnType<typeof toCoalesced>,
): AcceptedEvent => {
  const { webhook, headers } = delivery
  return {
    webhook: rule,
    receivedAt: delivery.receivedAt,
    known: toKnownDelivery(delivery, rule),
    ...makePrompt(rule, scope),
    workspace: rule.workspace && expandWorkspace(rule.workspace, scope),
    targets: expandTargets(rule.targets, scope),
    updateKey: toUpdateKey(rule, scope, delivery.receivedAt),
    payload: toEventFile(rule.agent, { body: verified, headers }, payload, webhook.scheme),
    ...describeCoalesced(coalesced),
    delivery: ofRule(key, rule.name),
  }
}

const describeCoalesced = (
  coalesced: ReturnType<typeof toCoalesced>,
): Pick<AcceptedEvent, 'coalesced' | 'detail'> => {
  if (coalesced === undefined) return {}
  if (typeof coalesced === 'string')
    return { detail: `it is not coalesced: ${coalesced} of the key is empty in this event` }
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
): { readonly id: string; readonly status: 'filtered'; readonly rule: string | undefined } => {
  const { path, name, maxRuns } = rule
  const limit = maxRuns ? formatMaxRuns(maxRuns) : 'max_runs'
  const why = { code: 'over-budget', detail: `the ${limit} is used up` }
  const known = toKnownDelivery(delivery, rule)
  const { id } = events.add(delivery.receivedAt, { state: 'filtered', ...why, ...known })
  if (budgets.passOver(rule))
    log.warn({ event: id, webhook: path, rule: name, code: why.code }, `the ${limit} is used up`)
  return { id, status: 'filtered', rule: name }
}

/** The headers of a delivery but those that prove who sent it. */
const withoutProof = (headers: SignatureHeaders, { forms }: SignatureScheme): SignatureHeaders => {
  const kept = Object.assign(Object.create(null) as Record<string, readonly string[]>, headers)
  for (const name of ['authorization', 'cookie', ...forms.map(({ header }) => header)])
    delete kept[name]
  return kept
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
