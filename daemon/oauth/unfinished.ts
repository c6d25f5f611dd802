/** Work that goes on by itself, and that a stop waits for. */
export type Unfinished = {
  /** Remembers the work until it has ended, and returns it. */
  readonly track: <Result>(work: Promise<Result>) => Promise<Result>
  /** Resolves once nothing is going on, also what was begun meanwhile, or after this time (milliseconds). */
  readonly settled: (limitMs: number) => Promise<void>
}

/** Makes a list of work that has not ended. */
export const createUnfinished = (): Unfinished => {
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
