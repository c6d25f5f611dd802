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
})
