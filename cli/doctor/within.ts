/** What came of something that had so long: its value, or that it took longer. */
export type Within<Value> = { readonly value: Value } | 'late'

/**
 * Waits for a promise so many milliseconds at most. What it stands for goes on, as a file system that
 * hangs cannot be interrupted: who gives up on it has to end the process. Throws as the promise does.
 */
export const within = async <Value>(
  ms: number,
  promise: Promise<Value>,
): Promise<Within<Value>> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), ms)
  })
  try {
    return await Promise.race([promise.then((value) => ({ value })), late])
  } finally {
    clearTimeout(timer)
  }
}
