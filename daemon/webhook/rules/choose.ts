import type { EventName, Rule } from '../../../shared/config/rule.ts'
import type { SignatureScheme } from '../../../shared/signatures/scheme.ts'
import { valueAt } from '../../util/payload-path.ts'
import { findMentionMiss } from '../mentions/comment.ts'
import { findPathsMiss } from './changes.ts'
import type { CompiledRule, CompiledWebhook } from '../compiled-webhook.ts'
import type { EventScope } from '../read-delivery.ts'
import type { Payload } from '../body.ts'
import type { SignatureHeaders } from '../signatures/header.ts'
import type { Explanation } from '../../../shared/api/explain.ts'
import {
  type Condition,
  describeTests,
  type Filter,
  type ValueCondition,
} from '../../../shared/filter/conditions.ts'
import { prefixHint } from '../../../shared/config/warnings.ts'
import { each, formatPath, type Path, startsWithEvent } from '../../../shared/paths.ts'

/** The kind of event as its sender names it, with the action where there is one: `pull_request.opened`. */
type EventKind = {
  readonly event: string
  readonly action: string | undefined
  /** Another name of it. */
  readonly also?: string | undefined
}

/** Of a sender with more kinds in one body the first count. */
const maxKinds = 200

/**
 * Reads the kinds from the fields or headers that the scheme names: one, several where a body has several
 * events, none where nothing names it.
 */
export const readEventKinds = (
  { event: places }: Pick<SignatureScheme, 'event'>,
  headers: SignatureHeaders,
  payload: Payload,
): readonly EventKind[] => {
  if (!places) return []
  const items = listItems(places, payload)
  const kinds = new Map<string, EventKind>()
  for (const item of items.length === 0 ? [payload] : items) {
    const kind = readKind(places, headers, payload, item)
    if (kind && kinds.size < maxKinds) kinds.set(toEventName(kind), kind)
  }
  return [...kinds.values()]
}

type Places = NonNullable<SignatureScheme['event']>

/** The events of a body of this sender that has several. */
export const listItems = (
  { items }: Pick<Places, 'items'>,
  payload: Payload,
): readonly unknown[] => {
  const found = items && valueAt(payload, items)
  return Array.isArray(found) ? (found as readonly unknown[]) : []
}

const readKind = (
  { field, action, header, headers: pair, isActionNamed }: Places,
  headers: SignatureHeaders,
  payload: Payload,
  item: Payload,
): EventKind | undefined => {
  const event =
    textAtDots(item, field) ?? textAtDots(payload, field) ?? toName(oneOf(headers, header))
  const done = textAtDots(item, action)
  if (event !== undefined) return { event, action: done, ...(isActionNamed && { also: done }) }
  const other = oneOf(headers, pair?.[0])
  return other === undefined ? undefined : { event: other, action: oneOf(headers, pair?.[1]) }
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

/** The events of a delivery as `on` names them. */
export const getEventNames = (...delivery: Parameters<typeof readEventKinds>): readonly string[] =>
  readEventKinds(...delivery).map(toEventName)

/** For people, undefined where nothing names the event. */
export const showEventNames = (names: readonly string[]): string | undefined => {
  const more = names.length - mostNames
  const shown = names.slice(0, mostNames).join(', ')
  return names.length === 0 ? undefined : more > 0 ? `${shown} and ${more} more` : shown
}

const mostNames = 3

/**
 * True when one of the names is one of these events, with or without its action, or begins it and ends with
 * `.*`.
 */
export const isNamed = (names: readonly EventName[], kinds: readonly EventKind[]): boolean =>
  kinds.some(({ also, ...kind }) => {
    const full = toEventName(kind)
    return names.some(
      (name) =>
        name === kind.event ||
        name === full ||
        (also !== undefined && name === also) ||
        (name.endsWith('.*') && `${full}.`.startsWith(name.slice(0, -1))),
    )
  })

/** What a filter reads of a delivery. */
type FilterScope = Pick<EventScope, 'event' | 'headers'>

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
  rule: Pick<Rule, 'isPaused' | 'on' | 'filter' | 'coalesce' | 'paths' | 'workspace' | 'mention'>,
  kinds: readonly EventKind[],
  scope: FilterScope,
  scheme: string,
): string | undefined => {
  const { on, filter, coalesce } = rule
  if (rule.isPaused) return 'it is paused'
  if (on && !isNamed(on, kinds)) return 'its event is not one of on'
  if (isNamed(coalesce?.cancelOn ?? [], kinds)) return 'its event is one of coalesce.cancel_on'
  const mismatch = firstMismatch(scope, filter)
  if (mismatch) return `the filter on ${mismatch.text} does not match`
  return findMentionMiss(rule.mention, scheme, scope.event) ?? findPathsMiss(rule, scope)
}

const namesEvents = ({ on, coalesce }: Pick<Rule, 'on' | 'coalesce'>): boolean =>
  on !== undefined || coalesce?.cancelOn !== undefined

/** The rules that a delivery runs, or why there are none. */
export const chooseRules = (
  { rules, scheme }: Pick<CompiledWebhook, 'rules' | 'scheme'>,
  headers: SignatureHeaders,
  scope: FilterScope,
): readonly CompiledRule[] | string => {
  const kinds = rules.some(namesEvents) ? readEventKinds(scheme, headers, scope.event) : []
  const misses: string[] = []
  const chosen = rules.filter((rule) => {
    const miss = findMiss(rule, kinds, scope, scheme.name)
    if (miss !== undefined) misses.push(rule.name === undefined ? miss : `${rule.name}: ${miss}`)
    return miss === undefined
  })
  if (chosen.length > 0) return chosen
  const shown = misses.slice(0, mostMisses).join('; ')
  const more = misses.length - mostMisses
  const why = more > 0 ? `${shown}; and ${more} more` : shown
  if (rules.length === 0) return 'there is no rule yet'
  return rules[0]?.name === undefined ? why : `no rule matches (${why})`
}

const mostMisses = 5

type Row = Explanation['filter'][number]

/** Each condition with the actual value, and those of `any` and `none` after them. */
export const explainFilter = (scope: FilterScope, filter: Filter, within?: string): Row[] =>
  filter.flatMap((condition) => {
    const row = {
      path: condition.text,
      matches: holds(scope, condition),
      ...(within !== undefined && { within }),
    }
    if (condition.kind === 'value')
      return [{ ...row, ...explainValue(scope, condition), ...getHint(scope, condition) }]
    const { kind, text, filters } = condition
    const inner = filters.flatMap((other, index) =>
      explainFilter(scope, other, `${within === undefined ? '' : `${within}.`}${text}[${index}]`),
    )
    return [
      { ...row, expected: [], condition: describeGroup(kind, filters.length), actual: null },
      ...inner,
    ]
  })

const describeGroup = (kind: Exclude<Condition['kind'], 'value'>, count: number): string => {
  if (kind === 'any')
    return count === 1 ? 'its filter to match' : `one of its ${count} filters to match`
  return count === 1 ? 'its filter not to match' : `none of its ${count} filters to match`
}

const explainValue = (
  scope: FilterScope,
  condition: ValueCondition,
): Pick<Row, 'expected' | 'condition' | 'actual'> => {
  const actual = valueAt(scope, condition.path)
  return {
    expected: condition.tests.flatMap(({ expected }) => expected),
    condition: describeTests(condition),
    actual: actual === undefined ? null : (actual as Row['actual']),
  }
}

/** The hint for a path that does not exist, where a similar one does. */
const getHint = (scope: FilterScope, { path, text }: ValueCondition): Pick<Row, 'hint'> => {
  const [root, ...names] = path
  const actual = valueAt(scope, path)
  if (root !== 'event' || (Array.isArray(actual) ? actual.length > 0 : actual !== undefined))
    return {}
  if (startsWithEvent(names) && valueAt(scope, names) !== undefined)
    return { hint: prefixHint(text) }
  const similar = names.length > maxNames ? undefined : findSimilar(scope.event, names)
  return similar ? { hint: `did you mean ${formatPath(similar)}?` } : {}
}

const maxNames = 12

/** The path with names that have dots, and with `[*]` for lists, at which there is a value. */
const findSimilar = (value: unknown, path: Path): Path | undefined => {
  const [name] = path
  if (name === undefined) return value === undefined ? undefined : []
  if (typeof value !== 'object' || value === null) return undefined
  const inside = (key: string, from: Path, rest: Path): Path | undefined => {
    const similar = Object.hasOwn(value, key)
      ? findSimilar((value as Record<string, unknown>)[key], rest)
      : undefined
    return similar && [...from, ...similar]
  }
  if (Array.isArray(value) && (name === each || !/^\d+$/.test(name)))
    return inside('0', [each], name === each ? path.slice(1) : path)
  for (let count = 1; count <= path.length; count += 1) {
    const key = path.slice(0, count)
    if (key.includes(each)) return undefined
    const similar = inside(key.join('.'), [key.join('.')], path.slice(count))
    if (similar) return similar
  }
  return undefined
}
