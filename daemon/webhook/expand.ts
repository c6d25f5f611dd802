import { DoorwardError } from '../../shared/errors.ts'
import type { Template } from '../../shared/templates.ts'
import { cutValue } from './cut-value.ts'
import { fence, fenceNotice } from './fence.ts'
import type { Payload } from './parse.ts'
import { textOfValue } from '../text-of-value.ts'
import { valueAt } from '../value-at.ts'

/** How values of the payload stand in a prompt. */
export type ValueStyle = {
  readonly eventText: 'fenced' | 'plain'
  /** Characters of one value, the rest is cut off and that is said; undefined means no limit. */
  readonly maxValueLength: number | undefined
}

/** A piece of a prompt: the owner's own words, or with `from` what was put in for `{{from}}`. */
export type Part = { readonly text: string; readonly from?: string }

/**
 * Fifth stage: the prompt, with the payload's values in place. One pass: what a value contains is
 * never expanded again. `fenceId` is the random name of this run's marker, which no value can know.
 * Throws `body-too-large` for a prompt longer than a string can be.
 */
export const expandPrompt = (
  template: Template,
  payload: Payload,
  style: ValueStyle,
  fenceId: string,
): string => {
  let hasValue = false
  const prompt = joined(
    template.parts.map((part) => {
      if (typeof part === 'string') return part
      const text = styled(valueAt(payload, part), style, fenceId)
      hasValue ||= text !== ''
      return text
    }),
  )
  return hasValue && style.eventText === 'fenced' ? joined([fenceNotice(fenceId), prompt]) : prompt
}

/** The pieces that `expandPrompt` makes a prompt of, for who wants to see what came from where. */
export const promptParts = (
  template: Template,
  payload: Payload,
  style: ValueStyle,
  fenceId: string,
): Part[] => {
  const parts = template.parts.map((part): Part =>
    typeof part === 'string'
      ? { text: part }
      : {
          text: styled(valueAt(payload, part), style, fenceId),
          from: ['event', ...part].join('.'),
        },
  )
  const hasValue = parts.some(({ text, from }) => from !== undefined && text !== '')
  return hasValue && style.eventText === 'fenced'
    ? [{ text: fenceNotice(fenceId) }, ...parts]
    : parts
}

const styled = (
  value: unknown,
  { eventText, maxValueLength = Number.POSITIVE_INFINITY }: ValueStyle,
  fenceId: string,
): string => {
  const text = textOfValue(value)
  return eventText === 'fenced'
    ? fence(text, fenceId, maxValueLength, typeof value === 'object')
    : cutValue(text, maxValueLength)
}

/**
 * A template with the payload's values in place as they are, or as `textOf` writes them; one pass.
 * Throws as `expandPrompt` does.
 */
export const expand = (
  template: Template,
  payload: Payload,
  textOf: (value: unknown) => string = textOfValue,
): string =>
  joined(
    template.parts.map((part) =>
      typeof part === 'string' ? part : textOf(valueAt(payload, part)),
    ),
  )

const joined = (texts: readonly string[]): string => {
  try {
    return texts.join('')
  } catch (error) {
    // A template that repeats a large payload can ask for more than a string can hold.
    throw new DoorwardError('body-too-large', 'the prompt made of this payload is too long', {
      cause: error,
    })
  }
}
