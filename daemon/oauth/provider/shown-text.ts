/**
 * What a provider calls somebody or something, as one line that a person can read: without characters
 * that hide or reorder others, 200 at most. Undefined for what is no text.
 */
export const textOf = (value: unknown): string | undefined => {
  if (typeof value === 'number') return String(value)
  if (typeof value !== 'string') return undefined
  const text = value
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '')
    .trim()
    .slice(0, 200)
    // Half a character, as a provider may send it or the cut may leave it.
    .replaceAll(/\p{Cs}/gu, '')
  return text === '' ? undefined : text
}

/** An error code that is safe to show: words of RFC 6749 section 5.2, never something like a token. */
export const safeErrorCode = (text: unknown): string | undefined =>
  typeof text === 'string' && /^[a-z]+(_[a-z]+)*$/.test(text) && text.length <= 48
    ? text
    : undefined
