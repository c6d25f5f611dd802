import type { FilterCondition } from '../../shared/webhook-definition.ts'
import type { Payload } from './parse.ts'
import { valueAt } from './value-at.ts'

/**
 * Fourth stage: true when every condition holds. Text, numbers and booleans are compared as text; a
 * missing path, null, an object or an array never matches.
 */
export const matches = (payload: Payload, conditions: readonly FilterCondition[]): boolean =>
  conditions.every(({ path, expected }) => {
    const value = valueAt(payload, path)
    return isScalar(value) && expected.includes(String(value))
  })

const isScalar = (value: unknown): value is string | number | boolean =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
