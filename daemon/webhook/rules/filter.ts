import type { Condition, Filter, ValueCondition } from '../../../shared/filter/conditions.ts'
import { valueAt } from '../../util/payload-path.ts'
import type { EventScope } from '../read-delivery.ts'

/** What a filter reads of a delivery. */
export type FilterScope = Pick<EventScope, 'event' | 'headers'>

/** Fourth stage: the first condition that does not match, undefined when all match. */
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
