import assert from 'node:assert/strict'
import { EventStore } from '../../daemon/events/event-store.ts'
import { createUnfinished } from '../../daemon/intake.ts'
import type { EventRecord, EventState } from '../../shared/api.ts'

const events = new EventStore(10)
const event = (agent: string, state: EventState): EventRecord =>
  events.add(new Date(0), { kind: 'webhook', agent, state })

describe('what the old daemon still works on', () => {
  it('is nothing as long as it tells nothing', () => {
    const unfinished = createUnfinished(() => 1)
    assert.deepEqual([unfinished.of('claude'), unfinished.agents()], [0, 0])
  })

  it('takes of each agent as many as it has there, and no more places than it may have', () => {
    const unfinished = createUnfinished((agent) => (agent === 'claude' ? 2 : 5))
    for (const state of ['accepted', 'queued', 'running'] as const)
      unfinished.note(event('claude', state))
    unfinished.note(event('codex', 'running'))
    unfinished.note(event('codex', 'delivering'))
    const taken = ['claude', 'codex', 'other'].map((agent) => unfinished.of(agent))
    assert.deepEqual([taken, unfinished.agents()], [[3, 1, 0], 3])
  })

  it('gives an agent free when its job goes on without it, and when it ends', () => {
    const unfinished = createUnfinished(() => 1)
    const first = event('claude', 'running')
    const second = event('claude', 'queued')
    unfinished.note(first)
    unfinished.note(second)
    unfinished.note({ ...first, state: 'delivering' })
    assert.equal(unfinished.of('claude'), 1)
    unfinished.note({ ...second, state: 'failed' })
    assert.deepEqual([unfinished.of('claude'), unfinished.agents()], [0, 0])
  })
})
