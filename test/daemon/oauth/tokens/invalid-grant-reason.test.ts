import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import { type InvalidGrant, invalidGrantReason } from '../../../../daemon/oauth/tokens/refresh.ts'

const now = Date.parse('2026-11-21T12:00:00.000Z')
const day = 24 * 60 * 60 * 1000
const daysAgo = (days: number): string => new Date(now - days * day).toISOString()

const causeOf = (
  dialect: 'standard' | 'google' | 'github' | 'slack',
  record: { loggedInAt?: string; obtainedAt?: string; refreshExpiresAt?: string } = {},
  end: Partial<InvalidGrant> = {},
): string =>
  invalidGrantReason(
    { title: 'Mine', dialect },
    { obtainedAt: daysAgo(1), loggedInAt: daysAgo(30), ...record },
    { now, providerTime: now, sentBefore: undefined, ...end },
  )

describe('why a login has ended', () => {
  it('is the lost answer of an earlier refresh where there was one', () =>
    assert.match(
      causeOf('github', {}, { sentBefore: '2026-11-21T11:00:00.000Z' }),
      /no token came of the renewal at 2026-11-21T11:00:00.000Z,/,
    ))

  it('is the end of the refresh token that the provider announced', () =>
    assert.match(causeOf('slack', { refreshExpiresAt: daysAgo(2) }), /was good until 2026-11-19/))

  it('is the testing mode of an app at Google after seven days, and then only', () => {
    assert.match(causeOf('google', { loggedInAt: daysAgo(7) }), /in testing/)
    assert.doesNotMatch(causeOf('google', { loggedInAt: daysAgo(30) }), /in testing/)
    assert.doesNotMatch(causeOf('github', { loggedInAt: daysAgo(7) }), /in testing/)
  })

  it('is a clock that differs from the provider’s by more than five minutes', () => {
    assert.match(causeOf('standard', {}, { providerTime: now + day }), /1440 minutes behind/)
    assert.match(causeOf('standard', {}, { providerTime: now - 3_600_000 }), /60 minutes ahead/)
    assert.match(causeOf('standard', {}, { providerTime: now + 60_000 }), /revoked at Mine/)
    assert.match(causeOf('standard', {}, { providerTime: undefined }), /revoked at Mine/)
  })

  it('is followed by what the provider says', () =>
    assert.match(
      causeOf('standard', {}, { explanation: 'the user is inactive' }),
      /has expired \(Mine says: the user is inactive\)$/,
    ))

  it('is what the provider documents where nothing else is known', () => {
    assert.match(causeOf('google'), /password.*100 logins/)
    assert.doesNotMatch(causeOf('google'), /six months/)
    assert.match(causeOf('google', { loggedInAt: daysAgo(200) }), /six months/)
    assert.match(causeOf('github'), /six months/)
    assert.match(causeOf('slack'), /30 days/)
  })
})
