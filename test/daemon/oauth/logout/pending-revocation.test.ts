import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import {
  type PendingRevocation,
  afterFailure,
  giveUpAt,
  giveUpDate,
  isWaitOver,
  nextLookMs,
  retryDelayMs,
} from '../../../../daemon/oauth/logout/revocation-store.ts'

const minute = 60_000
const hour = 60 * minute
const now = Date.parse('2026-11-21T12:00:00.000Z')

describe('wait before a revocation is tried again', () => {
  it('is a minute, doubling to six hours', () => {
    const minutes = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 100, 2000].map(
      (n) => retryDelayMs(n, 0) / minute,
    )
    assert.deepEqual(minutes, [1, 2, 4, 8, 16, 32, 64, 128, 256, 360, 360, 360])
  })

  it('is up to a quarter longer', () => {
    assert.equal(retryDelayMs(1, 0.5), 67_500)
    assert.equal(retryDelayMs(100, 1), 7.5 * hour)
    assert.equal(retryDelayMs(0, 0), minute)
  })

  it('counts the time that a machine slept, and does not wait for a clock that was set back', () => {
    const wait = { from: now, delayMs: 6 * hour }
    assert.equal(isWaitOver(wait, now), false)
    assert.equal(isWaitOver(wait, now + 6 * hour - 1), false)
    assert.equal(isWaitOver(wait, now + 6 * hour), true)
    assert.equal(isWaitOver(wait, now + 100 * 24 * hour), true)
    assert.equal(isWaitOver(wait, now - 1), true)
    assert.equal(isWaitOver(wait, 0), true)
  })

  it('is looked at once a minute at least, and not more often than once a second', () => {
    assert.equal(nextLookMs([], now), minute)
    assert.equal(nextLookMs([{ from: now, delayMs: 6 * hour }], now), minute)
    assert.equal(nextLookMs([{ from: now - 50_000, delayMs: minute }], now), 10_000)
    assert.equal(nextLookMs([{ from: now - hour, delayMs: minute }], now), 1000)
    assert.equal(nextLookMs([{ from: now + hour, delayMs: minute }], now), minute)
  })
})

describe('pending revocation', () => {
  const pending: PendingRevocation = {
    version: 1,
    provider: 'mine',
    tokens: { accessToken: 'access-1' },
    client: { clientId: 'me' },
    account: null,
    extent: 'grant',
    since: new Date(now).toISOString(),
    attempts: 1,
  }

  it('is tried for thirty days', () => {
    assert.equal(giveUpAt(now), now + 30 * 24 * hour)
    assert.equal(giveUpDate(now), '2026-12-21')
  })

  it('counts what was tried in vain and remembers why', () => {
    assert.deepEqual(afterFailure(pending, 'id.example answered 500', now + hour), {
      ...pending,
      attempts: 2,
      lastFailure: 'id.example answered 500',
    })
  })

  it('is not kept for longer because the clock was set back', () => {
    const { since } = afterFailure(pending, 'x', now - 24 * hour)
    assert.equal(since, '2026-11-20T12:00:00.000Z')
  })
})
