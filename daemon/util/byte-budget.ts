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

/** Gathers bytes that come in pieces of any size. */
export type ByteCollector = {
  readonly size: () => number
  readonly add: (piece: Uint8Array) => void
  /** All of them, in one buffer. */
  readonly bytes: () => Buffer
}

const smallestRoom = 1024

/**
 * Makes an empty collector; `expected` is how many bytes there will be, if that is known. Pieces are
 * copied, so that the memory they lie in is free at once: a piece of one byte may lie in 64 KiB. The room
 * for them is at most twice what came and 1 KiB, of which the system gives memory as it is used.
 */
export const createByteCollector = (expected = Number.POSITIVE_INFINITY): ByteCollector => {
  let room = Buffer.alloc(0)
  let size = 0
  const grow = (wanted: number) => {
    // A sender says how many there are, and may say what is no number.
    const enough = expected > wanted ? Math.min(wanted * 2, expected) : wanted * 2
    const larger = Math.max(enough, smallestRoom)
    // Not of the shared pool, which a small one would keep whole.
    const next = Buffer.allocUnsafeSlow(larger)
    room.copy(next, 0, 0, size)
    room = next
  }
  return {
    size: () => size,
    add: (piece) => {
      const wanted = size + piece.length
      if (wanted > room.length) grow(wanted)
      room.set(piece, size)
      size = wanted
    },
    bytes: () => room.subarray(0, size),
  }
}
