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
