import { type Profiler, Session } from 'node:inspector'

/*
 * Which places of our own code ran, as V8 counts them block by block. A function that ran before the
 * counting began is known only as a whole: this file is loaded before the code that is looked at.
 */

/** True where inputs are led by what they reach (`FUZZ_GUIDED=1`). Our code then runs at half its pace. */
export const isGuided = Boolean(process.env['FUZZ_GUIDED'])

const session = new Session()
if (isGuided) {
  session.connect()
  session.post('Profiler.enable')
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
}

const ours = new URL('../../../', import.meta.url).href
const tests = `${ours}test/`
const fixtures = `${tests}fixtures/`

/** What ran since the last time this was asked, in our own code alone. */
const takeCounts = (): readonly Profiler.ScriptCoverage[] => {
  let scripts: readonly Profiler.ScriptCoverage[] = []
  session.post('Profiler.takePreciseCoverage', (error, taken) => {
    if (error) throw error
    scripts = taken.result
  })
  return scripts.filter(
    ({ url }) => url.startsWith(ours) && (!url.startsWith(tests) || url.startsWith(fixtures)),
  )
}

/** How often a place ran, as one bit: once, twice, 3, up to 7, 15, 31, 127, more. */
const bitOf = (count: number): number =>
  count === 0 ? 0 : 1 << [1, 2, 3, 7, 15, 31, 127, Infinity].findIndex((most) => count <= most)

/** For each character of a script a bit of how often it ran. Blocks come after those they stand in. */
const bitsOf = (functions: readonly Profiler.FunctionCoverage[]): Uint8Array => {
  const ranges = functions.flatMap((each) => each.ranges)
  const bits = new Uint8Array(Math.max(0, ...ranges.map(({ endOffset }) => endOffset)))
  for (const { startOffset, endOffset, count } of ranges)
    bits.fill(bitOf(count), startOffset, endOffset)
  return bits
}

export type Reached = {
  /** Forgets what ran since the last look: it was not an input. */
  readonly skip: () => void
  /** True when a place ran since the last look that no input remembered so far had reached. */
  readonly hasNew: () => boolean
  /** Remembers what ran since the last look; true when a place ran that never did, or never so often. */
  readonly remember: () => boolean
}

/** What the inputs of one property reached. */
export const createReached = (): Reached => {
  const known = new Map<string, Uint8Array>()
  const knownOf = (url: string, size: number): Uint8Array => {
    const before = known.get(url) ?? new Uint8Array()
    if (before.length >= size) return before
    const grown = new Uint8Array(size)
    grown.set(before)
    known.set(url, grown)
    return grown
  }
  return {
    skip: () => void takeCounts(),
    hasNew: () =>
      takeCounts().some(({ url, functions }) => {
        const before = known.get(url)
        return bitsOf(functions).some((bit, place) => bit !== 0 && !before?.[place])
      }),
    remember: () => {
      let isNew = false
      for (const { url, functions } of takeCounts()) {
        const bits = bitsOf(functions)
        const all = knownOf(url, bits.length)
        bits.forEach((bit, place) => {
          const before = all[place] ?? 0
          if ((before | bit) === before) return
          isNew = true
          all[place] = before | bit
        })
      }
      return isNew
    },
  }
}
