/** `Retry-After` (RFC 9110 section 10.2.3): seconds, or a date; in milliseconds from now, or undefined. */
export const retryAfterIn = (
  text: string | null | undefined,
  now: number = Date.now(),
): number | undefined => {
  if (text === null || text === undefined) return undefined
  if (/^\d{1,9}(\.\d{1,6})?$/.test(text)) return Number(text) * 1000
  const waitMs = Date.parse(text) - now
  return waitMs > 0 ? waitMs : undefined
}

type GitHubAnswer = {
  readonly status: number
  /** A header by its name in lower case. */
  readonly header: (name: string) => string | null | undefined
  /** The `message` of its JSON. */
  readonly message: unknown
}

/** "Wait for at least one minute" where GitHub names no time. */
const unnamedMs = 60_000

/**
 * How long to wait for GitHub, in milliseconds, after a response for a reached rate limit: 429, or a 403 that
 * differs from a refusal only in headers or words. Undefined for every other response.
 * https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api#exceeding-the-rate-limit
 */
export const githubPauseMs = (
  { status, header, message }: GitHubAnswer,
  now: number = Date.now(),
): number | undefined => {
  if (status !== 403 && status !== 429) return undefined
  const retryAfter = header('retry-after') ?? undefined
  const isUsedUp = header('x-ratelimit-remaining') === '0'
  const isSaid = typeof message === 'string' && /rate limit|abuse/i.test(message)
  if (status === 403 && retryAfter === undefined && !isUsedUp && !isSaid) return undefined
  const reset = Number(header('x-ratelimit-reset') ?? Number.NaN)
  const resetMs =
    isUsedUp && Number.isFinite(reset) ? Math.max(reset * 1000 - now, 1000) : unnamedMs
  return retryAfterIn(retryAfter, now) ?? resetMs
}
