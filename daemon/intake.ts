import type { EventRecord } from '../shared/api.ts'
import type { Gateway } from '../shared/config/schema.ts'
import { currentStage } from '../shared/event-stages.ts'
import { isFinal } from './events/event-record.ts'
import { createQueue, type Elsewhere, type Queue } from './queue.ts'
import type { Memory } from './state.ts'
import { type ByteBudget, createByteBudget } from './util/byte-budget.ts'
import type { Engine } from './webhook/engine.ts'

/** What a daemon takes in: how many events wait and run, and how many bytes they may hold. */
export type Intake = {
  readonly budget: ByteBudget
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
  current: () => Pick<Engine, 'config'>,
): Intake => {
  const budget = createByteBudget(maxBytes)
  const elsewhere = createUnfinished(
    (agentName) => current().config.agents.get(agentName)?.concurrency ?? 1,
  )
  const queue = createQueue({ maxEvents, concurrency, budget, elsewhere })
  return {
    budget,
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

/**
 * What the old daemon still works on, by what it tells. Agents are kept from it as from the queue here:
 * who may run once at a time does not run twice because of a restart.
 */
type Unfinished = Elsewhere & {
  readonly note: (record: EventRecord) => void
  /** It has been killed: what it had not finished is dropped. */
  readonly drop: (memory: Memory) => void
}

const beforeAgent = new Set<EventRecord['state']>(['accepted', 'queued', 'running'])

/** `concurrencyOf` says how many of an agent may run at once. */
export const createUnfinished = (concurrencyOf: (agentName: string) => number): Unfinished => {
  const open = new Map<string, EventRecord>()
  const inStates = (...states: EventRecord['state'][]): number =>
    [...open.values()].filter(({ state }) => states.includes(state)).length
  // Looked at for each job, and empty nearly always: counted when something is noted.
  const byAgent = new Map<string, number>()
  const count = (): void => {
    byAgent.clear()
    for (const { agent, state } of open.values())
      if (agent !== null && beforeAgent.has(state))
        byAgent.set(agent, (byAgent.get(agent) ?? 0) + 1)
  }
  return {
    note: (record) => {
      if (record.kind !== 'webhook') return
      if (isFinal(record.state)) open.delete(record.id)
      else open.set(record.id, record)
      count()
    },
    of: (agentName) => byAgent.get(agentName) ?? 0,
    agents: () => {
      if (byAgent.size === 0) return 0
      let sum = 0
      for (const [agentName, count] of byAgent) sum += Math.min(count, concurrencyOf(agentName))
      return sum
    },
    counts: () => ({
      waiting: inStates('accepted', 'queued'),
      running: inStates('running', 'delivering'),
    }),
    drop: ({ events, kept, deliveries }) => {
      for (const { id, state } of open.values()) {
        const delivery = kept.get(id)?.delivery
        if (delivery) deliveries.forget(delivery, id)
        events.update(id, {
          state: 'dropped',
          // An answer that was being delivered is there: a retry runs no agent for it.
          stage: currentStage[state] ?? 'queue',
          code: 'event-dropped',
          detail:
            'the daemon that ran it was killed: retry it, or deliver it again from the sender',
        })
      }
      open.clear()
      count()
    },
  }
}
