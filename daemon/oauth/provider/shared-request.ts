/** Runs a task once for all who ask for this key meanwhile. */
export type Shared<Result> = (
  key: string,
  signal: AbortSignal,
  task: (signal: AbortSignal) => Promise<Result>,
) => Promise<Result>

type Running<Result> = {
  readonly result: Promise<Result>
  readonly control: AbortController
  waiting: number
}

/**
 * Makes it. Who gives up (by its signal) stops waiting with that signal's reason; the task itself is
 * ended when nobody waits for it any more. Nothing is remembered once it has ended.
 */
export const createShared = <Result>(): Shared<Result> => {
  const running = new Map<string, Running<Result>>()

  const begin = (key: string, task: (signal: AbortSignal) => Promise<Result>) => {
    const control = new AbortController()
    const result = task(control.signal)
    const entry: Running<Result> = { result, control, waiting: 0 }
    const forget = (): void => {
      if (running.get(key) === entry) running.delete(key)
    }
    result.then(forget, forget)
    running.set(key, entry)
    return entry
  }

  return async (key, signal, task) => {
    signal.throwIfAborted()
    const entry = running.get(key) ?? begin(key, task)
    entry.waiting += 1
    let giveUp = (): void => undefined
    const given = new Promise<never>((_, reject) => {
      giveUp = () => reject(signal.reason as Error)
    })
    signal.addEventListener('abort', giveUp, { once: true })
    try {
      return await Promise.race([entry.result, given])
    } finally {
      signal.removeEventListener('abort', giveUp)
      entry.waiting -= 1
      if (entry.waiting === 0) {
        if (running.get(key) === entry) running.delete(key)
        entry.control.abort()
      }
    }
  }
}
