/** `Retry-After` (RFC 9110 section 10.2.3): seconds, or a date; in milliseconds from now, if it says so. */
export const retryAfterIn = (
  text: string | null | undefined,
  now: number = Date.now(),
): number | undefined => {
  if (text === null || text === undefined) return undefined
  if (/^\d{1,9}(\.\d{1,6})?$/.test(text)) return Number(text) * 1000
  const waitMs = Date.parse(text) - now
  return waitMs > 0 ? waitMs : undefined
}
