import type { Gateway } from '../shared/config.ts'
import { type ByteBudget, createByteBudget } from './byte-budget.ts'
import { type Unfinished, createUnfinished } from './handover/unfinished.ts'
import { type Queue, createQueue } from './queue.ts'

/** What a daemon takes in: how many events wait and run, and how many bytes they may hold. */
export type Intake = {
  readonly budget: ByteBudget
  readonly queue: Queue
  /** What a daemon that was handed over from has yet to do. */
  readonly elsewhere: Unfinished
  /** How many accepted events a stop would wait for. */
  readonly unfinished: () => number
  /** Other limits from now on. */
  readonly resize: (limits: Gateway['queue']) => void
}

/** `concurrencyOf` says how many of an agent may run at once. */
export const createIntake = (
  { max_events: maxEvents, concurrency, max_bytes: maxBytes }: Gateway['queue'],
  concurrencyOf: (agentName: string) => number,
): Intake => {
  const budget = createByteBudget(maxBytes)
  const elsewhere = createUnfinished(concurrencyOf)
  const queue = createQueue({ maxEvents, concurrency, budget, elsewhere })
  return {
    budget,
    queue,
    elsewhere,
    unfinished: () => {
      const { waiting, running } = queue.counts()
      return waiting + running
    },
    resize: ({ max_events: maxEvents, concurrency, max_bytes: maxBytes }) => {
      queue.resize({ maxEvents, concurrency })
      budget.resize(maxBytes)
    },
  }
}
