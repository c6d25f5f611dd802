import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import { readCallback, readState } from '../../../../daemon/oauth/login/authorization-code.ts'
import { safeErrorCode } from '../../../../daemon/oauth/providers/request.ts'

const authorizationEndpoint = 'https://id.example/authorize'
const anyIssuer = { issuer: undefined, issuerRequired: false, authorizationEndpoint }
const known = { issuer: 'https://id.example', issuerRequired: false, authorizationEndpoint }
const promised = { issuer: 'https://id.example', issuerRequired: true, authorizationEndpoint }

describe('read callback', () => {
  const good = [
    ['code=c', anyIssuer, { kind: 'code' }],
    ['code=c&iss=https://id.example/any', anyIssuer, { kind: 'code' }],
    ['code=c', known, { kind: 'code' }],
    ['code=c&iss=https://id.example', promised, { kind: 'code' }],
    ['error=access_denied&code=c', known, { kind: 'error', code: 'access_denied' }],
    [
      'error=invalid_scope&error_description=no%20such%0Ascope.',
      known,
      { kind: 'error', code: 'invalid_scope', explanation: 'no such scope' },
    ],
    ['error=%3Cscript%3E', known, { kind: 'error', code: 'unnamed error' }],
  ] as const
  for (const [query, expected, result] of good)
    it(`reads ${query}`, () =>
      assert.deepEqual(readCallback(new URLSearchParams(query), expected), result))

  const bad = [
    ['', known, 'callback-invalid'],
    ['code=', known, 'callback-invalid'],
    ['code=c&code=c', known, 'callback-invalid'],
    ['error=a&error=b', known, 'callback-invalid'],
    ['code=c&iss=https://id.example&iss=https://id.example', known, 'callback-invalid'],
    ['code=c&iss=https://id.example/', known, 'issuer-mismatch'],
    ['code=c&iss=', known, 'issuer-mismatch'],
    ['code=c', promised, 'issuer-mismatch'],
    ['error=access_denied&iss=https://evil.example', known, 'issuer-mismatch'],
    ['code=c&iss=https://whoever.example', anyIssuer, 'issuer-mismatch'],
    ['code=c&iss=', anyIssuer, 'issuer-mismatch'],
    ['code=c&iss=null', anyIssuer, 'issuer-mismatch'],
  ] as const
  for (const [query, expected, code] of bad)
    it(`refuses "${query}"${expected.issuerRequired ? ' where iss is promised' : ''}`, () =>
      assert.throws(() => readCallback(new URLSearchParams(query), expected), { code }))

  it('takes exactly one state', () => {
    assert.equal(readState(new URLSearchParams('state=s')), 's')
    for (const query of ['', 'state=', 'state=s&state=s'])
      assert.throws(() => readState(new URLSearchParams(query)), { code: 'callback-invalid' })
  })

  it('shows an error code only if it cannot be a token', () => {
    assert.equal(safeErrorCode('invalid_grant'), 'invalid_grant')
    for (const text of ['gho_16C7e42F292c6912E7', 'ya29.a0', 'a b', '', 'x'.repeat(49), 7, null])
      assert.equal(safeErrorCode(text), undefined)
  })
})
