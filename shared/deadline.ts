/**
 * Waits for work at most `ms` milliseconds. If it takes longer, the result is what `late` returns or throws, and
 * the end of the work is ignored. The work itself goes on, unless `late` stops it.
 */
export const withDeadline = async <Value, Late>(
  ms: number,
  work: Promise<Value>,
  late: () => Late | Promise<Late>,
): Promise<Value | Late> => {
  let timer: NodeJS.Timeout | undefined
  const deadline = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)))
  try {
    return await Promise.race([work, deadline.then(late)])
  } finally {
    clearTimeout(timer)
  }
}
