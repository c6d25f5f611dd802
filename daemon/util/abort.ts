/** The abort reason of a run whose event the owner cancels. Without it the daemon stops. */
export const cancelled = 'cancelled'

export const isCancelled = (signal: AbortSignal): boolean => signal.reason === cancelled

/** Why this run is aborted. */
export const describeAbort = (signal: AbortSignal): string =>
  isCancelled(signal) ? 'the event was cancelled' : 'the daemon stopped'

/**
 * Runs a task with a signal that is aborted after this time (milliseconds), or together with the given one.
 * `AbortSignal.any` with `AbortSignal.timeout` does not work in Node 20: the timeout can be garbage
 * collected before it fires, and each call leaks a listener on the given signal.
 */
export const withTimeLimit = async <Result>(
  limitMs: number,
  signal: AbortSignal,
  task: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> => {
  const control = new AbortController()
  const abort = (): void => control.abort(signal.reason)
  // The name that `AbortSignal.timeout` uses, which a request reports as a timeout.
  const end = (): void => control.abort(new DOMException('the time is over', 'TimeoutError'))
  // Reads pending input first: a response may have arrived in time while the process was suspended, and a
  // new refresh token is not sent twice.
  const timer = longTimeout(() => setImmediate(end), limitMs)
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await task(control.signal)
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
  }
}

/** The maximum of `setTimeout`, 24.8 days: a longer one would fire immediately. */
const longestMs = 2_147_483_647

/** A timer for a limit of any length; one of more than 24.8 days ends then. */
export const longTimeout = (ring: () => void, ms: number): NodeJS.Timeout =>
  setTimeout(ring, Math.min(ms, longestMs))
