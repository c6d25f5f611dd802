import assert from 'node:assert/strict'
import {
  prepareVerifier,
  type RequestLine,
  verify,
} from '../../../../daemon/webhook/signatures/verify.ts'
import { DoorwardError } from '../../../../shared/errors.ts'
import type { SignatureHeaders } from '../../../../daemon/webhook/signatures/header.ts'
import { check, linesOf, webhook } from '../../../support/daemon/config-files.ts'

const secret = 'tökén of the test'
const bytes = (text: string) => Buffer.from(text).toString('latin1')
const base64 = (text: string) => Buffer.from(text).toString('base64')

type Sent = {
  readonly headers?: SignatureHeaders
  readonly line?: RequestLine
  readonly body?: string | Buffer
  readonly secrets?: readonly string[]
}

/** Undefined when a webhook with its token there takes the request, else why not. */
const refusal = (place: string, sent: Sent): string | undefined => {
  const { headers = {}, line = { url: '/a' }, body = '{}', secrets = [secret] } = sent
  const yaml = webhook(`    secret_env: A\n    signature_scheme: token\n    token_in: ${place}\n`)
  const [entry] = check({ webhooks: yaml }).webhooks
  assert.ok(entry)
  try {
    verify(Buffer.from(body as string), headers, prepareVerifier(entry.scheme, secrets), 0, line)
    return undefined
  } catch (error) {
    assert.ok(error instanceof DoorwardError && error.code === 'signature-invalid')
    assert.equal(error.message, 'the signature is missing or not valid')
    return error.localDetail
  }
}

const authorization = (...values: string[]) => ({ headers: { authorization: values } })

describe('a token', () => {
  it('is taken from a header of its own', () => {
    const headers = { 'x-token': [bytes(secret)] }
    assert.equal(refusal('header:X-Token', { headers }), undefined)
    for (const [values, why] of [
      [undefined, /no x-token header/],
      [[bytes(secret), bytes(secret)], /more than once/],
      [[bytes(` ${secret}`)], /not the secret/],
      [[''], /not the secret/],
      [[secret], /not the secret/],
    ] as const)
      assert.match(refusal('header:X-Token', { headers: { 'x-token': values } }) ?? '', why)
  })

  it('is taken from the whole of Authorization, where the owner says so', () => {
    assert.equal(refusal('header:Authorization', authorization(bytes(secret))), undefined)
    assert.match(
      refusal('header:Authorization', authorization(`Bearer ${bytes(secret)}`)) ?? '',
      /not the secret/,
    )
  })

  it('is taken as a bearer, however the word is written', () => {
    for (const word of ['Bearer', 'bearer', 'BEARER'])
      assert.equal(refusal('bearer', authorization(`${word} ${bytes(secret)}`)), undefined)
    for (const [value, why] of [
      [bytes(secret), /not Bearer/],
      [`Basic ${base64(`a:${secret}`)}`, /not Bearer/],
      ['Bearer', /not Bearer/],
      ['Bearer ', /not Bearer/],
      ['Bearer x', /not the secret/],
    ] as const)
      assert.match(refusal('bearer', authorization(value)) ?? '', why)
    const twice = authorization(`Bearer ${bytes(secret)}`, `Bearer ${bytes(secret)}`)
    assert.match(refusal('bearer', twice) ?? '', /more than once/)
  })

  it('is taken as the password of Basic, and with the user where it holds a colon', () => {
    assert.equal(refusal('basic', authorization(`Basic ${base64(`anyone:${secret}`)}`)), undefined)
    assert.equal(refusal('basic', authorization(`basic ${base64(`:${secret}`)}`)), undefined)
    const secrets = ['owner:pass:word']
    const whole = { ...authorization(`Basic ${base64('owner:pass:word')}`), secrets }
    assert.equal(refusal('basic', whole), undefined)
    const other = { ...authorization(`Basic ${base64('other:pass:word')}`), secrets }
    assert.match(refusal('basic', other) ?? '', /not the secret/)
    for (const value of [base64(secret), '@@@', `${base64(`a:${secret}`)} x`, ''])
      assert.match(refusal('basic', authorization(`Basic ${value}`)) ?? '', /not b|not B/)
  })

  it('is taken from the query, once', () => {
    const at = (url: string) => refusal('query:token', { line: { url } })
    const given = encodeURIComponent(secret)
    assert.equal(at(`/a?x=1&token=${given}`), undefined)
    assert.match(at(`/a?token=${given}&token=${given}`) ?? '', /more than once/)
    assert.match(at('/a?token=other') ?? '', /not the secret/)
    assert.match(at(`/a?Token=${given}`) ?? '', /no token in the query/)
    assert.match(at('/a') ?? '', /no token in the query/)
  })

  it('is taken from a field of the body, JSON or form', () => {
    const json = (value: unknown) => refusal('field:auth.token', { body: JSON.stringify(value) })
    assert.equal(json({ auth: { token: secret } }), undefined)
    for (const [value, why] of [
      [{ auth: { token: 'other' } }, /not the secret/],
      [{ auth: { token: 7 } }, /no text at auth\.token/],
      [{ auth: [secret] }, /no text at/],
      [{}, /no text at/],
      [[], /no text at/],
    ] as const)
      assert.match(json(value) ?? '', why)
    const form = {
      headers: { 'content-type': ['application/x-www-form-urlencoded'] },
      body: `text=hello&token=${encodeURIComponent(secret)}`,
    }
    assert.equal(refusal('field:token', form), undefined)
    assert.match(refusal('field:token', { body: '{' }) ?? '', /cannot be read/)
    assert.match(refusal('field:token', { body: ' '.repeat(2 ** 20 + 1) }) ?? '', /too large/)
  })

  it('of an object without own fields is none', () => {
    assert.match(refusal('field:constructor.name', { secrets: ['Object'] }) ?? '', /no text at/)
    assert.match(refusal('field:__proto__.x', { body: '{"__proto__":{}}' }) ?? '', /no text at/)
  })

  it('has a place that is written in one of five ways', () => {
    for (const [place, why] of [
      ['cookie', /write bearer, basic, header:<name>/],
      ['header:', /needs the name of a header/],
      ['header:a b', /needs the name of a header/],
      ['query:', /needs the name of a parameter/],
      ['field:a..b', /cannot be read/],
      ['bearer:x', /not a place of a token/],
    ] as const) {
      const text = `    signature_scheme: token\n    token_in: "${place}"\n`
      assert.match(linesOf({ webhooks: webhook(text) }).join('\n'), why, place)
    }
  })

  it('has no field of a signature beside it, and a signature no place of a token', () => {
    const lines = (text: string) => linesOf({ webhooks: webhook(text) }).join('\n')
    assert.match(
      lines('    signature_scheme: token\n    signature_algo: sha512\n'),
      /signature_algo: cannot be combined with signature_scheme token/,
    )
    assert.match(lines('    token_in: bearer\n'), /token_in: cannot be combined .* hmac/)
    assert.match(
      lines('    signature_scheme: github\n    token_in: bearer\n'),
      /token_in: cannot be combined with signature_scheme github/,
    )
  })
})
