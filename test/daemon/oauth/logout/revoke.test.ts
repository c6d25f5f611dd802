import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import type { PendingRevocation } from '../../../../daemon/oauth/logout/revocation-store.ts'
import {
  getEndedBy,
  getExtentBeside,
  isOtherAccount,
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

describe('a revocation beside another login', () => {
  const endedBy = (other: TokenRecord, dialect: typeof apart, pending = old) =>
    getEndedBy(pending, [other], dialect).length > 0

  it('is of the whole grant only where that is certainly another account', () => {
    assert.equal(getExtentBeside(old, []), 'grant')
    assert.equal(getExtentBeside(old, [{ ...current, account: bob }]), 'grant')
    for (const account of [ada, null])
      assert.equal(
        getExtentBeside(old, [
          { ...current, account: bob },
          { ...current, account },
        ]),
        'tokens',
      )
    assert.equal(getExtentBeside({ ...old, extent: 'tokens' }, []), 'tokens')
  })

  it('ends a login of the same account and client where the provider ends all logins', () => {
    assert.equal(endedBy(current, together), true)
    assert.equal(endedBy({ ...current, account: null }, together), true)
    assert.equal(endedBy(current, together, { ...old, account: null }), true)
    assert.equal(endedBy({ ...current, account: bob }, together), false)
    assert.equal(endedBy({ ...current, clientId: 'other' }, together), false)
    assert.equal(endedBy(current, apart), false)
  })

  it('ends a login that has the same token', () => {
    assert.equal(endedBy({ ...current, accessToken: 'old-access' }, apart), true)
    for (const account of [ada, bob])
      assert.equal(endedBy({ ...current, refreshToken: 'old-refresh', account }, apart), true)
    const { refreshToken: _, ...unrefreshable } = current
    assert.equal(endedBy(unrefreshable, apart, { ...old, tokens: { accessToken: 'a' } }), false)
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
