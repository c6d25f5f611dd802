import type { Gateway } from '../shared/config/schema.ts'
import { type ByteBudget, createByteBudget } from './byte-budget.ts'
import { type Unfinished, createUnfinished } from './handover/unfinished.ts'
import { type Queue, createQueue } from './queue.ts'
import type { Setup } from './setup.ts'
import { type BodyRooms, createBodyRooms } from './webhook/body-rooms.ts'

/** What a daemon takes in: how many events wait and run, and how many bytes they may hold. */
export type Intake = {
  readonly budget: ByteBudget
  readonly rooms: BodyRooms
  readonly queue: Queue
  /** What a daemon that was handed over from has yet to do. */
  readonly elsewhere: Unfinished
  /** How many accepted events a stop would wait for. */
  readonly unfinished: () => number
  /** Takes no more, and finishes what there is in the time that is configured for it. */
  readonly drain: () => Promise<void>
  /** Other limits from now on. */
  readonly resize: (limits: Gateway['queue']) => void
}

/** Begins with these limits; `current` says how long a drain may take, and how often an agent may run. */
export const createIntake = (
  { max_events: maxEvents, concurrency, max_bytes: maxBytes }: Gateway['queue'],
  current: () => Pick<Setup, 'config'>,
): Intake => {
  const budget = createByteBudget(maxBytes)
  const elsewhere = createUnfinished(
    (agentName) => current().config.agents.get(agentName)?.concurrency ?? 1,
  )
  const queue = createQueue({ maxEvents, concurrency, budget, elsewhere })
  return {
    budget,
    rooms: createBodyRooms(),
    queue,
    elsewhere,
    unfinished: () => {
      const { waiting, running } = queue.counts()
      return waiting + running
    },
    drain: async () => queue.drain(current().config.gateway.queue.drain_timeout),
    resize: ({ max_events: maxEvents, concurrency, max_bytes: maxBytes }) => {
      queue.resize({ maxEvents, concurrency })
      budget.resize(maxBytes)
    },
  }
}
