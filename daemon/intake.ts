import type { EventRecord } from '../shared/api.ts'
import type { Gateway } from '../shared/config/schema.ts'
import { currentStage } from '../shared/event-stages.ts'
import { EventQueue, type RemoteLoad } from './queue/event-queue.ts'
import { NatsQueue, type NatsQueueParts } from './queue/nats/nats-queue.ts'
import type { Queue } from './queue/queue.ts'
import type { Memory } from './state.ts'
import { type ByteBudget, createByteBudget } from './util/byte-budget.ts'

/** The limits on accepted work: how many events wait and run, and how many bytes they take. */
export type Intake = {
  readonly budget: ByteBudget
  readonly queue: Queue
  /** What the daemon before a restart still runs. */
  readonly remote: RemoteJobs
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
  const remote = new RemoteJobs()
  const { max_events: maxEvents, concurrency } = limits
  const local = new EventQueue({ maxEvents, concurrency, budget, remote })
  const queue =
    machines && limits.engine === 'nats'
      ? new NatsQueue({ ...machines, local, budget, settings: limits })
      : local
  return {
    budget,
    queue,
    remote,
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

/** The events that another process still runs: they count towards the limits of agents here. */
export class RemoteJobs implements RemoteLoad {
  readonly #records = new Map<string, EventRecord>()

  /** Follows a record of the other process. */
  note(record: EventRecord): void {
    if (record.kind !== 'webhook') return
    const isThere = record.state === 'running' && record.machine === undefined
    if (isThere || record.state === 'delivering') this.#records.set(record.id, record)
    else this.#records.delete(record.id)
  }

  of(agentName: string): number {
    return this.#running().filter(({ agent }) => agent === agentName).length
  }

  agents(): number {
    return this.#running().length
  }

  events(): number {
    return this.#records.size
  }

  /** The other process was killed: drops what it had not finished. */
  drop({ events, kept, deliveries }: Pick<Memory, 'events' | 'kept' | 'deliveries'>): void {
    for (const { id, state } of this.#records.values()) {
      const delivery = kept.get(id)?.delivery
      if (delivery) deliveries.forget(delivery, id)
      events.update(id, {
        state: 'dropped',
        // With the answer in memory a retry only delivers.
        stage: currentStage[state] ?? 'queue',
        code: 'event-dropped',
        detail: 'the daemon that ran it was killed: retry it, or deliver it again from the sender',
      })
    }
    this.#records.clear()
  }

  #running(): readonly EventRecord[] {
    // Asked for each job, and empty nearly always.
    if (this.#records.size === 0) return none
    return [...this.#records.values()].filter(({ state }) => state === 'running')
  }
}

const none: readonly EventRecord[] = []
