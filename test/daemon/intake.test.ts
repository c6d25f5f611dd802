import assert from 'node:assert/strict'
import { RemoteJobs } from '../../daemon/intake.ts'
import { createMemory } from '../../daemon/state.ts'
import type { EventRecord, EventState } from '../../shared/api.ts'

const { events } = createMemory(10)
const event = (agent: string, state: EventState): EventRecord =>
  events.add(new Date(0), { kind: 'webhook', agent, state })

describe('the jobs of the process before a restart', () => {
  it('are none until one is noted', () => {
    const remote = new RemoteJobs()
    assert.deepEqual([remote.of('claude'), remote.agents(), remote.events()], [0, 0, 0])
  })

  it('take their agents, and are no longer counted when they finish', () => {
    const remote = new RemoteJobs()
    const first = event('claude', 'running')
    for (const record of [first, event('claude', 'running'), event('claude', 'queued')])
      remote.note(record)
    remote.note(event('codex', 'delivering'))
    const taken = () => ['claude', 'codex'].map((agent) => remote.of(agent))
    assert.deepEqual([taken(), remote.agents(), remote.events()], [[2, 0], 2, 3])
    remote.note({ ...first, state: 'delivering' })
    assert.deepEqual([taken(), remote.agents(), remote.events()], [[1, 0], 1, 3])
    remote.note({ ...first, state: 'failed' })
    assert.deepEqual([taken(), remote.agents(), remote.events()], [[1, 0], 1, 2])
  })

  it('are dropped when that process is killed', () => {
    const memory = createMemory(10)
    const remote = new RemoteJobs()
    const { id } = memory.events.add(new Date(0), { agent: 'claude', state: 'delivering' })
    remote.note(memory.events.record(id) ?? event('claude', 'running'))
    remote.drop(memory)
    const { state, stage, code } = memory.events.record(id) ?? {}
    assert.deepEqual([state, stage, code], ['dropped', 'deliver', 'event-dropped'])
    assert.equal(remote.events(), 0)
  })
})
