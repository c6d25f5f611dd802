import assert from 'node:assert/strict'
import { toQuantile } from '../../../daemon/metrics/metrics.ts'

describe('a quantile of a histogram', () => {
  const counts = new Map([
    [1, 10],
    [2, 10],
    [4, 90],
    [Infinity, 100],
  ])

  it('is estimated within the bucket that it falls into', () => {
    assert.equal(toQuantile(counts, 0.05), 0.5)
    assert.equal(toQuantile(counts, 0.1), 1)
    assert.equal(toQuantile(counts, 0.5), 3)
  })

  it('is the last bound for a value beyond it', () => {
    assert.equal(toQuantile(counts, 0.99), 4)
  })

  it('is 0 without values', () => {
    assert.equal(toQuantile(new Map(), 0.5), 0)
    assert.equal(toQuantile(new Map([[Infinity, 0]]), 0.5), 0)
  })
})
