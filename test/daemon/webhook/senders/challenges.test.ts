import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import * as fc from 'fast-check'
import { couldBeChallenge } from '../../../../daemon/webhook/senders/challenges.ts'
import { findUnsignedHandshake } from '../../../../daemon/webhook/senders/handshakes-unsigned.ts'
import { parse } from '../../../../daemon/webhook/read-delivery.ts'
import {
  prepareVerifier,
  trustRead,
  type Verifier,
  verify,
} from '../../../../daemon/webhook/signatures/verify.ts'
import { check, linesOf, webhook } from '../../../support/daemon/config-files.ts'

const secret = 'a secret of the test'
const refused = { code: 'signature-invalid' }

const hook = (...lines: string[]) => {
  const yaml = webhook(`    secret_env: A\n${lines.map((line) => `    ${line}\n`).join('')}`)
  const [entry] = check({ webhooks: yaml }).webhooks
  assert.ok(entry)
  const verifier = prepareVerifier(entry.scheme, [secret])
  return { ...entry, verifier: verifier as Verifier, verifyTokens: () => [] }
}

type Asked = { readonly method?: string; readonly query?: string; readonly header?: string }

const ask = (found: ReturnType<typeof hook>, { method = 'GET', query = '', header }: Asked) =>
  findUnsignedHandshake(found, {
    method,
    url: `/a${query}`,
    headers: header === undefined ? {} : { 'x-challenge': [header] },
    bytes: Buffer.alloc(0),
  })?.reply

describe('a challenge that the owner of a webhook describes', () => {
  const crc = hook(
    "challenge: { query: crc_token, hmac: sha256, encoding: base64, json: response_token, prefix: 'sha256=' }",
  )

  it('sends back what came in the query, as plain text, by GET and HEAD', () => {
    const found = hook('challenge: { query: hub.challenge }')
    for (const method of ['GET', 'HEAD'])
      assert.deepEqual(ask(found, { method, query: '?hub.challenge=a%20%3Cb%3E' }), {
        text: 'a <b>',
      })
    assert.equal(ask(found, { method: 'POST', query: '?hub.challenge=a' }), undefined)
    for (const query of ['', '?challenge=a', '?hub.challenge=', '?hub.challenge=a&hub.challenge=b'])
      assert.equal(ask(found, { query }), undefined)
    assert.equal(ask(found, { query: `?hub.challenge=${'a'.repeat(10_000)}` }), undefined)
  })

  it('sends back a header as a member of an object', () => {
    const found = hook(
      'signature_scheme: token',
      'challenge: { header: X-Challenge, json: verification }',
    )
    assert.deepEqual(ask(found, { header: 'a"b</script>' }), {
      type: 'application/json',
      text: JSON.stringify({ verification: 'a"b</script>' }),
    })
    assert.equal(ask(found, {}), undefined)
  })

  it('sends back an HMAC by the secret', () => {
    // From X's page "Securing webhooks", with another secret.
    const token = 'MmE0Y2VlZjQtN2Y4Yy00'
    const mac = createHmac('sha256', secret).update(token).digest('base64')
    assert.deepEqual(ask(crc, { query: `?crc_token=${token}` }), {
      type: 'application/json',
      text: JSON.stringify({ response_token: `sha256=${mac}` }),
    })
  })

  it('waits for a secret', () => {
    const found = { ...crc, verifier: 'unset' as const }
    assert.throws(() => ask(found, { query: '?crc_token=a' }), { code: 'unavailable' })
  })

  it('gives no HMAC that could sign a delivery', () => {
    for (const text of [
      '{"a":1}',
      '[1]',
      '"a"',
      'a=b',
      'a=b&c=d',
      'a b',
      '1.2',
      'tür',
      'a'.repeat(600),
    ])
      assert.throws(
        () => ask(crc, { query: `?crc_token=${encodeURIComponent(text)}` }),
        refused,
        text,
      )
    fc.assert(
      fc.property(
        fc.oneof(fc.string({ maxLength: 40 }), fc.stringMatching(/^[\w+/=-]{1,20}$/), fc.json()),
        fc.constantFrom('application/json', 'application/x-www-form-urlencoded'),
        (text, type) => {
          try {
            ask(crc, { query: `?crc_token=${encodeURIComponent(text)}` })
          } catch {
            return
          }
          const bytes = Buffer.from(text)
          const mac = createHmac('sha256', secret).update(bytes).digest('hex')
          const headers = { 'x-hub-signature-256': [`sha256=${mac}`], 'content-type': [type] }
          assert.throws(() => verify(bytes, headers, crc.verifier, Date.now()), refused)
        },
      ),
      { numRuns: 10_000 },
    )
  })

  it('refuses no delivery that has an object, a list or a value of a form', () => {
    fc.assert(
      fc.property(fc.oneof(fc.object(), fc.array(fc.jsonValue())), (value) => {
        const bytes = Buffer.from(JSON.stringify(value))
        assert.equal(couldBeChallenge(bytes), false)
        parse(trustRead(bytes), { 'content-type': 'application/json' })
      }),
    )
    assert.equal(couldBeChallenge(Buffer.from('a=b')), false)
  })

  it('is refused in the configuration where it cannot be answered', () => {
    for (const [challenge, reason] of [
      ['{ json: a }', /needs either query or header/],
      ['{ query: a, header: b }', /needs either query or header/],
      ['{ query: a, encoding: hex }', /those of an HMAC/],
      ["{ query: a, json: '<b>' }", /not a name/],
      ['{ query: a, hmac: md5 }', /hmac/],
    ] as const)
      assert.match(linesOf({ webhooks: webhook(`    challenge: ${challenge}\n`) }).join(), reason)
    const token = '    signature_scheme: token\n    challenge: { query: a, hmac: sha256 }\n'
    assert.match(linesOf({ webhooks: webhook(token) }).join(), /no secret that makes an HMAC/)
    const github = '    signature_scheme: github\n    event_field: a\n    answer: empty\n'
    const lines = linesOf({ webhooks: webhook(github) })
    assert.equal(lines.length, 2)
    assert.match(lines.join(), /event_field: cannot be combined.*answer: cannot be combined/s)
  })
})
