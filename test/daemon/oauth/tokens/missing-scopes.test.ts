import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import { getDialect } from '../../../../daemon/oauth/dialects/dialects.ts'
import { missingScopes } from '../../../../daemon/oauth/tokens/token-record.ts'
import type { DialectName } from '../../../../shared/config/schema.ts'

const google = 'https://www.googleapis.com/auth'

describe('missing scopes', () => {
  const table: [string, DialectName, string, string, string][] = [
    ['nothing when all was granted', 'standard', 'a b', 'b a', ''],
    ['what was asked for and not granted, once', 'standard', 'a b b c', 'a', 'b c'],
    ['nothing where more was granted', 'standard', 'a', 'a b c', ''],
    ['nothing where no scope is named', 'github', 'repo user', '', ''],
    ['nothing where nothing was asked for', 'standard', '', 'a', ''],
    ['nothing that a wider scope holds', 'github', 'user:email public_repo', 'repo user', ''],
    ['nothing that a wider scope holds over two steps', 'github', 'read:org', 'admin:org', ''],
    [
      'the wider scope where a narrower was granted',
      'github',
      'admin:org',
      'write:org',
      'admin:org',
    ],
    [
      'no other word for a scope of another dialect',
      'standard',
      'read:org',
      'admin:org',
      'read:org',
    ],
    [
      'no long name of Google',
      'google',
      'openid email profile',
      `openid ${google}/userinfo.email ${google}/userinfo.profile`,
      '',
    ],
    [
      'a name of the language as any other',
      'github',
      'constructor',
      '__proto__ toString',
      'constructor',
    ],
    [
      'offline access without a refresh token',
      'standard',
      'a offline_access',
      'a',
      'offline_access',
    ],
  ]
  for (const [what, dialect, requested, granted, missing] of table)
    it(`are ${what}`, () => {
      const { impliedScopes } = getDialect({ dialect })
      const list = (text: string) => text.split(' ').filter(Boolean)
      const all = { scopes: list(granted), hasRefreshToken: false }
      assert.deepEqual(missingScopes(list(requested), all, impliedScopes), list(missing))
    })

  it('are not offline access where a refresh token came', () => {
    const granted = { scopes: ['a'], hasRefreshToken: true }
    assert.deepEqual(missingScopes(['a', 'offline_access'], granted, {}), [])
  })

  it('end for scopes that hold each other', () => {
    const implied = { a: ['b'], b: ['a', 'c'] }
    const granted = { scopes: ['a'], hasRefreshToken: false }
    assert.deepEqual(missingScopes(['a', 'b', 'c', 'd'], granted, implied), ['d'])
  })
})
