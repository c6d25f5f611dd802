import { createHmac, timingSafeEqual } from 'node:crypto'
import { textAt } from './text-at.ts'

export type CommentMarks = {
  /** A hidden line by which a comment of ours is known again: it names event and part. */
  readonly markFor: (eventId: string, part: number, text: string) => string
  /** The body of a comment of ours. */
  readonly bodyOf: (mark: string, text: string) => string
  /** True for an event about a comment that this home wrote, and nobody has changed since. */
  readonly isOwnComment: (payload: unknown) => boolean
}

/** What is said of an event that is passed over for that. */
export const ownCommentDetail = 'it is about a comment of our own'

const begin = '<!-- doorward:'
const marked = /^<!-- doorward:(evt_[0-9a-f]{18}):(\d{1,3}) ([\w-]{43}) -->\s*/

/**
 * The loop guard. The mark is signed together with the text, by a key that only this home has: a stranger
 * can neither make one nor put one that was copied over words of their own, and so cannot have an event
 * passed over.
 */
export const createCommentMarks = (apiToken: string): CommentMarks => {
  const key = createHmac('sha256', apiToken).update('doorward mark of a comment').digest()
  const signature = (eventId: string, part: string, text: string): string =>
    createHmac('sha256', key)
      // White space may be changed on the way.
      .update(`${eventId}\n${part}\n${text.replaceAll(/\s+/g, ' ').trim()}`)
      .digest('base64url')

  return {
    markFor: (eventId, part, text) =>
      `${begin}${eventId}:${part} ${signature(eventId, String(part), text)} -->`,
    bodyOf: (mark, text) => `${mark}\n${text}`,
    isOwnComment: (payload) => {
      const body = textAt(payload, 'comment', 'body')
      if (body === undefined || !body.startsWith(begin)) return false
      const [line, eventId, part, given] = marked.exec(body) ?? []
      if (line === undefined || !eventId || !part || !given) return false
      const expected = signature(eventId, part, body.slice(line.length))
      return timingSafeEqual(Buffer.from(given), Buffer.from(expected))
    },
  }
}
