import assert from 'node:assert/strict'
import { createSeenDeliveries, deliveryKey } from '../../../daemon/webhook/dedupe.ts'

const day = 24 * 3_600_000
const body = Buffer.from('{"a":1}')
const keyOf = (id: string, webhook = '/a') => {
  const key = deliveryKey(webhook, 'id', id, body)
  assert.ok(key)
  return key
}

describe('deliveryKey', () => {
  it('is none without an id, and none when it is switched off', () => {
    assert.equal(deliveryKey('/a', 'id', undefined, body), undefined)
    assert.equal(deliveryKey('/a', 'off', 'x', body), undefined)
  })

  it('is the bytes of the body, whatever the id says', () => {
    const one = deliveryKey('/a', 'body', 'x', body)
    assert.deepEqual(one, deliveryKey('/a', 'body', 'y', Buffer.from(body)))
    assert.notDeepEqual(one, deliveryKey('/a', 'body', 'x', Buffer.from('{"a":2}')))
  })

  it('holds neither the id nor the body', () => {
    for (const dedupe of ['id', 'body'] as const)
      assert.doesNotMatch(JSON.stringify(deliveryKey('/a', dedupe, '{"a":1}', body)), /\{\\"a/)
  })

  it('keeps an id that is a body apart from that body', () => {
    assert.notDeepEqual(
      deliveryKey('/a', 'id', body.toString(), body),
      deliveryKey('/a', 'body', undefined, body),
    )
  })
})

describe('the remembered deliveries', () => {
  it('are known by webhook and id', () => {
    const deliveries = createSeenDeliveries()
    deliveries.remember(keyOf('x'), 'evt_1', 0)
    assert.equal(deliveries.eventOf(keyOf('x'), 1), 'evt_1')
    assert.equal(deliveries.eventOf(keyOf('y'), 1), undefined)
    assert.equal(deliveries.eventOf(keyOf('x', '/b'), 1), undefined)
  })

  it('are forgotten after a day', () => {
    const deliveries = createSeenDeliveries()
    deliveries.remember(keyOf('x'), 'evt_1', 1000)
    assert.equal(deliveries.eventOf(keyOf('x'), 1000 + day - 1), 'evt_1')
    assert.equal(deliveries.eventOf(keyOf('x'), 1000 + day), undefined)
  })

  it('are the newest so many, and those are all there', () => {
    const deliveries = createSeenDeliveries(160)
    for (let count = 0; count < 1000; count += 1)
      deliveries.remember(keyOf(`${count}`), `evt_${count}`, 0)
    assert.equal(deliveries.entries().length, 160)
    for (let count = 840; count < 1000; count += 1)
      assert.equal(deliveries.eventOf(keyOf(`${count}`), 1), `evt_${count}`)
  })

  it('are the newest so many of a webhook, and a flood at one leaves the others alone', () => {
    const deliveries = createSeenDeliveries(3)
    deliveries.remember(keyOf('other', '/b'), 'evt_b', 0)
    for (const id of ['1', '2', '3', '4']) deliveries.remember(keyOf(id), `evt_${id}`, 0)
    assert.equal(deliveries.eventOf(keyOf('1'), 1), undefined)
    assert.equal(deliveries.eventOf(keyOf('2'), 1), 'evt_2')
    assert.equal(deliveries.eventOf(keyOf('4'), 1), 'evt_4')
    assert.equal(deliveries.eventOf(keyOf('other', '/b'), 1), 'evt_b')
  })

  it('may come again once they are forgotten, by the event that has them only', () => {
    const deliveries = createSeenDeliveries()
    deliveries.remember(keyOf('x'), 'evt_1', 0)
    deliveries.forget(keyOf('x'), 'evt_2')
    assert.equal(deliveries.eventOf(keyOf('x'), 1), 'evt_1')
    deliveries.forget(keyOf('x'), 'evt_1')
    assert.equal(deliveries.eventOf(keyOf('x'), 1), undefined)
    deliveries.forget(keyOf('never', '/nowhere'), 'evt_1')
  })
})
