import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import * as fc from 'fast-check'
import { createRemembered } from '../../../daemon/webhook/remembered.ts'

const hashOf = (name: string) => createHash('sha256').update(name).digest('binary')

describe('what is remembered of one webhook', () => {
  it('is what a list of hashes, newest last, would hold', () => {
    type Step = { name: string; event: string; does: string; passes: number }
    const step: fc.Arbitrary<Step> = fc.record({
      // Few hashes, so that they meet again; many, so that it grows and places are taken.
      name: fc.oneof(fc.nat(12), fc.nat(400)).map(String),
      event: fc.nat(3).map((number) => `evt_${number}`),
      does: fc.constantFrom('put', 'put', 'put', 'remove', 'ask'),
      passes: fc.oneof(fc.constant(0), fc.nat(40)),
    })
    const run = (max: number, steps: readonly Step[]) => {
      const remembered = createRemembered(max, 100)
      const model = new Map<string, { eventId: string; atSecond: number }>()
      // Before the start of this process: of the daemon before it.
      let now = -300
      for (const { name, event, does, passes } of steps) {
        const hash = hashOf(name)
        now += passes
        const known = model.get(hash)
        if (does === 'put') {
          remembered.put(hash, event, now)
          model.delete(hash)
          model.set(hash, { eventId: event, atSecond: now })
          for (const [old, { atSecond }] of model)
            if (model.size > max || now - atSecond >= 100) model.delete(old)
        } else if (does === 'remove') {
          assert.equal(remembered.remove(hash, event), known?.eventId === event)
          if (known?.eventId === event) model.delete(hash)
        } else {
          const isYoung = known && now - known.atSecond < 100
          assert.equal(remembered.eventOf(hash, now), isYoung ? known.eventId : undefined)
        }
      }
      assert.deepEqual(
        remembered.entries(),
        [...model].map(([hash, value]) => ({ hash, ...value })),
      )
      for (const [hash, { eventId, atSecond }] of model)
        assert.equal(remembered.eventOf(hash, atSecond), eventId)
    }
    fc.assert(fc.property(fc.constantFrom(1, 3, 16, 100), fc.array(step, { maxLength: 600 }), run))
  })

  it('is nothing of a hash of another length, which another build may hand over', () => {
    const remembered = createRemembered(10, 100)
    remembered.put(hashOf('a'), 'evt_1', 0)
    const base64 = createHash('sha256').update('b').digest('base64')
    remembered.put(base64, 'evt_2', 0)
    assert.equal(remembered.eventOf(base64, 0), undefined)
    assert.deepEqual(remembered.entries(), [{ hash: hashOf('a'), eventId: 'evt_1', atSecond: 0 }])
    assert.throws(() => remembered.put(hashOf('c'), 'x'.repeat(40), 0), RangeError)
  })

  it('is the newest ten thousand of many more, each with its event', () => {
    const remembered = createRemembered(10_000, 100)
    for (let count = 0; count < 40_000; count += 1)
      remembered.put(hashOf(String(count)), `evt_${count.toString(16).padStart(18, '0')}`, 0)
    assert.equal(remembered.entries().length, 10_000)
    assert.equal(remembered.eventOf(hashOf('29999'), 1), undefined)
    for (const count of [30_000, 35_000, 39_999])
      assert.equal(
        remembered.eventOf(hashOf(String(count)), 1),
        `evt_${count.toString(16).padStart(18, '0')}`,
      )
  })
})
