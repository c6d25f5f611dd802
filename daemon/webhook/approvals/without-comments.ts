import { DoorwardError } from '../../../shared/errors.ts'
import { parseAnswer } from '../../delivery/format/review.ts'

/** An answer without some of its comments, by their place from 0. Throws `request-invalid` for a place it has not. */
export const withoutComments = (answer: string, without: readonly number[]): string => {
  const { text, comments, conclusion, others } = parseAnswer(answer)
  const unknown = without.find((place) => place >= comments.length)
  if (unknown !== undefined)
    throw new DoorwardError(
      'request-invalid',
      `without: the answer has ${comments.length} comments, and none at ${unknown}`,
    )
  const left = comments
    .filter((_, place) => !without.includes(place))
    .map(({ startLine, startSide, ...comment }) => ({
      ...comment,
      ...(startLine !== undefined && { start_line: startLine, start_side: startSide }),
    }))
  // Requests can be in the same block.
  const block = {
    ...others,
    ...(left.length > 0 && { comments: left }),
    ...(conclusion && { conclusion }),
  }
  if (Object.keys(block).length === 0) return text
  // First, as a fence in the text may have no end.
  return `~~~~json\n${JSON.stringify(block)}\n~~~~\n\n${text}`
}
