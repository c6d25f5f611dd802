import type { TokenRecord } from './token-record.ts'

type Times = Pick<TokenRecord, 'obtainedAt' | 'expiresAt'>
type Lifetime = Times & Pick<TokenRecord, 'refreshToken' | 'ended'>

const aheadMs = 5 * 60_000
const shortestRefreshMs = 60_000
const noticeableMs = 60_000
const defaultValidityMs = 60_000

/** True for a record whose access token can be refreshed, as far as known. */
export const isRenewable = ({
  refreshToken,
  ended,
}: Pick<TokenRecord, 'refreshToken' | 'ended'>): boolean => refreshToken !== undefined && !ended

/**
 * When to refresh an access token in the background, in milliseconds since 1970: five minutes before it
 * expires, or a third of its lifetime if that is less, and randomly up to a tenth of that earlier, so that
 * many tokens are not refreshed together. Undefined where it never expires or cannot be refreshed, and where
 * that time comes within a minute: a provider decides the lifetime, and must not keep the daemon busy. Such
 * a token is refreshed for the program that asks for it.
 */
export const refreshTime = (record: Lifetime, random: number): number | undefined => {
  if (record.expiresAt === null || !isRenewable(record)) return undefined
  const ahead = Math.min(aheadMs, lifetimeMs(record) / 3)
  const at = Date.parse(record.expiresAt) - ahead * (1 + random / 10)
  return at - Date.parse(record.obtainedAt) < shortestRefreshMs ? undefined : at
}

/**
 * True for a record whose time is in the future: the clock was ahead when it was obtained and has been set
 * since, so that it is not known when the token expires.
 */
export const isFromFuture = ({ obtainedAt }: Times, now: number): boolean =>
  Date.parse(obtainedAt) > now + noticeableMs

/** How long an access token was valid when it was obtained; infinite for one that never expires. */
export const lifetimeMs = (record: Times): number =>
  Math.max(0, validityMs(record, Date.parse(record.obtainedAt)))

/** How long an access token is valid from now on, in milliseconds; negative once it has expired. */
export const validityMs = ({ expiresAt }: Times, now: number): number =>
  expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(expiresAt) - now

/**
 * How long a token must be valid for a caller, in milliseconds: by default a minute, or a third of the
 * lifetime if that is less; otherwise every reader would refresh a token that lives less than three minutes.
 */
export const wantedMs = (record: Times, minValidityMs: number | undefined): number =>
  minValidityMs ?? Math.min(defaultValidityMs, lifetimeMs(record) / 3)

/**
 * How long to wait after this many failures in a row, in milliseconds: 2 s, doubled each time up to 5
 * minutes, half of it random; at least as long as the provider asked for, up to an hour.
 */
export const backoffMs = (
  failures: number,
  random: number,
  retryAfterMs: number | undefined,
): number => {
  const longest = Math.min(2000 * 2 ** Math.max(0, failures - 1), 5 * 60_000)
  const requested = Math.min(retryAfterMs ?? 0, 60 * 60_000)
  return Math.max(longest * (0.5 + random / 2), requested)
}
