/** Gathers bytes that come in pieces of any size. */
export type ByteCollector = {
  readonly size: () => number
  readonly add: (piece: Uint8Array) => void
  /** All of them, in one buffer. */
  readonly bytes: () => Buffer
}

const smallestBlock = 1024
const largestBlock = 64 * 1024

/**
 * Makes an empty collector. It copies into blocks of its own, so that what lies in memory is at most
 * twice what came and 1 KiB: a sender that cuts a body into pieces of one byte would else cost some
 * hundred times the bytes that are counted.
 */
export const createByteCollector = (): ByteCollector => {
  const full: Buffer[] = []
  let block = Buffer.alloc(0)
  let used = 0
  let size = 0
  return {
    size: () => size,
    add: (piece) => {
      for (let from = 0; from < piece.length;) {
        if (used === block.length) {
          if (used > 0) full.push(block)
          const wanted = Math.max(size, piece.length - from, smallestBlock)
          // Not of the shared pool, which a small block would keep whole.
          block = Buffer.allocUnsafeSlow(Math.min(wanted, largestBlock))
          used = 0
        }
        const part = piece.subarray(from, from + block.length - used)
        block.set(part, used)
        used += part.length
        size += part.length
        from += part.length
      }
    },
    bytes: () => Buffer.concat([...full, block.subarray(0, used)], size),
  }
}
