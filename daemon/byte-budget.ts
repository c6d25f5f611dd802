/**
 * The bytes that may lie in memory for bodies being read and events waiting, counted together, so
 * that a flood of large bodies ends in refusals and not in memory.
 */
export type ByteBudget = {
  readonly used: () => number
  /** Whether so many bytes could be taken if nothing else were there. */
  readonly couldTake: (bytes: number) => boolean
  /** Takes bytes out of the budget; false, and nothing taken, when there is not enough left. */
  readonly take: (bytes: number) => boolean
  readonly giveBack: (bytes: number) => void
  /** Another limit from now on; what is taken stays taken. */
  readonly resize: (maxBytes: number) => void
}

export const createByteBudget = (initialMaxBytes: number): ByteBudget => {
  let maxBytes = initialMaxBytes
  let used = 0
  return {
    used: () => used,
    couldTake: (bytes) => bytes <= maxBytes,
    take: (bytes) => {
      if (used + bytes > maxBytes) return false
      used += bytes
      return true
    },
    giveBack: (bytes) => {
      used -= bytes
    },
    resize: (newMaxBytes) => {
      maxBytes = newMaxBytes
    },
  }
}
