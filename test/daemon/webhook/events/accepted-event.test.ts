import assert from 'node:assert/strict'
import { EventStore } from '../../../../daemon/events/event-store.ts'
import { createByteBudget } from '../../../../daemon/util/byte-budget.ts'
import {
  createRetryableEvents,
  type KeptPayload,
  KeptPayloads,
} from '../../../../daemon/webhook/events/accepted-event.ts'
import { verify } from '../../../../daemon/webhook/signatures/verify.ts'

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

describe('the payload of an event that may run again', () => {
  const megabyte = 1024 * 1024
  const makePayload = (length: number): KeptPayload => ({
    body: verify(Buffer.allocUnsafeSlow(length), {}, 'none', 0),
    headers: {},
    receivedAt: at,
    known: { webhook: '/a', agent: 'echo' },
    delivery: undefined,
  })
  const start = (maxBytes: number) => {
    const events = new EventStore(3)
    const budget = createByteBudget(maxBytes)
    const payloads = new KeptPayloads(events, budget)
    const add = (length: number): string => {
      const { id } = events.add(at, { state: 'done' })
      payloads.keep(id, makePayload(length))
      return id
    }
    const kept = (...ids: string[]) => ids.map((id) => payloads.get(id) !== undefined)
    return { budget, add, kept }
  }

  it('is kept as long as its event', () => {
    const { add, kept } = start(100 * megabyte)
    const ids = [add(1), add(2), add(3), add(4)]
    assert.deepEqual(kept(...ids), [false, true, true, true])
  })

  it('gives way to newer ones: all have 8 MiB together', () => {
    const { add, kept } = start(100 * megabyte)
    const ids = [add(3 * megabyte), add(3 * megabyte), add(3 * megabyte)]
    assert.deepEqual(kept(...ids), [false, true, true])
    const tooLarge = add(9 * megabyte)
    assert.deepEqual(kept(tooLarge, ...ids.slice(2)), [false, true])
  })

  it('gives way to bodies that are read and events that wait', () => {
    const { budget, add, kept } = start(1000)
    const ids = [add(400), add(400)]
    assert.ok(budget.take(500))
    assert.deepEqual(kept(...ids), [false, true])
    assert.ok(budget.take(500))
    assert.deepEqual(kept(...ids, add(1)), [false, false, false])
  })

  it('does not keep the large buffer of which it is a part', () => {
    const body = verify(Buffer.alloc(64 * 1024).subarray(0, 10), {}, 'none', 0)
    assert.equal(body.compact().bytes.buffer.byteLength, 10)
  })
})
