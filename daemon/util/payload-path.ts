import { DoorwardError } from '../../shared/errors.ts'
import { each, type Path } from '../../shared/paths.ts'

const arrayIndex = /^(0|[1-9]\d{0,9})$/

/**
 * The value at a path, or undefined if it does not exist. Own properties of objects and items of arrays
 * only. With `[*]` in the path, a list of all values there.
 */
export const valueAt = (payload: unknown, path: Path): unknown => {
  let value: unknown = payload
  for (const name of path) {
    if (name === each) return valuesIn(value, path.slice(path.indexOf(each) + 1))
    if (typeof value !== 'object' || value === null) return undefined
    if (Array.isArray(value) && !arrayIndex.test(name)) return undefined
    if (!Object.hasOwn(value, name)) return undefined
    value = (value as Record<string, unknown>)[name]
  }
  return value
}

const valuesIn = (list: unknown, path: Path): unknown[] => {
  if (!Array.isArray(list)) return []
  return list.flatMap((item: unknown) => {
    const value = valueAt(item, path)
    if (value === undefined) return []
    // Flat, so that a list in a list gives one list of values.
    return path.includes(each) ? value : [value]
  })
}

/**
 * Text unchanged, numbers and booleans as text, objects and arrays as JSON, null and undefined as
 * nothing. Throws `payload-not-json` for a value nested so deeply that it cannot be written as JSON.
 */
export const textOfValue = (value: unknown): string => {
  if (value === undefined || value === null) return ''
  if (typeof value === 'string') return value
  if (typeof value !== 'object') return String(value)
  try {
    return JSON.stringify(value)
  } catch (error) {
    // JSON.parse accepts any depth, JSON.stringify throws a RangeError.
    throw new DoorwardError('payload-not-json', 'the payload is nested too deeply', {
      cause: error,
    })
  }
}

/** The text at a path of a payload; undefined if it does not exist. */
export const textAt = (payload: unknown, ...names: readonly string[]): string | undefined => {
  const value = valueAt(payload, names)
  return typeof value === 'string' ? value : undefined
}

/** The list at a path of a payload; empty if there is none. */
export const listAt = (payload: unknown, ...names: readonly string[]): readonly unknown[] => {
  const value = valueAt(payload, names)
  return Array.isArray(value) ? (value as readonly unknown[]) : []
}

/** Undefined for anything but JSON. A byte order mark is skipped. */
export const parseJson = (source: string | Buffer): unknown => {
  try {
    return JSON.parse(typeof source === 'string' ? source : new TextDecoder().decode(source))
  } catch {
    return undefined
  }
}
