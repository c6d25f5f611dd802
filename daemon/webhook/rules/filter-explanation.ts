import type { Explanation } from '../../../shared/api-explain.ts'
import {
  type Condition,
  describeTests,
  type Filter,
  type ValueCondition,
} from '../../../shared/filter/conditions.ts'
import { prefixHint } from '../../../shared/config/warnings.ts'
import { each, formatPath, type Path, startsWithEvent } from '../../../shared/paths.ts'
import { valueAt } from '../../util/payload-path.ts'
import { type FilterScope, holds } from './choose.ts'

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
