import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import { toCodeChallenge } from '../../../../daemon/oauth/login/authorization-code.ts'
import { randomText } from '../../../../daemon/oauth/login/pending-logins.ts'

describe('pkce', () => {
  it('makes the challenge of RFC 7636 appendix B', () => {
    assert.equal(
      toCodeChallenge('dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'),
      'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
    )
  })

  it('uses verifiers of the length and alphabet that RFC 7636 section 4.1 allows', () => {
    assert.match(randomText(), /^[A-Za-z0-9._~-]{43,128}$/)
    assert.equal(new Set(Array.from({ length: 100 }, randomText)).size, 100)
  })
})
