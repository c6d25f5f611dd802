import assert from 'node:assert/strict'
import { EventStore } from '../../../../daemon/events/event-store.ts'
import {
  type AcceptedEvent,
  createRetryableEvents,
  fromWire,
  toWire,
} from '../../../../daemon/webhook/events/accepted-event.ts'

const at = new Date(0)

describe('an event for another machine', () => {
  it('takes along what its answer may request, and where', () => {
    const outputs = { labels: { allowed: ['bug'], max: 3 } }
    const targets = [{ kind: 'github-outputs', text: 'outputs:a/b#1', address: 'a/b#1' }]
    const event = { webhook: { path: '/a', outputs }, targets } as unknown as AcceptedEvent
    const wire = JSON.parse(JSON.stringify(toWire(event))) as ReturnType<typeof toWire>
    const arrived = fromWire(wire, 'prompt')
    assert.deepEqual([arrived.webhook.outputs, arrived.targets], [outputs, targets])
  })
})

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
