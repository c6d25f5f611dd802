/**
 * The limit of bytes in memory for bodies being read and events waiting together, so that a flood of
 * large bodies is refused.
 */
export type ByteBudget = {
  readonly used: () => number
  /** Whether this number of bytes is within the whole budget. */
  readonly couldTake: (bytes: number) => boolean
  /** Takes bytes from the budget; false, and nothing taken, when not enough is left. */
  readonly take: (bytes: number) => boolean
  readonly giveBack: (bytes: number) => void
  /** Changes the limit; bytes in use stay counted. */
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

/** Collects bytes that arrive in pieces of any size. */
export type ByteCollector = {
  readonly size: () => number
  readonly add: (piece: Uint8Array) => void
  /** All of them, in one buffer. */
  readonly bytes: () => Buffer
}

const smallestRoom = 1024

/**
 * Makes an empty collector; `expected` is the number of bytes, if known. Pieces are copied, as a piece of one
 * byte may keep a buffer of 64 KiB in memory. The collector has at most twice the bytes that arrived, and
 * at least 1 KiB.
 */
export const createByteCollector = (expected = Number.POSITIVE_INFINITY): ByteCollector => {
  let room = Buffer.alloc(0)
  let size = 0
  const grow = (wanted: number) => {
    // `expected` is what the sender declares, and may be NaN.
    const enough = expected > wanted ? Math.min(wanted * 2, expected) : wanted * 2
    const larger = Math.max(enough, smallestRoom)
    // Not from the shared pool, of which a small buffer would keep all in memory.
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
