import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import type { PendingRevocation } from '../../../../daemon/oauth/logout/revocation-store.ts'
import {
  getAllowedExtent,
  isOtherAccount,
  isUnfinishedLogout,
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
  it('is the whole grant when there is no login', () => {
    for (const dialect of [apart, together])
      assert.equal(getAllowedExtent(old, undefined, dialect), 'grant')
  })

  it('is its tokens only while the same account is, or may be, logged in', () => {
    for (const account of [ada, null])
      assert.equal(getAllowedExtent(old, { ...current, account }, apart), 'tokens')
  })

  it('is the whole grant while another account is logged in', () => {
    for (const dialect of [apart, together])
      assert.equal(getAllowedExtent(old, { ...current, account: bob }, dialect), 'grant')
  })

  it('is nothing where that would end the login of the same account with the same client', () => {
    assert.equal(getAllowedExtent(old, current, together), undefined)
    assert.equal(getAllowedExtent(old, { ...current, account: null }, together), undefined)
    assert.equal(getAllowedExtent({ ...old, account: null }, current, together), undefined)
    assert.equal(getAllowedExtent(old, { ...current, clientId: 'other' }, together), 'tokens')
  })

  it('is nothing where the newer login has the same token', () => {
    const accessToken = 'old-access'
    assert.equal(getAllowedExtent(old, { ...current, accessToken }, apart), undefined)
    const refreshToken = 'old-refresh'
    for (const account of [ada, bob])
      assert.equal(getAllowedExtent(old, { ...current, refreshToken, account }, apart), undefined)
  })
})

describe('an unfinished logout', () => {
  it('is one whose tokens are still in the token file', () => {
    const left = { ...current, ...tokens, obtainedAt: '2026-01-01T00:00:00.000Z' }
    assert.equal(isUnfinishedLogout(old, left), true)
    assert.equal(isUnfinishedLogout(old, { ...left, accessToken: 'refreshed' }), true)
    assert.equal(isUnfinishedLogout(old, { ...left, accessToken: 'x', refreshToken: 'y' }), false)
    assert.equal(isUnfinishedLogout({ ...old, extent: 'tokens' }, left), false)
    assert.equal(isUnfinishedLogout({ ...old, tokens: { accessToken: 'a' } }, { ...left }), false)
  })

  it('is not one when a later login got the same tokens', () => {
    assert.equal(isUnfinishedLogout(old, { ...current, ...tokens }), false)
  })
})

describe('another account', () => {
  it('has another id and another name, since ids are of different kinds', () => {
    const cases: [string, string, string, string, boolean][] = [
      ['1', 'ada', '1', 'renamed', false],
      ['1', 'ada', '2', 'bob', true],
      ['1', 'Ada@example.com', 'ada@example.com', 'ada@example.com', false],
      ['1', 'bob@example.com', 'ada@example.com', 'ada@example.com', true],
      ['U1', 'ada', '1', 'ada', false],
    ]
    for (const [id, name, otherId, otherName, expected] of cases)
      assert.equal(isOtherAccount({ id, name }, { id: otherId, name: otherName }), expected)
    assert.equal(isOtherAccount(null, ada), false)
    assert.equal(isOtherAccount(ada, null), false)
  })
})
