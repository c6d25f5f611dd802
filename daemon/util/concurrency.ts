/** Runs tasks of one key after another, those of different keys side by side. */
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

/** Work that goes on by itself, and that a stop waits for. */
type Unfinished = {
  /** Remembers the work until it has ended, and returns it. */
  readonly track: <Result>(work: Promise<Result>) => Promise<Result>
  /** Resolves once nothing is going on, also what was begun meanwhile, or after this time (milliseconds). */
  readonly settled: (limitMs: number) => Promise<void>
}

/** Makes a list of work that has not ended. */
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
    settled: async (limitMs) => {
      let timer: NodeJS.Timeout | undefined
      const limit = new Promise<void>((resolve) => (timer = setTimeout(resolve, limitMs)))
      await Promise.race([untilIdle(), limit])
      clearTimeout(timer)
    },
  }
}
