import { setMaxListeners } from 'node:events'
import { withDeadline } from '../../shared/deadline.ts'

/** Runs the tasks of one key one after the other, and those of different keys in parallel. */
export type KeyedMutex = <Result>(key: string, task: () => Promise<Result>) => Promise<Result>

/** Makes a queue per key; a task that fails does not stop the next. */
export const createKeyedMutex = (): KeyedMutex => {
  const last = new Map<string, Promise<unknown>>()
  return async (key, task) => {
    const before = last.get(key)
    const run = before ? before.then(task, task) : task()
    last.set(key, run)
    try {
      return await run
    } finally {
      if (last.get(key) === run) last.delete(key)
    }
  }
}

/** Background work that a stop waits for. */
type Unfinished = {
  /** Tracks the work until it is settled, and returns it. */
  readonly track: <Result>(work: Promise<Result>) => Promise<Result>
  /** Resolves when no work is left, including work that starts later, or after this time (milliseconds). */
  readonly settled: (limitMs: number) => Promise<void>
}

export const trackPending = (): Unfinished => {
  const running = new Set<Promise<unknown>>()
  const untilIdle = async (): Promise<void> => {
    while (running.size > 0) await Promise.allSettled(running)
  }
  return {
    track: (work) => {
      running.add(work)
      const remove = (): boolean => running.delete(work)
      work.then(remove, remove)
      return work
    },
    settled: async (limitMs) => withDeadline(limitMs, untilIdle(), () => undefined),
  }
}

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
  // Each running task has one listener: more than ten are no leak.
  setMaxListeners(0, signal)
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await task(control.signal)
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
  }
}

/**
 * Waits until one of these waiters is called, for at most this long (milliseconds) or until the signal is aborted; the
 * waiter is gone then.
 */
export const waitToBeCalled = (
  waiters: Set<() => void>,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      waiters.delete(done)
      resolve()
    }
    const timer = setTimeout(done, timeoutMs)
    signal.addEventListener('abort', done)
    waiters.add(done)
  })

/** The maximum of `setTimeout`, 24.8 days: a longer one would fire immediately. */
const longestMs = 2_147_483_647

/** A timer for a limit of any length; one of more than 24.8 days ends then. */
export const longTimeout = (ring: () => void, ms: number): NodeJS.Timeout =>
  setTimeout(ring, Math.min(ms, longestMs))
