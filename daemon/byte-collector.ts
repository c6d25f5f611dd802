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
 * Makes an empty collector. What lies in memory is at most twice what came and 1 KiB: a piece that
 * fills the most of the memory it lies in is kept as it is, others are copied into blocks. A sender
 * that cuts a body into pieces of one byte would else cost some hundred times the bytes that are counted.
 */
export const createByteCollector = (): ByteCollector => {
  const full: Uint8Array[] = []
  let block = Buffer.alloc(0)
  let used = 0
  let size = 0
  const endBlock = () => {
    if (used > 0) full.push(block.subarray(0, used))
    block = block.subarray(used)
    used = 0
  }
  const copy = (piece: Uint8Array) => {
    for (let from = 0; from < piece.length;) {
      if (used === block.length) {
        endBlock()
        const wanted = Math.max(size, piece.length - from, smallestBlock)
        // Not of the shared pool, which a small block would keep whole.
        block = Buffer.allocUnsafeSlow(Math.min(wanted, largestBlock))
      }
      const part = piece.subarray(from, from + block.length - used)
      block.set(part, used)
      used += part.length
      size += part.length
      from += part.length
    }
  }
  return {
    size: () => size,
    add: (piece) => {
      if (piece.length < smallestBlock || piece.length * 2 < piece.buffer.byteLength)
        return copy(piece)
      endBlock()
      full.push(piece)
      size += piece.length
    },
    bytes: () => {
      endBlock()
      const [only, second] = full
      return only && second === undefined
        ? Buffer.from(only.buffer, only.byteOffset, only.length)
        : Buffer.concat(full, size)
    },
  }
}
