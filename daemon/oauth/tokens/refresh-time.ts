import type { TokenRecord } from './token-record.ts'

type Times = Pick<TokenRecord, 'obtainedAt' | 'expiresAt'>
type Lifetime = Times & Pick<TokenRecord, 'refreshToken' | 'ended'>

/** In milliseconds since 1970; without an end, endless. */
type ReadTimes = { readonly obtained: number; readonly end: number }

/** Read once: each asking for a token looks at them nine times. */
const known = new WeakMap<Times, ReadTimes>()
const parseTimes = (record: Times): ReadTimes => {
  const read = known.get(record)
  if (read) return read
  const { obtainedAt, expiresAt } = record
  const times = {
    obtained: Date.parse(obtainedAt),
    end: expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(expiresAt),
  }
  known.set(record, times)
  return times
}

/** True for a record whose access token can be renewed, as far as is known. */
export const isRenewable = ({
  refreshToken,
  ended,
}: Pick<TokenRecord, 'refreshToken' | 'ended'>): boolean => refreshToken !== undefined && !ended

/**
 * When to renew an access token in the background, in milliseconds since 1970: `aheadMs` before its end,
 * or a third of its lifetime if that is less, and up to a tenth of that earlier by chance, so that many
 * tokens are not renewed at once; but never sooner than 1 s after it came, whatever the provider says of
 * its lifetime. Undefined where it never ends or nothing can renew it.
 */
export const refreshTime = (
  record: Lifetime,
  aheadMs: number,
  random: number,
): number | undefined => {
  if (record.expiresAt === null || !isRenewable(record)) return undefined
  const { obtained, end } = parseTimes(record)
  const ahead = Math.min(aheadMs, lifetimeMs(record) / 3)
  const wanted = end - ahead * (1 + random / 10)
  return Math.max(wanted, obtained + soonestMs)
}

const soonestMs = 1000
const noticeableMs = 60_000

/**
 * True for a record that came at a time which is still to come: the clock was ahead then and has been set
 * since, so that the end of the token is not known.
 */
export const isFromFuture = (record: Times, now: number): boolean =>
  parseTimes(record).obtained > now + noticeableMs

/** How long an access token was good for when it came; endless for one that never ends. */
export const lifetimeMs = (record: Times): number => {
  const { obtained, end } = parseTimes(record)
  return Math.max(0, end - obtained)
}

/** How long an access token is good for from now on, in milliseconds; less than 0 once it has ended. */
export const validityMs = (record: Times, now: number): number => parseTimes(record).end - now

const defaultValidityMs = 60_000

/**
 * For how long whoever asks so wants a token, in milliseconds: by default a minute; of a token that lives
 * shorter than three minutes a third of its life is enough then, or each reader would have it renewed.
 */
export const wantedMs = (record: Times, minValidityMs: number | undefined): number =>
  minValidityMs ?? Math.min(defaultValidityMs, lifetimeMs(record) / 3)

/**
 * How long to wait after so many failures in a row before the provider is asked again by itself, in
 * milliseconds: 2 s, doubled each time up to 5 minutes, half of it by chance; never less than the
 * provider asked for, up to an hour.
 */
export const backoffMs = (
  failures: number,
  random: number,
  retryAfterMs: number | undefined,
): number => {
  const longest = Math.min(2000 * 2 ** Math.max(0, failures - 1), 5 * 60_000)
  const asked = Math.min(retryAfterMs ?? 0, 60 * 60_000)
  return Math.max(longest * (0.5 + random / 2), asked)
}
