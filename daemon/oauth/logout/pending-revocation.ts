import { z } from 'zod'

/** One file in `tokens/revoke/`: tokens that a provider has still to take back. */
export const pendingRevocationSchema = z.looseObject({
  version: z.literal(1),
  provider: z.string(),
  tokens: z.object({
    accessToken: z.string().min(1),
    refreshToken: z.string().min(1).optional(),
  }),
  /** The client that the tokens belong to, with its secret: the remembered one may be forgotten by now. */
  client: z.object({ clientId: z.string().min(1), clientSecret: z.string().min(1).optional() }),
  account: z.object({ id: z.string(), name: z.string() }).nullable(),
  extent: z.enum(['grant', 'tokens']),
  since: z.iso.datetime(),
  /** How often the provider was asked in vain. */
  attempts: z.int().min(0),
  /** What came of the last attempt, in words that are safe to show. */
  lastFailure: z.string().optional(),
})
export type PendingRevocation = z.infer<typeof pendingRevocationSchema>

const second = 1000
const minute = 60 * second
const day = 24 * 60 * minute
const firstDelayMs = minute
const longestDelayMs = 6 * 60 * minute
const keepMs = 30 * day

/**
 * How long to wait after this many attempts in vain, in milliseconds: a minute, doubling to six hours,
 * and up to a quarter more, so that many do not come at once. `random` is from 0 to 1.
 */
export const retryDelayMs = (attempts: number, random: number): number => {
  const delay = Math.min(longestDelayMs, firstDelayMs * 2 ** Math.max(0, attempts - 1))
  return Math.round(delay * (1 + random / 4))
}

/** When an attempt was made (milliseconds since 1970), and how long to wait after it. */
export type Wait = { readonly from: number; readonly delayMs: number }

/**
 * True when the wait is over, by the clock on the wall, so that time spent asleep counts. A clock that
 * was set back is not waited for.
 */
export const isWaitOver = ({ from, delayMs }: Wait, now: number): boolean =>
  now < from || now - from >= delayMs

/** For how long to sleep at most, in milliseconds: a sleeping machine stops timers, so never for long. */
export const nextLookMs = (waits: readonly Wait[], now: number): number =>
  Math.min(minute, ...waits.map((wait) => Math.max(second, wait.from + wait.delayMs - now)))

/** The last day on which it is tried: 30 days after it began; milliseconds since 1970. */
export const giveUpAt = (since: number): number => since + keepMs

/** `2026-12-21`: the date until which a revocation that began then is tried. */
export const giveUpDate = (since: number): string =>
  new Date(giveUpAt(since)).toISOString().slice(0, 10)

/** What to keep of an attempt in vain. `now` in milliseconds since 1970. */
export const afterFailure = (
  pending: PendingRevocation,
  lastFailure: string,
  now: number,
): PendingRevocation => ({
  ...pending,
  // A clock that was set back must not make thirty days longer.
  since: new Date(Math.min(Date.parse(pending.since), now)).toISOString(),
  attempts: pending.attempts + 1,
  lastFailure,
})
