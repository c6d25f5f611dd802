import { plainLines } from '../../shared/plain-text.ts'

const previewCharacters = 600

/** The first 600 characters of an answer, fit to be shown: for the record of its event. */
export const previewOf = (text: string): string => {
  const first = plainLines(text.slice(0, previewCharacters * 2)).slice(0, previewCharacters)
  if (first.length === text.length) return first
  // A copy: V8 makes a part of a text by pointing into it, which would keep the whole answer in memory.
  return Buffer.from(first).toString()
}
