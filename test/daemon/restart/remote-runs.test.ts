import assert from 'node:assert/strict'
import { RemoteRuns } from '../../../daemon/restart/new-process.ts'
import { createMemory } from '../../../daemon/state.ts'
import type { EventState } from '../../../shared/api/api.ts'

describe('the runs of the process before a restart', () => {
  it('take their agents until they end', () => {
    const { events } = createMemory(10)
    const event = (agent: string, state: EventState) =>
      events.add(new Date(0), { kind: 'webhook', agent, state })
    const remote = new RemoteRuns()
    const taken = () => ['claude', 'codex'].map((agent) => remote.of(agent))
    assert.deepEqual([taken(), remote.agents(), remote.events()], [[0, 0], 0, 0])
    const first = event('claude', 'running')
    remote.start([
      first,
      event('claude', 'running'),
      event('claude', 'queued'),
      event('codex', 'delivering'),
    ])
    assert.deepEqual([taken(), remote.agents(), remote.events()], [[2, 0], 2, 3])
    remote.end(first.id)
    assert.deepEqual([taken(), remote.agents(), remote.events()], [[1, 0], 1, 2])
  })

  it('are dropped when that process is killed', () => {
    const memory = createMemory(10)
    const remote = new RemoteRuns()
    const event = memory.events.add(new Date(0), { agent: 'claude', state: 'delivering' })
    remote.start([event])
    remote.drop(memory)
    const { state, stage, code } = memory.events.record(event.id) ?? {}
    assert.deepEqual([state, stage, code], ['dropped', 'deliver', 'event-dropped'])
    assert.equal(remote.events(), 0)
  })
})
