import { valueAt } from '../value-at.ts'

/** The text under these names of a payload; undefined where there is none. */
export const textAt = (payload: unknown, ...names: readonly string[]): string | undefined => {
  const value = valueAt(payload, names)
  return typeof value === 'string' ? value : undefined
}
