/**
 * Runs a task with a signal that is aborted after this time (milliseconds), or together with the given one.
 * `AbortSignal.any` with an `AbortSignal.timeout` is none: nothing holds the latter, and once the garbage
 * collector has taken it the time never ends; and each leaves something at the given signal for as long as
 * that lives (both seen with Node 20).
 */
export const withTimeLimit = async <Result>(
  limitMs: number,
  signal: AbortSignal,
  task: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> => {
  const control = new AbortController()
  const abort = (): void => control.abort(signal.reason)
  // Named as `AbortSignal.timeout` names it: so a request says that nobody answered in time.
  const end = (): void => control.abort(new DOMException('the time is over', 'TimeoutError'))
  // One look at what has come first: it may have been in time while we were stopped, and an answer with a
  // new refresh token is not given twice.
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

// The most that setTimeout takes, 24.8 days: one that is longer would ring at once.
const longestStepMs = 2_147_483_647

export type LongTimeout = { readonly clear: () => void; readonly unref: () => LongTimeout }

/** A timer that rings once, after any number of milliseconds: agents and logins may be given 30 days. */
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
