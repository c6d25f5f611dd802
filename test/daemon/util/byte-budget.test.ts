import assert from 'node:assert/strict'
import { createByteBudget } from '../../../daemon/util/byte-budget.ts'

describe('a byte budget', () => {
  it('gives until it is used up, and takes nothing when it refuses', () => {
    const budget = createByteBudget(10)
    assert.ok(budget.take(6))
    assert.ok(!budget.take(5))
    assert.equal(budget.used(), 6)
    assert.ok(budget.take(4))
    assert.ok(!budget.take(1))
    assert.ok(budget.take(0))
    budget.giveBack(10)
    assert.equal(budget.used(), 0)
  })

  it('lends what is left to a cache, which shrinks when others need it', () => {
    const budget = createByteBudget(10)
    let cached = 0
    budget.lendTo({ size: () => cached, shrink: (maxBytes) => (cached = maxBytes) })
    cached = budget.spare()
    assert.equal(cached, 10)
    assert.ok(budget.take(4))
    assert.deepEqual([cached, budget.used(), budget.spare()], [6, 4, 6])
    assert.ok(!budget.take(7))
    budget.resize(5)
    assert.equal(cached, 1)
    budget.resize(3)
    assert.deepEqual([cached, budget.spare()], [0, 0])
  })
})
