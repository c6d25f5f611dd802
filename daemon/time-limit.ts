import { longTimeout } from './long-timeout.ts'

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
