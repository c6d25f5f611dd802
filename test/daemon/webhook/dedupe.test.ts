import assert from 'node:assert/strict'
import { deliveryKey, SeenDeliveries } from '../../../daemon/webhook/dedupe.ts'

const day = 24 * 3_600_000
const body = Buffer.from('{"a":1}')
const keyOf = (id: string, webhook = '/a') => {
  const key = deliveryKey(webhook, 'id', id, body)
  assert.ok(key)
  return key
}

describe('the key of a delivery', () => {
  it('is missing without an id, and when deduplication is off', () => {
    assert.equal(deliveryKey('/a', 'id', undefined, body), undefined)
    assert.equal(deliveryKey('/a', 'off', 'x', body), undefined)
  })

  it('is the bytes of the body, whatever the id says', () => {
    const one = deliveryKey('/a', 'body', 'x', body)
    assert.deepEqual(one, deliveryKey('/a', 'body', 'y', Buffer.from(body)))
    assert.notDeepEqual(one, deliveryKey('/a', 'body', 'x', Buffer.from('{"a":2}')))
  })

  it('has neither the id nor the body in it', () => {
    for (const dedupe of ['id', 'body'] as const)
      assert.doesNotMatch(JSON.stringify(deliveryKey('/a', dedupe, '{"a":1}', body)), /\{\\"a/)
  })

  it('of an id differs from that of a body with the same text', () => {
    assert.notDeepEqual(
      deliveryKey('/a', 'id', body.toString(), body),
      deliveryKey('/a', 'body', undefined, body),
    )
  })
})

describe('deliveries that were seen', () => {
  it('are known by webhook and id', () => {
    const deliveries = new SeenDeliveries()
    deliveries.remember(keyOf('x'), 'evt_1', 0)
    assert.equal(deliveries.eventFor(keyOf('x'), 1), 'evt_1')
    assert.equal(deliveries.eventFor(keyOf('y'), 1), undefined)
    assert.equal(deliveries.eventFor(keyOf('x', '/b'), 1), undefined)
  })

  it('are forgotten after a day', () => {
    const deliveries = new SeenDeliveries()
    deliveries.remember(keyOf('x'), 'evt_1', 1000)
    assert.equal(deliveries.eventFor(keyOf('x'), 1000 + day - 1), 'evt_1')
    assert.equal(deliveries.eventFor(keyOf('x'), 1000 + day), undefined)
  })

  it('are the newest of a webhook up to the limit', () => {
    const deliveries = new SeenDeliveries(160)
    for (let count = 0; count < 1000; count += 1)
      deliveries.remember(keyOf(`${count}`), `evt_${count}`, 0)
    const { length } = deliveries.snapshot(0)
    assert.ok(length >= 160 && length <= 176, `${length}`)
    for (let count = 840; count < 1000; count += 1)
      assert.equal(deliveries.eventFor(keyOf(`${count}`), 1), `evt_${count}`)
  })

  it('keep their place when another webhook is flooded', () => {
    const deliveries = new SeenDeliveries(3)
    deliveries.remember(keyOf('other', '/b'), 'evt_b', 0)
    for (const id of ['1', '2', '3', '4']) deliveries.remember(keyOf(id), `evt_${id}`, 0)
    assert.equal(deliveries.eventFor(keyOf('1'), 1), undefined)
    assert.equal(deliveries.eventFor(keyOf('2'), 1), 'evt_2')
    assert.equal(deliveries.eventFor(keyOf('4'), 1), 'evt_4')
    assert.equal(deliveries.eventFor(keyOf('other', '/b'), 1), 'evt_b')
  })

  it('are forgotten only by the event that they belong to', () => {
    const deliveries = new SeenDeliveries()
    deliveries.remember(keyOf('x'), 'evt_1', 0)
    deliveries.forget(keyOf('x'), 'evt_2')
    assert.equal(deliveries.eventFor(keyOf('x'), 1), 'evt_1')
    deliveries.forget(keyOf('x'), 'evt_1')
    assert.equal(deliveries.eventFor(keyOf('x'), 1), undefined)
    deliveries.forget(keyOf('never', '/nowhere'), 'evt_1')
  })

  it('become the newest when they are remembered again', () => {
    const deliveries = new SeenDeliveries(2)
    deliveries.remember(keyOf('x'), 'evt_1', 0)
    deliveries.remember(keyOf('y'), 'evt_2', 0)
    deliveries.remember(keyOf('x'), 'evt_3', 1)
    deliveries.remember(keyOf('z'), 'evt_4', 1)
    assert.equal(deliveries.eventFor(keyOf('x'), 1), 'evt_3')
    assert.equal(deliveries.eventFor(keyOf('y'), 1), undefined)
  })

  it('keep their order and their age in the snapshot for another process', () => {
    const before = new SeenDeliveries()
    before.remember(keyOf('x'), 'evt_1', 1000)
    before.remember(keyOf('y'), 'evt_2', 2000)
    const after = new SeenDeliveries()
    after.restore(before.snapshot(5000), 100)
    assert.equal(after.eventFor(keyOf('x'), 100), 'evt_1')
    assert.equal(after.eventFor(keyOf('x'), 100 - 4000 + day), undefined)
    assert.deepEqual(after.snapshot(100), before.snapshot(5000))
  })

  it('are known by either of id and bytes where no signature covers the id', () => {
    const deliveries = new SeenDeliveries()
    const both = (id: string, bytes: Buffer) => {
      const key = deliveryKey('/a', 'id', id, bytes, bytes)
      assert.ok(key)
      return key
    }
    const other = Buffer.from('{"a":2}')
    deliveries.remember(both('x', body), 'evt_1', 0)
    assert.equal(deliveries.eventFor(both('y', body), 1), 'evt_1')
    assert.equal(deliveries.eventFor(both('x', other), 1), 'evt_1')
    assert.equal(deliveries.eventFor(both('y', other), 1), undefined)
    deliveries.forget(both('x', body), 'evt_1')
    for (const key of [both('y', body), both('x', other)])
      assert.equal(deliveries.eventFor(key, 1), undefined)
  })
})
