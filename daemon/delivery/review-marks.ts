import { DeliveryError, TokenRefused } from './delivery-error.ts'
import type { PlacedComment } from './format/place-comments.ts'
import type { CommentMarks } from './loop-guard.ts'
import type { AgentReply } from './sender.ts'

/*
 * How a review finds those that the same rule has posted before on the same pull or merge request. Each of its texts
 * begins with the signed mark and a hidden line, which names the rule, and what the text is: the words of a review,
 * words that a newer review has replaced, or a comment with its file, its line and its words.
 */

type Kind = 'summary' | 'replaced' | 'comment'

/** A text of an earlier event of this rule. */
export type EarlierText = {
  readonly kind: Kind
  readonly eventId: string
  readonly line: string
  /** Without what is hidden. */
  readonly words: string
}

export class ReviewMarks {
  readonly #marks: CommentMarks
  readonly #eventId: string
  readonly #rule: string
  readonly #summaryLine: string
  readonly #replacedLine: string

  constructor(
    marks: CommentMarks,
    { eventId, webhook, rule = '' }: Pick<AgentReply, 'eventId' | 'webhook' | 'rule'>,
    address: string,
  ) {
    this.#marks = marks
    this.#eventId = eventId
    this.#rule = JSON.stringify(['review', webhook, rule, address])
    this.#summaryLine = marks.halvesLine(this.#rule, 'summary')
    this.#replacedLine = marks.halvesLine(this.#rule, 'replaced')
  }

  /** The words of a review, with their mark. */
  summary(text: string): MarkedText {
    return this.#sign(this.#eventId, 1, this.#summaryLine, text)
  }

  /** Words in the place of those of an earlier event. */
  replaced(eventId: string, text: string): MarkedText {
    return this.#sign(eventId, 1, this.#replacedLine, text)
  }

  /** A comment, by the line that `linesOf` has for it. */
  comment(part: number, line: string, text: string): MarkedText {
    return this.#sign(this.#eventId, part, line, text)
  }

  /** The hidden lines of comments: equal for the same words on the same text of a line of a file. */
  linesOf(comments: readonly PlacedComment[]): ReadonlyMap<PlacedComment, string> {
    const counts = new Map<string, number>()
    return new Map(
      comments.map((comment) => {
        const { path, side, line, start, at, body } = comment
        // The text of a line of a large file is not known.
        const where = [path, side, at.text || line, start && line - start.line]
        const one = JSON.stringify([...where, body.replaceAll(/\s+/g, ' ').trim()])
        const count = counts.get(one) ?? 0
        counts.set(one, count + 1)
        return [comment, this.#marks.halvesLine(this.#rule, `${one} ${count}`)]
      }),
    )
  }

  /** What an unchanged text of an earlier event of this rule is; undefined for all others. */
  read(body: string): EarlierText | undefined {
    const found = this.#marks.read(body)
    if (!found || found.eventId === this.#eventId) return undefined
    const { eventId, text } = found
    const line = (text.split('\n', 1)[0] ?? '').trim()
    const earlier = { eventId, line, words: text.slice(text.indexOf('\n') + 1).trim() }
    if (line === this.#summaryLine) return { kind: 'summary', ...earlier }
    if (line === this.#replacedLine) return { kind: 'replaced', ...earlier }
    const length = this.#summaryLine.length - ' -->'.length - halfLength
    const isOfRule = line.slice(0, length) === this.#summaryLine.slice(0, length)
    return isOfRule ? { kind: 'comment', ...earlier } : undefined
  }

  #sign(eventId: string, part: number, line: string, text: string): MarkedText {
    const words = `${line}\n${text}`
    const mark = this.#marks.markFor(eventId, part, words)
    return { mark, body: this.#marks.toBody(mark, words) }
  }
}

const halfLength = 8

export type MarkedText = { readonly mark: string; readonly body: string }

/** The only words of a review that a newer one has replaced. */
export const describeReplaced = (url: string | undefined): string =>
  url === undefined
    ? 'A newer review replaces this one.'
    : `[A newer review](${url}) replaces this one.`

/** For the text of a review whose comments are there already; empty for none. */
export const describeRepeated = (count: number): string => {
  if (count === 0) return ''
  return count === 1
    ? '_A comment of an earlier review still applies, and is not repeated._'
    : `_${count} comments of earlier reviews still apply, and are not repeated._`
}

/** Calls, and returns what failed for the event: the review itself is posted, and must not be posted again. */
export const tellFailure = async (
  server: string,
  what: string,
  call: () => Promise<void>,
): Promise<string[]> => {
  try {
    await call()
    return []
  } catch (error) {
    if (error instanceof TokenRefused) return [`${what}: ${server} refused the token`]
    if (!(error instanceof DeliveryError)) throw error
    return [`${what}: ${error.message}`]
  }
}
