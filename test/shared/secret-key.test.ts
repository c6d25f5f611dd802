import assert from 'node:assert/strict'
import type { SchemeName } from '../../shared/signatures/presets.ts'
import { keyBytes, secretFault } from '../../shared/signatures/secrets.ts'
import { schemeNamed } from '../support/daemon/accepts.ts'

const whsec = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const bytes = Buffer.from('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'base64')

const key = (name: SchemeName, secret: string) => {
  const form = schemeNamed(name).forms[0]
  assert.ok(form)
  return keyBytes(form, secret)
}

describe('keyBytes', () => {
  it('decodes a secret of Standard Webhooks, with or without whsec_ before it', () => {
    assert.deepEqual(key('standard-webhooks', whsec), bytes)
    assert.deepEqual(key('standard-webhooks', whsec.slice(6)), bytes)
    assert.deepEqual(key('standard-webhooks', 'whsec_AAA='), Buffer.alloc(2))
    // As Supabase shows it.
    assert.deepEqual(key('standard-webhooks', `v1,${whsec}`), bytes)
    assert.equal(secretFault(schemeNamed('standard-webhooks'), `v1,${whsec}`), undefined)
    assert.deepEqual(key('standard-webhooks', 'whsec_AAA'), Buffer.alloc(2))
  })

  it('takes no other text for base64', () => {
    for (const text of [
      '',
      'whsec_',
      'A',
      'AAAAA',
      'AA=',
      'A=',
      'AA A',
      'AAAA\n',
      'AA-_',
      '====',
      'whsec_whsec_',
    ])
      assert.equal(key('standard-webhooks', text), undefined, JSON.stringify(text))
  })

  it('takes the whole text with the others, whsec_ and all', () => {
    for (const name of [
      'hmac',
      'github',
      'stripe',
      'slack',
      'shopify',
      'linear',
      'sentry',
    ] as const)
      assert.deepEqual(key(name, whsec), Buffer.from(whsec))
  })
})

describe('secretFault', () => {
  const faults: readonly [SchemeName, string, RegExp, boolean][] = [
    ['github', 'secret\n', /white space/, true],
    ['github', ' secret', /white space/, true],
    ['hmac', '"secret"', /quotes/, true],
    ['stripe', 'sk_live_abc', /begin with whsec_/, false],
    ['slack', 'xoxb-1-2', /32 hex digits/, false],
    ['standard-webhooks', 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', /begin with whsec_/, false],
    ['standard-webhooks', 'whsec_not base64', /not base64/, true],
    ['standard-webhooks', `${whsec}\n`, /white space/, true],
    ['standard-webhooks', 'whpk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', /Ed25519/, true],
    ['standard-webhooks', 'whsec_AAAA', /24 bytes/, false],
    ['gitlab', 'whsec_***', /not base64/, true],
  ]
  for (const [name, secret, reason, unusable] of faults)
    it(`finds fault with ${JSON.stringify(secret)} for ${name}, and does not repeat it`, () => {
      const fault = secretFault(schemeNamed(name), secret)
      assert.match(fault?.reason ?? '', reason)
      assert.equal(fault?.unusable, unusable)
      assert.ok(!fault?.reason.includes(secret.trim()))
    })

  it('finds none with what senders hand out', () => {
    for (const [name, secret] of [
      ['github', "It's a Secret to Everybody"],
      ['stripe', 'whsec_dGVzdA'],
      ['slack', '0123456789abcdef0123456789abcdef'],
      ['standard-webhooks', whsec],
      ['gitlab', whsec],
      ['gitlab', 'token'],
      ['shopify', 'shpss_0123'],
      ['linear', 'lin_wh_x'],
      ['sentry', 'abc'],
    ] as const)
      assert.equal(secretFault(schemeNamed(name), secret), undefined)
  })
})
