import type { Timings } from '../../shared/api.ts'
import { isFinal } from '../events/event-record.ts'
import type { EventStore } from '../events/event-store.ts'

/** What is measured of the work of a daemon, from its start on. */
export type Measures = {
  /** From the first byte of a delivery's head to our answer; called on the way of every delivery. */
  readonly answered: (ms: number) => void
  readonly answer: Distribution
  readonly queue: Distribution
  readonly deliver: Distribution
  /** By the name of the agent. */
  readonly agents: ReadonlyMap<string, Distribution>
  /** p50 and p99 of each, for `GET /status`. */
  readonly timings: () => Timings
}

/** Upper bounds in milliseconds: answers take parts of one, agents take minutes. */
export const quickBoundsMs = [0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 1000, 5000, 15_000]
export const slowBoundsMs = [
  10, 50, 100, 500, 1000, 5000, 10_000, 30_000, 60_000, 300_000, 600_000, 1_800_000, 3_600_000,
]

/** Follows the events: what happens after an answer is read from them. */
export const createMeasures = (events: EventStore): Measures => {
  const answer = createDistribution(quickBoundsMs)
  const queue = createDistribution(slowBoundsMs)
  const deliver = createDistribution(slowBoundsMs)
  const agents = new Map<string, Distribution>()
  const allAgents = createDistribution(slowBoundsMs)

  const noteAgent = (name: string, ms: number): void => {
    const known = agents.get(name) ?? createDistribution(slowBoundsMs)
    agents.set(name, known)
    known.note(ms)
    allAgents.note(ms)
  }
  events.follow(({ record, before }) => {
    const { kind, state } = record
    if (kind !== 'webhook' || state === before) return
    // An event that is only delivered again carries the times of its first run.
    if (before === 'running') {
      const { agentMs } = record.durations
      if (agentMs !== undefined) noteAgent(record.agent ?? '', agentMs)
    }
    if (state === 'running') {
      const { queuedMs } = record.durations
      if (queuedMs !== undefined) queue.note(queuedMs)
    } else if (isFinal(state) && record.targets.length > 0) {
      const { deliverMs } = record.durations
      if (deliverMs !== undefined) deliver.note(deliverMs)
    }
  })

  return {
    answered: answer.note,
    answer,
    queue,
    deliver,
    agents,
    timings: () => ({
      answer: toTiming(answer),
      queue: toTiming(queue),
      agent: toTiming(allAgents),
      deliver: toTiming(deliver),
    }),
  }
}

const toTiming = (distribution: Distribution): Timings['answer'] => ({
  count: distribution.count(),
  p50Ms: rounded(distribution.quantile(0.5)),
  p99Ms: rounded(distribution.quantile(0.99)),
})

/** Two digits are all that is known of it. */
const rounded = (ms: number): number => Number(ms.toPrecision(2))

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
