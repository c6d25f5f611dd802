import { setTimeout as wait } from 'node:timers/promises'
import { describeAbort, isCancelled } from '../util/concurrency.ts'
import { DeliveryError } from './delivery-error.ts'

export type RetryRules = {
  /** Attempts after the first one. */
  readonly retries: number
  /** Doubles each time, plus up to as much again at random. */
  readonly firstWaitMs: number
  readonly maxWaitMs: number
  /** From the first attempt to the start of the last. */
  readonly totalMs: number
  /** For one attempt. */
  readonly attemptMs: number
  /** For a mail server that has the text: a repeat would be a second mail. */
  readonly mailTimeoutMs: number
}

export const retryRules: RetryRules = {
  retries: 5,
  firstWaitMs: 1000,
  maxWaitMs: 30_000,
  totalMs: 180_000,
  attemptMs: 30_000,
  // RFC 5321 section 4.5.3.2.6: a shorter timeout makes many copies of a mail.
  mailTimeoutMs: 600_000,
}

export type RetryOptions = {
  readonly signal: AbortSignal
  readonly isIdempotent: boolean
  /** An attempt failed and another one follows. */
  readonly onRetry: (error: DeliveryError) => void
}

/**
 * Repeats an attempt until it succeeds, another one makes no sense, or the rules end it. An attempt without
 * a response is repeated only where that is idempotent. Throws the last `DeliveryError`.
 */
export const retry = async <Value>(
  attempt: (mayHaveArrived: boolean) => Promise<Value>,
  { signal, isIdempotent, onRetry }: RetryOptions,
  rules: RetryRules = retryRules,
): Promise<Value> => {
  const lastStart = performance.now() + rules.totalMs
  let mayHaveArrived = false
  let last: DeliveryError | undefined
  for (let tries = 0; ; tries += 1)
    try {
      signal.throwIfAborted()
      return await attempt(mayHaveArrived)
    } catch (error) {
      if (error instanceof DeliveryError) {
        last = error
        mayHaveArrived ||= error.mayHaveArrived
      } else if (!signal.aborted) throw error
      const { retryability = 'permanent', retryAfterMs = 0 } = last ?? {}
      const isRepeated =
        retryability === 'retryable' || (retryability === 'indeterminate' && isIdempotent)
      const isInTime = performance.now() + retryAfterMs <= lastStart
      if (!last || signal.aborted || !isRepeated || !isInTime || tries === rules.retries)
        throw toFinalError(last, signal, mayHaveArrived)
      onRetry(last)
      const backoffMs = rules.firstWaitMs * 2 ** tries * (1 + Math.random())
      const waitMs = retryAfterMs + Math.min(backoffMs, rules.maxWaitMs)
      // The next attempt reports an abort.
      await wait(waitMs, undefined, { signal }).catch(() => undefined)
    }
}

/** The last failure, with what the reader must know about all attempts. */
const toFinalError = (
  last: DeliveryError | undefined,
  signal: AbortSignal,
  mayHaveArrived: boolean,
): DeliveryError => {
  if (!last)
    return new DeliveryError('retryable', `${describeAbort(signal)} before the delivery`, {
      code: isCancelled(signal) ? 'event-cancelled' : 'stopping',
    })
  const { code, hint, retryability, retryAfterMs, cause } = last
  const notes: string[] = []
  if (retryability === 'retryable' && signal.aborted)
    notes.push(isCancelled(signal) ? 'the event was cancelled' : 'the daemon stops')
  else if (retryability === 'retryable' && retryAfterMs !== undefined)
    notes.push(`it asks for a pause of ${Math.ceil(retryAfterMs / 1000)} s`)
  if (mayHaveArrived) notes.push('outcome unknown: it may have arrived')
  return new DeliveryError(
    mayHaveArrived ? 'indeterminate' : retryability,
    [last.message, ...notes].join('; '),
    { code, hint, retryAfterMs, cause },
  )
}
