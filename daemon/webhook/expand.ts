import { DoorwardError } from '../../shared/errors.ts'
import type { Template } from '../../shared/template.ts'
import type { Payload } from './parse.ts'
import { valueAt } from './value-at.ts'

/**
 * Fifth stage: a template with the payload's values in place. One pass: what a value contains is
 * never expanded again. `textOf` decides how a value is written into the text. Throws
 * `body-too-large` for a prompt longer than a string can be.
 */
export const expand = (
  template: Template,
  payload: Payload,
  textOf: (value: unknown) => string = plainText,
): string => {
  const texts = template.parts.map((part) =>
    typeof part === 'string' ? part : textOf(valueAt(payload, part)),
  )
  try {
    return texts.join('')
  } catch (error) {
    // A template that repeats a large payload can ask for more than a string can hold.
    throw new DoorwardError('body-too-large', 'the prompt made of this payload is too long', {
      cause: error,
    })
  }
}

/**
 * Text as it is, numbers and booleans as text, objects and arrays as JSON, null and missing as
 * nothing. Throws `payload-not-json` for a value nested so deeply that it cannot be written as JSON.
 */
export const plainText = (value: unknown): string => {
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
