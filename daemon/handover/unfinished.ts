import type { EventRecord } from '../../shared/api.ts'
import { stageAt } from '../../shared/event-stages.ts'
import { isFinal } from '../events/event-record.ts'
import type { Memory } from '../memory.ts'
import type { Elsewhere } from '../queue.ts'

/**
 * What the old daemon still works on, by what it tells. Agents are kept from it as from the queue here:
 * who may run once at a time does not run twice because of a restart.
 */
export type Unfinished = Elsewhere & {
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
          stage: stageAt[state] ?? 'queue',
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
