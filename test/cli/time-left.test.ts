import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import { timeLeft } from '../../cli/time-left.ts'

describe('time left', () => {
  const cases: readonly (readonly [number, string])[] = [
    [600_000, '10:00'],
    [598_001, '9:59'],
    [59_000, '0:59'],
    [1, '0:01'],
    [0, '0:00'],
    [-5000, '0:00'],
    [3_600_000, '1:00:00'],
    [3_725_000, '1:02:05'],
  ]
  for (const [ms, expected] of cases)
    it(`shows ${ms} ms as ${expected}`, () => assert.equal(timeLeft(1000 + ms, 1000), expected))
})
