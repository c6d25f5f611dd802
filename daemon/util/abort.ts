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
    timer.clear()
    signal.removeEventListener('abort', abort)
  }
}

// The maximum of setTimeout, 24.8 days: a longer one would fire immediately.
const longestStepMs = 2_147_483_647

export type LongTimeout = { readonly clear: () => void; readonly unref: () => LongTimeout }

/** A timer for any number of milliseconds: the limit of an agent or a login may be 30 days. */
export const longTimeout = (
  ring: () => void,
  ms: number,
  longestMs = longestStepMs,
): LongTimeout => {
  let isHeld = true
  let timer: NodeJS.Timeout
  const wait = (restMs: number): void => {
    const stepMs = Math.min(restMs, longestMs)
    timer = setTimeout(() => (restMs > stepMs ? wait(restMs - stepMs) : ring()), stepMs)
    if (!isHeld) timer.unref()
  }
  wait(ms)
  const self: LongTimeout = {
    clear: () => clearTimeout(timer),
    unref: () => {
      isHeld = false
      timer.unref()
      return self
    },
  }
  return self
}
