import { DoorwardError } from '../shared/errors.ts'

/**
 * Text as it is, numbers and booleans as text, objects and arrays as JSON, null and missing as
 * nothing. Throws `payload-not-json` for a value nested so deeply that it cannot be written as JSON.
 */
export const textOfValue = (value: unknown): string => {
  if (value === undefined || value === null) return ''
  if (typeof value === 'string') return value
  if (typeof value !== 'object') return String(value)
  try {
    return JSON.stringify(value)
  } catch (error) {
    // JSON.parse takes any depth, JSON.stringify does not: it ends in a RangeError.
    throw new DoorwardError('payload-not-json', 'the payload is nested too deeply', {
      cause: error,
    })
  }
}
