import { plainLines } from '../../shared/text.ts'

const previewCharacters = 600

/** Where a preview is copied: a character of UTF-16 takes three bytes of UTF-8 at most. */
const room = Buffer.allocUnsafeSlow(previewCharacters * 3)

/** The first 600 characters of an answer, fit to be shown: for the record of its event. */
export const previewOf = (text: string): string => {
  const head = text.slice(0, previewCharacters)
  // Nearly always; where something is taken out there is room for more.
  const isPlain = plainLines(head) === head
  const first = isPlain
    ? head
    : plainLines(text.slice(0, previewCharacters * 2)).slice(0, previewCharacters)
  if (text.length <= previewCharacters) return first
  // V8 makes a part of a text by pointing into it, which keeps the whole text in memory.
  return room.toString('utf8', 0, room.write(first))
}
