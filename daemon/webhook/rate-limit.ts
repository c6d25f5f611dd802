import { DoorwardError } from '../../shared/errors.ts'
import type { Rate } from '../../shared/text.ts'

/** Limits the verified deliveries of each webhook. */
export type RateLimits = {
  /** Counts one. Throws `rate-limited` with the time until the next one is accepted. */
  readonly count: (webhook: string, rate: Rate, nowMs: number) => void
  readonly snapshot: (nowMs: number) => readonly BucketCopy[]
  readonly restore: (copies: readonly BucketCopy[], nowMs: number) => void
}

type Bucket = { readonly rate: Rate; left: number; atMs: number }

/** A bucket for another process, whose clock starts elsewhere. */
type BucketCopy = {
  readonly webhook: string
  readonly rate: Rate
  readonly left: number
  readonly ageMs: number
}

/**
 * One token bucket for each webhook, refilled evenly. A bucket is kept until its rate changes, whatever else
 * changes in the configuration.
 */
export const createRateLimits = (): RateLimits => {
  const buckets = new Map<string, Bucket>()
  return {
    count: (webhook, rate, nowMs) => {
      const known = buckets.get(webhook)
      const bucket =
        known && isSame(known.rate, rate) ? known : { rate, left: rate.count, atMs: nowMs }
      buckets.set(webhook, bucket)
      // A clock that is set back must not empty the bucket.
      const passedMs = Math.max(nowMs - bucket.atMs, 0)
      bucket.left = Math.min(rate.count, bucket.left + (passedMs / rate.perMs) * rate.count)
      bucket.atMs = nowMs
      if (bucket.left < 1) throw tooMany(rate, ((1 - bucket.left) / rate.count) * rate.perMs)
      bucket.left -= 1
    },
    snapshot: (nowMs) =>
      [...buckets].map(([webhook, { rate, left, atMs }]) => ({
        webhook,
        rate,
        left,
        ageMs: nowMs - atMs,
      })),
    restore: (copies, nowMs) => {
      for (const { webhook, rate, left, ageMs } of copies)
        buckets.set(webhook, { rate, left, atMs: nowMs - ageMs })
    },
  }
}

const isSame = (a: Rate, b: Rate): boolean => a.count === b.count && a.perMs === b.perMs

const tooMany = ({ count, perMs }: Rate, retryAfterMs: number) =>
  new DoorwardError('rate-limited', 'too many deliveries, try again later', {
    localDetail: `more than rate_limit allows (${count} in ${perMs / 1000} s)`,
    retryAfterMs,
  })
