import { setTimeout as wait } from 'node:timers/promises'
import pRetry from 'p-retry'
import { DeliveryError } from './delivery-error.ts'

export type RetryRules = {
  /** Tries after the first one. */
  readonly retries: number
  /** Doubles each time; up to twice as long by chance. */
  readonly firstWaitMs: number
  readonly longestWaitMs: number
  /** From the first try to the beginning of the last. */
  readonly totalMs: number
  /** For one try. */
  readonly tryMs: number
  /** For a mail server that has the text, instead: nobody may ask again. */
  readonly takeMailMs: number
}

export const retryRules: RetryRules = {
  retries: 5,
  firstWaitMs: 1000,
  longestWaitMs: 30_000,
  totalMs: 180_000,
  tryMs: 30_000,
  // RFC 5321 section 4.5.3.2.6: shorter ones make many copies of a mail.
  takeMailMs: 600_000,
}

export type Tried = {
  readonly signal: AbortSignal
  readonly knowsRepeats: boolean
  /** A try has failed and another one follows, in so many milliseconds at least. */
  readonly again: (error: DeliveryError) => void
}

/**
 * Tries until it succeeds, a try shows that no other makes sense, or the rules end it. What has no
 * answer is tried again only where a repeat is recognised. Throws the last `DeliveryFailed`.
 */
export const retry = async <Value>(
  attempt: (mayHaveArrived: boolean) => Promise<Value>,
  { signal, knowsRepeats, again }: Tried,
  rules: RetryRules = retryRules,
): Promise<Value> => {
  const lastStart = performance.now() + rules.totalMs
  let mayHaveArrived = false
  let last: DeliveryError | undefined
  let succeeded: { readonly value: Value } | undefined
  try {
    return await pRetry(
      async () => {
        const value = await attempt(mayHaveArrived)
        succeeded = { value }
        return value
      },
      {
        retries: rules.retries,
        minTimeout: rules.firstWaitMs,
        maxTimeout: rules.longestWaitMs,
        randomize: true,
        signal,
        onFailedAttempt: ({ error }) => {
          if (!(error instanceof DeliveryError)) throw error
          last = error
          mayHaveArrived ||= error.mayHaveArrived
        },
        shouldRetry: async ({ error }) => {
          if (!(error instanceof DeliveryError)) return false
          const { fate, retryAfterMs = 0 } = error
          if (fate === 'refused' || (fate === 'unknown' && !knowsRepeats)) return false
          if (performance.now() + retryAfterMs > lastStart) return false
          again(error)
          await wait(retryAfterMs, undefined, { signal })
          return true
        },
      },
    )
  } catch (error) {
    // An abort just after a success is no failure.
    if (succeeded) return succeeded.value
    throw toFinalError(last, error, signal, mayHaveArrived)
  }
}

/** The last failure in words that say how things stand now. */
const toFinalError = (
  last: DeliveryError | undefined,
  error: unknown,
  signal: AbortSignal,
  mayHaveArrived: boolean,
): unknown => {
  if (error !== last && !signal.aborted) return error
  if (!last) return stopped()
  const arrived = mayHaveArrived ? '; outcome unknown: it may have arrived' : ''
  const stops = signal.aborted && last.fate === 'later' ? '; the daemon stops' : ''
  const asked =
    last.fate === 'later' && last.retryAfterMs !== undefined && stops === ''
      ? `; it asks to be left alone for ${Math.ceil(last.retryAfterMs / 1000)} s`
      : ''
  const { code, hint, retryAfterMs, cause } = last
  return new DeliveryError(
    mayHaveArrived ? 'unknown' : last.fate,
    `${last.message}${asked}${stops}${arrived}`,
    { code, hint, retryAfterMs, cause },
  )
}

const stopped = () =>
  new DeliveryError('later', 'the daemon stopped before it was sent', { code: 'stopping' })
