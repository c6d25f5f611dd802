import { isByOwnApp, type LoopGuard } from '../delivery/loop-guard.ts'
import type { Spending } from '../usage/spending.ts'
import type { CompiledRule, CompiledWebhook } from './compiled-webhook.ts'
import type { SeenDeliveries } from './dedupe.ts'
import { toRuleKey } from './mentions/comment.ts'
import type { ReadDelivery } from './read-delivery.ts'
import type { RunBudgets } from './rules/budgets.ts'
import { chooseRules, isNamed, readEventKinds } from './rules/choose.ts'
import { type EventGroups, toCoalesced } from './rules/groups.ts'
import { findHandshake, type Handshake } from './senders/handshakes.ts'

/*
 * The one decision about a verified delivery: what becomes of it, and why. It changes nothing, so `explain`
 * asks the same as a delivery.
 */

/** The facts that the daemon knows besides the delivery. */
export type Facts = {
  readonly deliveries: Pick<SeenDeliveries, 'eventFor'>
  readonly groups: Pick<EventGroups, 'hasWaiting' | 'newerThan'>
  readonly budgets: Pick<RunBudgets, 'isOver'>
  readonly loopGuard: Pick<LoopGuard, 'ownDetail'> & Partial<Pick<LoopGuard, 'pressedEvent'>>
  /** Without it, no run is held to what it costs. */
  readonly spending?: Pick<Spending, 'over'>
  /** True for a delivery that ran before a restart, where its sender sends again what catch-up has read. */
  readonly isCaughtUp?: (webhook: CompiledWebhook, deliveryId: string) => boolean
}

export type Decision =
  /** The sender tests the address. */
  | { readonly kind: 'handshake'; readonly handshake: Handshake }
  /** It is about something that this home wrote. */
  | { readonly kind: 'own'; readonly detail: string }
  /** The button of a check of ours: its event shall run again. */
  | { readonly kind: 'pressed'; readonly detail: string; readonly event: string }
  /** It was accepted before, as these events. */
  | { readonly kind: 'duplicate'; readonly detail: string; readonly of: readonly string[] }
  /** No rule matches. */
  | { readonly kind: 'filtered'; readonly detail: string }
  | RunDecision

export type RunDecision = {
  readonly kind: 'run'
  readonly due: readonly CompiledRule[]
  /** Rules that match and have used up their `max_runs`. */
  readonly overBudget: readonly CompiledRule[]
  /** Rules that match and have no `budget` left, with that as a reason. */
  readonly overspent: readonly { readonly rule: CompiledRule; readonly why: string }[]
  /** Rules that match and have accepted a newer event with its key, with that as a reason. */
  readonly outdated: readonly { readonly rule: CompiledRule; readonly why: string }[]
  /** Some of its rules have run before: a redelivery runs only the rules that failed. */
  readonly isRepeat: boolean
}

type Question = (read: ReadDelivery, facts: Facts, nowMs: number) => Decision | undefined

/** Fourth stage: the first question with an answer decides. `nowMs` is of `performance.now()`. */
export const decide = (read: ReadDelivery, facts: Facts, nowMs: number): Decision => {
  for (const ask of questions) {
    const decision = ask(read, facts, nowMs)
    if (decision) return decision
  }
  return askRules(read, facts, nowMs)
}

const askCaughtUp: Question = ({ webhook, deliveryId, signed }, { isCaughtUp }) =>
  webhook.source && signed && deliveryId !== undefined && isCaughtUp?.(webhook, deliveryId)
    ? { kind: 'duplicate', detail: "it was read from the sender's API before", of: [] }
    : undefined

const askHandshake: Question = ({ webhook, headers, payload }) => {
  const ownSecrets = () => webhook.secrets().own
  const handshake = findHandshake(webhook.scheme, headers, payload, ownSecrets)
  return handshake && { kind: 'handshake', handshake }
}

const askOwn: Question = ({ payload, source }, { loopGuard }) => {
  const isOfApp = source === 'slack' && isByOwnApp(payload)
  const detail = isOfApp ? 'it is about a message of this app' : loopGuard.ownDetail(payload)
  return detail === undefined ? undefined : { kind: 'own', detail }
}

const askPressed: Question = ({ webhook, payload, key }, { loopGuard, deliveries }, nowMs) => {
  const event = webhook.source?.app === undefined ? undefined : loopGuard.pressedEvent?.(payload)
  if (event === undefined) return undefined
  const before = key && deliveries.eventFor(key, nowMs)
  if (before !== undefined)
    return { kind: 'duplicate', detail: `the same delivery as ${before}`, of: [before] }
  return { kind: 'pressed', detail: `a button of ${event} was pressed`, event }
}

const questions: readonly Question[] = [askCaughtUp, askHandshake, askPressed, askOwn]

const askRules = (read: ReadDelivery, facts: Facts, nowMs: number): Decision => {
  const rules = chooseRules(read.webhook, read.headers, read.scope)
  if (typeof rules === 'string') return { kind: 'filtered', detail: rules }
  const of: string[] = []
  const due: CompiledRule[] = []
  const overBudget: CompiledRule[] = []
  const outdated: { rule: CompiledRule; why: string }[] = []
  const overspent: { rule: CompiledRule; why: string }[] = []
  for (const rule of rules) {
    const key = toRuleKey(rule, read)
    const before = key && facts.deliveries.eventFor(key, nowMs)
    const why = before === undefined ? findNewer(rule, read, facts) : undefined
    if (before !== undefined) of.push(before)
    else if (why !== undefined) outdated.push({ rule, why })
    else if (!mayRun(rule, read, facts, nowMs)) overBudget.push(rule)
    else {
      const spent = facts.spending?.over(rule)
      if (spent === undefined) due.push(rule)
      else overspent.push({ rule, why: spent })
    }
  }
  if (of.length === rules.length)
    return { kind: 'duplicate', detail: `the same delivery as ${of.join(', ')}`, of }
  return { kind: 'run', due, overBudget, overspent, outdated, isRepeat: of.length > 0 }
}

const findNewer = (
  rule: CompiledRule,
  { scope, receivedAt }: ReadDelivery,
  { groups }: Facts,
): string | undefined => {
  const coalesced = toCoalesced(rule, scope, receivedAt)
  return typeof coalesced === 'object' ? groups.newerThan(coalesced) : undefined
}

/** The groups that a delivery ends, with the name of its event in `cancel_on`. */
export const listEnded = ({ webhook, headers, payload, scope, receivedAt }: ReadDelivery) => {
  if (!webhook.rules.some(({ coalesce }) => coalesce?.cancelOn)) return []
  const kinds = readEventKinds(webhook.scheme, headers, payload)
  return webhook.rules.flatMap((rule) => {
    const name = rule.coalesce?.cancelOn?.find((one) => isNamed([one], kinds))
    if (name === undefined) return []
    const coalesced = toCoalesced(rule, scope, receivedAt)
    return typeof coalesced === 'object' ? [{ name, coalesced }] : []
  })
}

/** Within `max_runs`, or instead of an event that has not run. */
export const mayRun = (
  rule: CompiledRule,
  { scope, receivedAt }: Pick<ReadDelivery, 'scope' | 'receivedAt'>,
  { budgets, groups }: Pick<Facts, 'budgets' | 'groups'>,
  nowMs: number,
): boolean => {
  if (!rule.maxRuns || !budgets.isOver(rule, nowMs)) return true
  const coalesced = toCoalesced(rule, scope, receivedAt)
  return typeof coalesced === 'object' && groups.hasWaiting(coalesced)
}
