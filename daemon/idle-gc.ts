import { memoryUsage } from 'node:process'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Has what a burst of work has left behind given back to the system once it is over. */
export type MemoryKeeper = {
  /** Called with every delivery; says that there is work. */
  readonly worked: () => void
}

export type MemoryKeeperParts = {
  /** How long it has to be quiet before a collection, in milliseconds; `long` before the first of all. */
  readonly quietMs?: { readonly short: number; readonly long: number }
  /** Bytes that V8 holds, with the buffers outside its heap. */
  readonly held?: () => number
  readonly collect?: (what: Collection) => void
}

/** Of the young objects, some 2 ms; of all, some 25 ms. */
export type Collection = 'young' | 'whole'

/** Less than this is not worth a pause. */
const worthBytes = 16_000_000

/** More than this is not left for long. */
const muchBytes = 40_000_000

const usualQuietMs = { short: 3000, long: 600_000 }

const collections: readonly Collection[] = ['young', 'whole', 'whole']

/**
 * V8 collects when it needs room. After a burst nobody needs any, so its garbage would stay for as long as
 * the daemon idles: some 100 MB, and each start of an agent takes longer by them, as a fork copies the map
 * of all memory.
 *
 * Most of it is young, and soon collected. A collection of all gives back more, but takes along what V8 has
 * compiled for objects and functions of which none is left at that moment: the next burst costs half as much
 * again for a second or two. So it comes once it is likely that there is none soon, or much is left. It comes
 * twice: what is collected first frees buffers outside the heap, and these are counted with the next.
 */
export const createMemoryKeeper = ({
  quietMs = usualQuietMs,
  held = heldBytes,
  collect = collectGarbage,
}: MemoryKeeperParts = {}): MemoryKeeper => {
  /** Of the last work or collection. */
  let lastTime = 0
  let timer: NodeJS.Timeout | undefined
  let next = 0
  /** What was there after the last collection of all. */
  let floor = held()

  const quietBefore = (index: number): number =>
    index === 1 && held() - floor < muchBytes ? quietMs.long : quietMs.short

  const look = (): void => {
    timer = undefined
    const leftMs = lastTime + quietBefore(next) - performance.now()
    if (leftMs > 0) return wait(leftMs)
    const what = collections[next]
    const isLast = next === collections.length - 1
    if (what === undefined || (!isLast && held() - floor < worthBytes)) return
    collect(what)
    lastTime = performance.now()
    if (what === 'whole') floor = held()
    next += 1
    if (!isLast) wait(quietBefore(next))
  }
  const wait = (ms: number): void => {
    timer = setTimeout(look, Math.ceil(ms)).unref()
  }

  return {
    worked: () => {
      lastTime = performance.now()
      if (timer && next === 0) return
      clearTimeout(timer)
      next = 0
      wait(quietMs.short)
    },
  }
}

const heldBytes = (): number => {
  const { heapTotal, external } = memoryUsage()
  return heapTotal + external
}

let gc: ((options?: { readonly type: 'minor' }) => void) | undefined

/** Collects at once. V8 shows its function only on demand, and only to contexts that are made then. */
export const collectGarbage = (what: Collection = 'whole'): void => {
  if (!gc) {
    setFlagsFromString('--expose-gc')
    gc = runInNewContext('gc') as typeof gc
  }
  if (what === 'young') gc?.({ type: 'minor' })
  else gc?.()
}
