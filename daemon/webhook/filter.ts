import type { FilterCondition } from '../../shared/config/rule.ts'
import type { Payload } from './parse.ts'
import { valueAt } from '../util/payload-path.ts'

/**
 * Fourth stage: the first condition that does not match, undefined when all match. Text, numbers
 * and booleans are compared as text; a missing path, null, an object or an array never matches.
 */
export const firstMismatch = (
  payload: Payload,
  conditions: readonly FilterCondition[],
): FilterCondition | undefined => conditions.find((condition) => !holds(payload, condition))

/** True when the value at the path of a condition is one that it expects. */
export const holds = (payload: Payload, { path, expected }: FilterCondition): boolean => {
  const value = valueAt(payload, path)
  return isScalar(value) && expected.includes(String(value))
}

const isScalar = (value: unknown): value is string | number | boolean =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
