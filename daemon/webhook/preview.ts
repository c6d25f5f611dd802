import { plainLines } from '../../shared/plain-text.ts'

const previewCharacters = 600
const harmlessRest = 8 * previewCharacters

/** The first 600 characters of an answer, fit to be shown: for the record of its event. */
export const previewOf = (text: string): string => {
  const first = plainLines(text.slice(0, previewCharacters * 2)).slice(0, previewCharacters)
  // V8 makes a part of a text by pointing into it, which keeps the whole text in memory.
  if (text.length <= harmlessRest) return first
  return Buffer.from(first).toString()
}
