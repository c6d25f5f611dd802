import { memoryUsage } from 'node:process'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Has what a burst of work has left behind given back to the system once it is over. */
export type MemoryKeeper = {
  /** Called with every delivery; says that there is work. */
  readonly worked: () => void
}

export type MemoryKeeperParts = {
  /** How long nothing may have come, in milliseconds, before each of two collections. */
  readonly quietMs?: number
  /** Bytes that V8 holds, with the buffers outside its heap. */
  readonly held?: () => number
  readonly collect?: () => void
}

/** Less than this is not worth a pause of some 25 ms. */
const worthBytes = 16_000_000

/** What is collected first frees buffers outside the heap, and these are counted with the next. */
const collections = 2

/**
 * V8 collects when it needs room. After a burst nobody needs any, so its garbage would stay for as long as
 * the daemon idles: some 100 MB, and each start of an agent takes longer by them, as a fork copies the map
 * of all memory.
 */
export const createMemoryKeeper = ({
  quietMs = 3000,
  held = heldBytes,
  collect = collectGarbage,
}: MemoryKeeperParts = {}): MemoryKeeper => {
  let lastWork = 0
  let timer: NodeJS.Timeout | undefined
  let left = 0
  /** What was there after the last collection. */
  let floor = held()

  const look = (): void => {
    timer = undefined
    if (performance.now() - lastWork < quietMs) return wait()
    if (left === collections && held() - floor < worthBytes) return
    collect()
    left -= 1
    floor = held()
    if (left > 0) wait()
  }
  const wait = (): void => {
    timer = setTimeout(look, quietMs).unref()
  }

  return {
    worked: () => {
      lastWork = performance.now()
      left = collections
      if (!timer) wait()
    },
  }
}

const heldBytes = (): number => {
  const { heapTotal, external } = memoryUsage()
  return heapTotal + external
}

let gc: (() => void) | undefined

/** A whole collection. V8 shows its function only on demand, and only to contexts that are made then. */
export const collectGarbage = (): void => {
  if (!gc) {
    setFlagsFromString('--expose-gc')
    gc = runInNewContext('gc') as () => void
  }
  gc()
}
