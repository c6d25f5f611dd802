import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import {
  backoffMs,
  isRenewable,
  lifetimeMs,
  refreshTime,
  validityMs,
} from '../../../../daemon/oauth/tokens/refresh-time.ts'

const start = Date.parse('2026-11-21T12:00:00.000Z')
const at = (seconds: number): string => new Date(start + seconds * 1000).toISOString()
const record = (lifetimeSeconds: number | null) => ({
  obtainedAt: at(0),
  expiresAt: lifetimeSeconds === null ? null : at(lifetimeSeconds),
  refreshToken: 'r',
})
const minute = 60_000

describe('the time of a refresh', () => {
  it('lies five minutes before the end', () =>
    assert.equal(refreshTime(record(3600), 0), start + 55 * minute))

  it('lies a third of the lifetime before the end of a short one', () =>
    assert.equal(refreshTime(record(600), 0), start + 400_000))

  it('comes up to a tenth earlier by chance, never later', () =>
    assert.equal(refreshTime(record(3600), 1), start + 54.5 * minute))

  it('lies a minute at least after the refresh before', () =>
    assert.equal(refreshTime(record(90), 0), start + minute))

  for (const [why, token] of [
    ['that never ends', record(null)],
    ['that nothing renews', { ...record(3600), refreshToken: undefined }],
    ...[0, 0.001, 1, 60, 89].map(
      (seconds) => [`that lives ${seconds} s`, record(seconds)] as const,
    ),
    ['whose refresh token is dead', { ...record(3600), ended: { at: at(1), cause: 'revoked' } }],
  ] as const)
    it(`is undefined for a token ${why}`, () => assert.equal(refreshTime(token, 0), undefined))

  it('is known of a token with a living refresh token alone', () => {
    assert.equal(isRenewable({ refreshToken: 'r' }), true)
    assert.equal(isRenewable({}), false)
    assert.equal(isRenewable({ refreshToken: 'r', ended: { at: at(0), cause: 'x' } }), false)
  })
})

describe('lifetime and validity', () => {
  it('are counted from the answer and from now', () => {
    assert.equal(lifetimeMs(record(3600)), 60 * minute)
    assert.equal(validityMs(record(3600), start + 59 * minute), minute)
    assert.equal(validityMs(record(3600), start + 61 * minute), -minute)
  })

  it('are endless for a token that never ends', () => {
    assert.equal(lifetimeMs(record(null)), Number.POSITIVE_INFINITY)
    assert.equal(validityMs(record(null), start), Number.POSITIVE_INFINITY)
  })
})

describe('the pause after failures', () => {
  it('doubles from two seconds to five minutes, half of it by chance', () => {
    const longest = [1, 2, 3, 8, 9, 100].map((failures) => backoffMs(failures, 1, undefined))
    assert.deepEqual(longest, [2000, 4000, 8000, 256_000, 300_000, 300_000])
    assert.equal(backoffMs(1, 0, undefined), 1000)
  })

  it('is never less than the provider asked for, up to an hour', () => {
    assert.equal(backoffMs(1, 0, 30_000), 30_000)
    assert.equal(backoffMs(1, 0, 24 * 60 * minute), 60 * minute)
  })
})
