import { setTimeout as wait } from 'node:timers/promises'
import pRetry from 'p-retry'
import { describeAbort, isCancelled } from '../util/abort.ts'
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
  let success: { readonly value: Value } | undefined
  try {
    return await pRetry(
      async () => {
        success = { value: await attempt(mayHaveArrived) }
        return success.value
      },
      {
        retries: rules.retries,
        minTimeout: rules.firstWaitMs,
        maxTimeout: rules.maxWaitMs,
        randomize: true,
        signal,
        onFailedAttempt: ({ error }) => {
          if (!(error instanceof DeliveryError)) throw error
          last = error
          mayHaveArrived ||= error.mayHaveArrived
        },
        shouldRetry: async ({ error }) => {
          if (!(error instanceof DeliveryError)) return false
          const { retryability, retryAfterMs = 0 } = error
          if (retryability === 'permanent') return false
          if (retryability === 'indeterminate' && !isIdempotent) return false
          if (performance.now() + retryAfterMs > lastStart) return false
          onRetry(error)
          await wait(retryAfterMs, undefined, { signal })
          return true
        },
      },
    )
  } catch (error) {
    // An abort right after a success is not a failure.
    if (success) return success.value
    throw toFinalError(last, error, signal, mayHaveArrived)
  }
}

/** The last failure, with what the reader must know about all attempts. */
const toFinalError = (
  last: DeliveryError | undefined,
  error: unknown,
  signal: AbortSignal,
  mayHaveArrived: boolean,
): unknown => {
  if (error !== last && !signal.aborted) return error
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
