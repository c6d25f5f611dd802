import { type ByteCollector, createByteCollector } from '../util/byte-budget.ts'

/** Where the pieces of one body come together. */
export type BodyRoom = ByteCollector & {
  /** Others may have it: `bytes` of a large one are empty from now on. */
  readonly release: () => void
}

/** Makes room for a body; `expected` is how many bytes there will be, if that is known. */
export type BodyRooms = (expected: number) => BodyRoom

/** Up to here a body lies in memory of the usual sort. */
const smallBytes = 128 * 1024

/** Rooms that are free, in bytes all together, and for how long they stay if none is wanted. */
const mostFreeBytes = 32 * 1024 * 1024
const freeMs = 1000

/**
 * Makes the rooms of a daemon. glibc gives the system no more back than the end of its heap, so that many
 * large bodies at once leave 30 to 110 MB behind that nobody uses. A resizable ArrayBuffer is memory that V8
 * has of the system and gives back; as its pages take a tenth of the time of a body of 1 MB to come, it is
 * used again while more bodies come. What is used again is in memory whole, so that a room is never more than
 * twice as large as what came: who sends a little must not hold many times what is counted.
 */
export const createBodyRooms = (): BodyRooms => {
  const stores = createStores()
  return (expected) => {
    const small = createByteCollector(Math.min(expected, smallBytes))
    let store: ArrayBuffer | undefined
    let large = new Uint8Array()
    let size = 0
    const grow = (wanted: number): void => {
      const next = stores.take(wanted)
      const bytes = new Uint8Array(next)
      bytes.set(store ? large.subarray(0, size) : small.bytes())
      if (store) stores.giveBack(store)
      store = next
      large = bytes
    }
    return {
      size: () => size,
      add: (piece) => {
        const wanted = size + piece.length
        if (!store && wanted <= smallBytes) small.add(piece)
        else {
          if (wanted > large.length) grow(wanted)
          large.set(piece, size)
        }
        size = wanted
      },
      bytes: () => (store ? toBuffer(store, size) : small.bytes()),
      release: () => {
        if (store) stores.giveBack(store)
        store = undefined
      },
    }
  }
}

/**
 * A `Buffer` of resizable memory. `Buffer.from` makes a new hidden class of each (Node 20), and once a few have
 * come, all code that reads buffers is slow for good, for small bodies too; this way they share one.
 */
const toBuffer = (store: ArrayBuffer, size: number): Buffer =>
  Object.setPrototypeOf(new Uint8Array(store, 0, size), Buffer.prototype) as Buffer

const createStores = () => {
  let free: ArrayBuffer[] = []
  let freeBytes = 0
  let timer: NodeJS.Timeout | undefined
  const letGo = (): void => {
    for (const store of free) store.resize(0)
    free = []
    freeBytes = 0
    timer = undefined
  }
  return {
    /** The next power of two, so that it fits others too. All that was in it before may be there. */
    take: (bytes: number): ArrayBuffer => {
      const length = 2 ** Math.ceil(Math.log2(bytes))
      const index = free.findIndex(({ byteLength }) => byteLength === length)
      const [known] = index === -1 ? [] : free.splice(index, 1)
      if (!known) return new ArrayBuffer(length, { maxByteLength: length })
      freeBytes -= length
      return known
    },
    giveBack: (store: ArrayBuffer): void => {
      const length = store.byteLength
      if (freeBytes + length > mostFreeBytes) return store.resize(0)
      // Under another name: whoever still has the old one reads nothing there.
      free.push(structuredClone(store, { transfer: [store] }))
      freeBytes += length
      if (timer) timer.refresh()
      else timer = setTimeout(letGo, freeMs).unref()
    },
  }
}
