import assert from 'node:assert/strict'
import { EventStore } from '../../../../daemon/events/event-store.ts'
import { createRetryableEvents } from '../../../../daemon/webhook/events/accepted-event.ts'

const at = new Date(0)

describe('an event that can be retried', () => {
  it('is kept until it is done, also when it failed or was dropped', () => {
    const events = new EventStore(10)
    const kept = createRetryableEvents<string>(events)
    const { id } = events.add(at, { state: 'queued' })
    kept.keep(id, 'its payload')
    const found = (['running', 'delivering', 'failed', 'queued', 'dropped'] as const).map(
      (state) => {
        events.update(id, { state })
        return kept.get(id)
      },
    )
    assert.deepEqual(new Set(found), new Set(['its payload']))
  })

  it('is deleted once it is done', () => {
    const events = new EventStore(10)
    const kept = createRetryableEvents<string>(events)
    const [first, second] = ['a', 'b'].map((text) => {
      const { id } = events.add(at, { state: 'queued' })
      kept.keep(id, text)
      return id
    })
    events.update(first ?? '', { state: 'done' })
    assert.deepEqual(kept.entries(), [[second, 'b']])
  })

  it('is deleted together with its prompt', () => {
    const events = new EventStore(1)
    const kept = createRetryableEvents<string>(events)
    const fail = (prompt: string): string => {
      const { id } = events.add(at, { state: 'queued' })
      kept.keep(id, 'its payload')
      events.update(id, { state: 'failed' }, { prompt })
      return id
    }
    const first = fail('first')
    assert.equal(kept.get(first), 'its payload')
    const second = fail('second')
    assert.deepEqual([kept.get(first), kept.get(second)], [undefined, 'its payload'])
  })
})
