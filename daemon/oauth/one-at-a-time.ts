/** Runs tasks of one key after another, those of different keys side by side. */
export type OneAtATime = <Result>(key: string, task: () => Promise<Result>) => Promise<Result>

/** Makes a queue per key; a task that fails does not stop the next. */
export const createOneAtATime = (): OneAtATime => {
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
