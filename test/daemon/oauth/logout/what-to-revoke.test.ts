import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import type { PendingRevocation } from '../../../../daemon/oauth/logout/revocation-store.ts'
import {
  compareAccounts,
  isCutShort,
  isDead,
  whatToRevoke,
} from '../../../../daemon/oauth/logout/revoke.ts'
import type { TokenRecord } from '../../../../daemon/oauth/tokens/token-record.ts'

const ada = { id: '1', name: 'ada@example.com' }
const bob = { id: '2', name: 'bob@example.com' }
const tokens = { accessToken: 'old-access', refreshToken: 'old-refresh' }
const old: PendingRevocation = {
  version: 1,
  provider: 'mine',
  tokens,
  client: { clientId: 'me' },
  account: ada,
  extent: 'grant',
  since: '2026-01-02T00:00:00.000Z',
  attempts: 1,
}
const current: TokenRecord = {
  version: 1,
  provider: 'mine',
  accessToken: 'new-access',
  refreshToken: 'new-refresh',
  tokenType: 'Bearer',
  scopes: [],
  expiresAt: null,
  obtainedAt: '2026-01-03T00:00:00.000Z',
  account: ada,
  clientId: 'me',
}
const apart = { endsAllLogins: false }
const together = { endsAllLogins: true }

describe('what is revoked of an earlier login', () => {
  it('is all of it when nobody is logged in', () => {
    for (const dialect of [apart, together])
      assert.deepEqual(whatToRevoke(old, undefined, dialect), { tokens, extent: 'grant' })
  })

  it('is no more than its tokens while the same person is, or may be, logged in', () => {
    for (const account of [ada, null])
      assert.deepEqual(whatToRevoke(old, { ...current, account }, apart), {
        tokens,
        extent: 'tokens',
      })
  })

  it('is all of it while another person is logged in', () => {
    for (const dialect of [apart, together])
      assert.deepEqual(whatToRevoke(old, { ...current, account: bob }, dialect), {
        tokens,
        extent: 'grant',
      })
  })

  it('is nothing where that would end the login of the same person with the same client', () => {
    assert.equal(whatToRevoke(old, current, together), undefined)
    assert.equal(whatToRevoke(old, { ...current, account: null }, together), undefined)
    assert.equal(whatToRevoke({ ...old, account: null }, current, together), undefined)
    assert.equal(whatToRevoke(old, { ...current, endsTogether: true }, apart), undefined)
    assert.deepEqual(whatToRevoke(old, { ...current, clientId: 'other' }, together), {
      tokens,
      extent: 'tokens',
    })
  })

  it('is never a token that the new login has too', () => {
    assert.equal(whatToRevoke(old, { ...current, accessToken: 'old-access' }, apart), undefined)
    assert.deepEqual(whatToRevoke(old, { ...current, refreshToken: 'old-refresh' }, apart), {
      tokens: { accessToken: 'old-access' },
      extent: 'tokens',
    })
    const sameRefreshOfAnother = { ...current, refreshToken: 'old-refresh', account: bob }
    assert.equal(whatToRevoke(old, sameRefreshOfAnother, apart)?.extent, 'tokens')
  })

  it('is nothing of a login that is known dead', () => {
    const ended = { at: '2026-01-04T00:00:00.000Z', cause: 'revoked' }
    const expiresAt = '2026-01-04T00:00:00.000Z'
    const now = Date.parse(expiresAt)
    assert.equal(isDead({ ...current, ended, expiresAt }, now), true)
    assert.equal(isDead({ ...current, ended, expiresAt }, now - 1), false)
    assert.equal(isDead({ ...current, ended }, now), false)
    assert.equal(isDead({ ...current, expiresAt }, now), false)
  })
})

describe('a logout that was cut short', () => {
  it('is one whose tokens are still in the token file', () => {
    const left = { ...current, ...tokens, obtainedAt: '2026-01-01T00:00:00.000Z' }
    assert.equal(isCutShort(old, left), true)
    assert.equal(isCutShort(old, { ...left, accessToken: 'refreshed' }), true)
    assert.equal(isCutShort(old, { ...left, accessToken: 'x', refreshToken: 'y' }), false)
    assert.equal(isCutShort({ ...old, extent: 'tokens' }, left), false)
    assert.equal(isCutShort({ ...old, tokens: { accessToken: 'a' } }, { ...left }), false)
  })

  it('is none when a later login got the same tokens', () => {
    assert.equal(isCutShort(old, { ...current, ...tokens }), false)
  })
})

describe('account', () => {
  it('is compared by id, and by name where the ids are of different kinds', () => {
    const cases: [string, string, string, string, string][] = [
      ['1', 'ada', '1', 'renamed', 'same'],
      ['1', 'ada', '2', 'ada', 'other'],
      ['1', 'Ada@example.com', 'ada@example.com', 'ada@example.com', 'same'],
      ['1', 'bob@example.com', 'ada@example.com', 'ada@example.com', 'other'],
      ['1', 'Ada Lovelace', 'ada@example.com', 'ada@example.com', 'unknown'],
      ['U1', 'ada', '1', 'ada', 'same'],
    ]
    for (const [id, name, otherId, otherName, expected] of cases)
      assert.equal(compareAccounts({ id, name }, { id: otherId, name: otherName }), expected)
    assert.equal(compareAccounts(null, ada), 'unknown')
    assert.equal(compareAccounts(ada, null), 'unknown')
  })
})
