import { DoorwardError, type ErrorCode } from '../../shared/errors.ts'

/** The answer of an agent; `cut` when it is longer than the `output_limit`. */
export type Answer = {
  readonly text: string
  readonly cut: boolean
  /** A note about the run for the owner. */
  readonly note?: string
}

/** Cuts a text to this many bytes of UTF-8, at a character, and adds a mark. */
export const cutTo = (text: string, limitBytes: number): Answer => {
  // No UTF-16 unit takes more than three bytes: most texts need no count.
  if (text.length * 3 <= limitBytes || Buffer.byteLength(text) <= limitBytes)
    return { text, cut: false }
  const bytes = Buffer.from(text).subarray(0, limitBytes)
  return { text: cutText(bytes, limitBytes), cut: true }
}

/** A cut answer with its mark. Half a character at the end is left out. */
export const cutText = (bytes: Buffer, limitBytes: number): string =>
  `${new TextDecoder().decode(bytes, { stream: true })}\n[cut: longer than ${limitBytes} bytes]`

/** Why there is no answer. The event also shows the program's own words, and the way out. */
export const toAgentError = (
  code: ErrorCode,
  message: string,
  { words = '', hint, cause }: { words?: string; hint?: string | undefined; cause?: unknown } = {},
): DoorwardError =>
  new DoorwardError(code, message, {
    cause,
    hint,
    localDetail: `${message}${words && `: ${words}`}${hint === undefined ? '' : ` (${hint})`}`,
  })
