/** How long something took, many times over: what was measured is counted, not kept. */
export type Distribution = {
  /** Notes one duration in milliseconds. */
  readonly note: (ms: number) => void
  readonly count: () => number
  /** All durations together, in milliseconds. */
  readonly totalMs: () => number
  /** The duration that this part (0 to 1) of all did not exceed, at most a tenth too long; 0 for none. */
  readonly quantile: (part: number) => number
  /** How many took at most each of these, in the order of the bounds it was made with. */
  readonly upTo: () => readonly number[]
}

/** Eight steps for each doubling, from a hundredth of a millisecond to a week. */
const stepsPerDoubling = 8
const smallestMs = 0.01
const steps = 36 * stepsPerDoubling

/** Makes an empty one. `boundsMs` ascend; they are those of a Prometheus histogram. */
export const createDistribution = (boundsMs: readonly number[]): Distribution => {
  const fine = new Float64Array(steps)
  const coarse = new Float64Array(boundsMs.length)
  let count = 0
  let totalMs = 0
  return {
    note: (ms) => {
      count += 1
      totalMs += ms
      const step = Math.ceil(Math.log2(Math.max(ms, smallestMs) / smallestMs) * stepsPerDoubling)
      const place = Math.min(step, steps - 1)
      fine[place] = (fine[place] ?? 0) + 1
      for (let index = boundsMs.length - 1; index >= 0; index -= 1) {
        if (ms > (boundsMs[index] ?? 0)) break
        coarse[index] = (coarse[index] ?? 0) + 1
      }
    },
    count: () => count,
    totalMs: () => totalMs,
    quantile: (part) => {
      const wanted = Math.max(1, Math.ceil(count * part))
      let seen = 0
      for (const [step, some] of fine.entries()) {
        seen += some
        if (count > 0 && seen >= wanted) return smallestMs * 2 ** (step / stepsPerDoubling)
      }
      return 0
    },
    upTo: () => [...coarse],
  }
}
