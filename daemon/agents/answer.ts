/** What an agent answered; `cut` when it said more than its `output_limit`. */
export type Answer = { readonly text: string; readonly cut: boolean }

/** Cuts a text to so many bytes of UTF-8, at a character, and says so in it. */
export const cutTo = (text: string, limitBytes: number): Answer => {
  // No character takes more than three bytes: most texts need not be looked at.
  if (text.length * 3 <= limitBytes || Buffer.byteLength(text) <= limitBytes)
    return { text, cut: false }
  const bytes = Buffer.from(text).subarray(0, limitBytes)
  return { text: cutText(bytes, limitBytes), cut: true }
}

/** The mark under a cut answer. A character that was cut in two is left out. */
export const cutText = (bytes: Buffer, limitBytes: number): string =>
  `${new TextDecoder().decode(bytes, { stream: true })}\n[cut: longer than ${limitBytes} bytes]`
