import type { EventName, Rule } from '../../../shared/config/rule.ts'
import type { Condition, Filter, ValueCondition } from '../../../shared/filter/conditions.ts'
import type { SignatureScheme } from '../../../shared/signatures/scheme.ts'
import { valueAt } from '../../util/payload-path.ts'
import type { CompiledRule, CompiledWebhook } from '../compiled-webhook.ts'
import type { EventScope } from '../read-delivery.ts'
import type { Payload } from '../body.ts'
import type { SignatureHeaders } from '../signatures/header.ts'

/** The kind of event as its sender names it, with the action where there is one: `pull_request.opened`. */
export type EventKind = { readonly event: string; readonly action: string | undefined }

/** Reads it from the field or header that the scheme names; undefined where there is none. */
export const readEventKind = (
  { event: places }: Pick<SignatureScheme, 'event'>,
  headers: SignatureHeaders,
  payload: Payload,
): EventKind | undefined => {
  if (!places) return undefined
  const event = textAtDots(payload, places.field) ?? toName(oneOf(headers, places.header))
  return event === undefined ? undefined : { event, action: textAtDots(payload, places.action) }
}

/** GitLab's `Subgroup Hook` is `subgroup`: such a payload has no `object_kind`. */
const toName = (title: string | undefined): string | undefined =>
  title?.replace(/^[\w ]+ Hook$/, (words) => words.slice(0, -5).toLowerCase().replaceAll(' ', '_'))

const textAtDots = (payload: Payload, dots: string | undefined): string | undefined => {
  const value = dots === undefined ? undefined : valueAt(payload, dots.split('.'))
  return typeof value === 'string' && value !== '' ? value : undefined
}

const oneOf = (headers: SignatureHeaders, name: string | undefined): string | undefined => {
  const [value, second] = (name === undefined ? undefined : headers[name]) ?? []
  return second === undefined && value !== '' ? value : undefined
}

/** `pull_request.opened` */
export const toEventName = ({ event, action }: EventKind): string =>
  action === undefined ? event : `${event}.${action}`

/** The event of a delivery as `on` names it. */
export const getEventName = (...delivery: Parameters<typeof readEventKind>): string | undefined => {
  const kind = readEventKind(...delivery)
  return kind && toEventName(kind)
}

/** True when one of the names is this event, with or without its action, or begins it and ends with `.*`. */
export const isNamed = (names: readonly EventName[], kind: EventKind | undefined): boolean => {
  if (!kind) return false
  const full = toEventName(kind)
  return names.some(
    (name) =>
      name === kind.event ||
      name === full ||
      (name.endsWith('.*') && `${full}.`.startsWith(name.slice(0, -1))),
  )
}

/** What a filter reads of a delivery. */
export type FilterScope = Pick<EventScope, 'event' | 'headers'>

/** The first condition that does not match, undefined when all match. */
export const firstMismatch = (scope: FilterScope, filter: Filter): Condition | undefined =>
  filter.find((condition) => !holds(scope, condition))

export const holds = (scope: FilterScope, condition: Condition): boolean => {
  if (condition.kind === 'value') return holdsFor(valueAt(scope, condition.path), condition)
  const isAny = condition.filters.some((filter) => firstMismatch(scope, filter) === undefined)
  return condition.kind === 'any' ? isAny : !isAny
}

/**
 * With `[*]` in the path one of the values has to be accepted by all tests. A negated test has to accept
 * none of them, so it also holds for a missing path.
 */
const holdsFor = (value: unknown, { isList, tests }: ValueCondition): boolean => {
  if (!isList) return tests.every(({ accepts, isNegated }) => accepts(value) !== isNegated)
  const values: readonly unknown[] = Array.isArray(value) ? value : []
  const wanted = tests.filter(({ isNegated }) => !isNegated)
  return (
    (wanted.length === 0 || values.some((item) => wanted.every(({ accepts }) => accepts(item)))) &&
    !tests.some(({ isNegated, accepts }) => isNegated && values.some(accepts))
  )
}

/** Why a rule does not match, from the configuration alone: values of the sender are not shown. */
export const findMiss = (
  { on, filter }: Pick<Rule, 'on' | 'filter'>,
  kind: EventKind | undefined,
  scope: FilterScope,
): string | undefined => {
  if (on && !isNamed(on, kind)) return 'its event is not one of on'
  const mismatch = firstMismatch(scope, filter)
  return mismatch && `the filter on ${mismatch.text} does not match`
}

/** The rules that a delivery runs, or why there are none. */
export const chooseRules = (
  { rules, scheme }: Pick<CompiledWebhook, 'rules' | 'scheme'>,
  headers: SignatureHeaders,
  scope: FilterScope,
): readonly CompiledRule[] | string => {
  const kind = rules.some(({ on }) => on) ? readEventKind(scheme, headers, scope.event) : undefined
  const misses: string[] = []
  const chosen = rules.filter((rule) => {
    const miss = findMiss(rule, kind, scope)
    if (miss !== undefined) misses.push(rule.name === undefined ? miss : `${rule.name}: ${miss}`)
    return miss === undefined
  })
  if (chosen.length > 0) return chosen
  const shown = misses.slice(0, mostMisses).join('; ')
  const more = misses.length - mostMisses
  const why = more > 0 ? `${shown}; and ${more} more` : shown
  return rules[0].name === undefined ? why : `no rule matches (${why})`
}

const mostMisses = 5
