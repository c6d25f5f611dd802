import { DoorwardError, nameOf } from '../../shared/errors.ts'
import type { ReadyWebhook } from './ready-webhook.ts'
import type { SignatureHeaders } from './read-signature.ts'
import { type Refused, diagnose } from './signature-doctor.ts'

/**
 * Adds to a refusal what was found to be its cause, for the owner alone. Anything but a refused
 * signature is given back as it is.
 */
export type Examine = (
  error: unknown,
  bytes: Buffer,
  headers: SignatureHeaders,
  webhook: ReadyWebhook,
  nowMs: number,
) => unknown

const windowMs = 1000
const maxWebhookMs = 20
const maxTotalMs = 60

type Spent = { since: number; ms: number }

/**
 * Spends at most so much of each second on examinations, by webhook and in all, that a flood of bad
 * signatures costs no more than a few percent of a processor; what comes beyond is not examined, and
 * one that took longer is made up for in the seconds that follow. `clock` is in milliseconds.
 */
export const createExamine = (clock: () => number = () => performance.now()): Examine => {
  const total: Spent = { since: Number.NEGATIVE_INFINITY, ms: 0 }
  const byPath = new Map<string, Spent>()
  const spentAt = (path: string): Spent => {
    const known = byPath.get(path)
    if (known) return known
    const fresh = { since: Number.NEGATIVE_INFINITY, ms: 0 }
    byPath.set(path, fresh)
    return fresh
  }

  return (error, bytes, headers, webhook, nowMs) => {
    if (!(error instanceof DoorwardError) || error.code !== 'signature-invalid') return error
    const start = clock()
    const spent = [total, spentAt(webhook.path)] as const
    for (const [index, one] of spent.entries()) {
      const windows = Math.floor((start - one.since) / windowMs)
      if (windows < 1) continue
      one.since = start
      one.ms = Math.max(0, one.ms - windows * (index === 0 ? maxTotalMs : maxWebhookMs))
    }
    const isExhausted = spent[0].ms >= maxTotalMs || spent[1].ms >= maxWebhookMs
    const finding = isExhausted
      ? 'not examined: too many were refused in this second'
      : found({ bytes, headers, scheme: webhook.scheme, secrets: webhook.secrets(), nowMs })
    if (!isExhausted) {
      const took = clock() - start
      for (const one of spent) one.ms += took
    }
    return new DoorwardError(error.code, error.message, {
      localDetail: `${error.localDetail ?? error.message}; ${finding}`,
    })
  }
}

/** Whatever goes wrong here, the sender sees the same refusal. */
const found = (refused: Refused): string => {
  try {
    return diagnose(refused)
  } catch (error) {
    return `not examined to the end (${nameOf(error)})`
  }
}
