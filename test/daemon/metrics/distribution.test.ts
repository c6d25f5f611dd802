import assert from 'node:assert/strict'
import { createDistribution } from '../../../daemon/metrics/timings.ts'

describe('a distribution of durations', () => {
  it('is empty at first', () => {
    const none = createDistribution([1, 10])
    assert.deepEqual(
      [none.count(), none.totalMs(), none.quantile(0.5), none.upTo()],
      [0, 0, 0, [0, 0]],
    )
  })

  it('tells quantiles that are at most a tenth too long', () => {
    const some = createDistribution([])
    for (let ms = 1; ms <= 10_000; ms += 1) some.note(ms)
    for (const [part, exact] of [
      [0.5, 5000],
      [0.99, 9900],
      [1, 10_000],
    ] as const) {
      const told = some.quantile(part)
      assert.ok(told >= exact && told <= exact * 1.1, `${part}: ${told}`)
    }
  })

  it('counts what took at most each bound, and all of it', () => {
    const some = createDistribution([1, 10, 100])
    for (const ms of [0, 0.5, 1, 1.01, 10, 99, 101, 1e12]) some.note(ms)
    assert.deepEqual(some.upTo(), [3, 5, 6])
    assert.equal(some.count(), 8)
    assert.equal(Math.round(some.totalMs() - 1e12), 213)
  })
})
