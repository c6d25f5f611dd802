import type { DotPath } from '../shared/templates.ts'

const arrayIndex = /^(0|[1-9]\d{0,9})$/

/**
 * The value at a path, or undefined where there is none. Own properties only, array items by index;
 * text and numbers have nothing inside.
 */
export const valueAt = (payload: unknown, path: DotPath): unknown => {
  let value: unknown = payload
  for (const name of path) {
    if (typeof value !== 'object' || value === null) return undefined
    if (Array.isArray(value) && !arrayIndex.test(name)) return undefined
    if (!Object.hasOwn(value, name)) return undefined
    value = (value as Record<string, unknown>)[name]
  }
  return value
}
