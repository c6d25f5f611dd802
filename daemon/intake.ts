import type { Gateway } from '../shared/config/schema.ts'
import { EventQueue } from './queue/event-queue.ts'
import { NatsQueue, type NatsQueueParts } from './queue/nats/nats-queue.ts'
import type { Queue } from './queue/queue.ts'
import { type ByteBudget, createByteBudget } from './util/byte-budget.ts'

/** The limits on accepted work: how many events wait and run, and how many bytes they take. */
export type Intake = {
  readonly budget: ByteBudget
  readonly queue: Queue
  /** How many accepted events a stop would wait for. */
  readonly unfinished: () => number
  /** Accepts no more, and finishes what there is within `queue.drain_timeout`. */
  readonly drain: () => Promise<void>
  readonly resize: (limits: Gateway['queue']) => void
}

/** With `machines`, what the queue of several machines needs. */
export const createIntake = (
  initialLimits: Gateway['queue'],
  machines?: Omit<NatsQueueParts, 'local' | 'budget' | 'settings'>,
): Intake => {
  let limits = initialLimits
  const budget = createByteBudget(limits.max_bytes)
  const { max_events: maxEvents, concurrency } = limits
  const local = new EventQueue({ maxEvents, concurrency, budget })
  const queue =
    machines && limits.engine === 'nats'
      ? new NatsQueue({ ...machines, local, budget, settings: limits })
      : local
  return {
    budget,
    queue,
    unfinished: () => {
      const { waiting, running } = queue.counts()
      return waiting + running
    },
    drain: async () => queue.drain(limits.drain_timeout),
    resize: (newLimits) => {
      limits = newLimits
      const { max_events: maxEvents, concurrency, max_bytes: maxBytes } = limits
      queue.resize({ maxEvents, concurrency })
      budget.resize(maxBytes)
    },
  }
}
