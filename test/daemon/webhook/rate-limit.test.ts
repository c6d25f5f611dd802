import assert from 'node:assert/strict'
import { createRateLimits } from '../../../daemon/webhook/rate-limit.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { parseRate } from '../../../shared/text.ts'

const waitMs = (count: () => void): number | undefined => {
  try {
    count()
    return undefined
  } catch (error) {
    assert.ok(error instanceof DoorwardError)
    assert.equal(error.code, 'rate-limited')
    return Math.round(error.retryAfterMs ?? 0)
  }
}

describe('the rate limit of a webhook', () => {
  it('takes as many at once as it says, then says when the next is taken', () => {
    const limits = createRateLimits()
    const count = (nowMs: number) =>
      waitMs(() => limits.count('/a', { count: 2, perMs: 1000 }, nowMs))
    assert.deepEqual([count(0), count(0), count(0)], [undefined, undefined, 500])
    assert.equal(count(499), 1)
    assert.equal(count(500), undefined)
    assert.equal(count(500), 500)
  })

  it('does not fill beyond what it says', () => {
    const limits = createRateLimits()
    const count = (nowMs: number) => waitMs(() => limits.count('/a', parseRate('1/h'), nowMs))
    assert.equal(count(0), undefined)
    assert.equal(count(10 * 3_600_000), undefined)
    assert.equal(count(10 * 3_600_000), 3_600_000)
  })

  it('counts each webhook for itself', () => {
    const limits = createRateLimits()
    const rate = parseRate('1/min')
    limits.count('/a', rate, 0)
    limits.count('/b', rate, 0)
    assert.equal(
      waitMs(() => limits.count('/a', rate, 0)),
      60_000,
    )
  })

  it('goes on when the configuration is read again, and begins anew with another rate', () => {
    const limits = createRateLimits()
    limits.count('/a', parseRate('1/min'), 0)
    assert.equal(
      waitMs(() => limits.count('/a', parseRate('1/min'), 0)),
      60_000,
    )
    assert.equal(
      waitMs(() => limits.count('/a', parseRate('2/min'), 0)),
      undefined,
    )
  })

  it('is not emptied by a time that goes back', () => {
    const limits = createRateLimits()
    const rate = parseRate('2/s')
    limits.count('/a', rate, 5000)
    limits.count('/a', rate, 0)
    assert.equal(
      waitMs(() => limits.count('/a', rate, 0)),
      500,
    )
  })
})
