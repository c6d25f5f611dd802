import assert from 'node:assert/strict'
import { createHmac, type BinaryLike } from 'node:crypto'
import {
  prepareVerifier,
  type RequestLine,
  verify,
} from '../../../../daemon/webhook/signatures/verify.ts'
import { DoorwardError } from '../../../../shared/errors.ts'
import { check, webhook } from '../../../support/daemon/config-files.ts'
import { distinct } from '../../../support/daemon/accepts.ts'
import type { Headers } from '../../../support/servers/senders.ts'

const nowMs = 1_790_000_000_000
const seconds = String(nowMs / 1000)
const secret = 'c2VjcmV0IG9mIHRoZSB0ZXN0'
const body = Buffer.from('{"a":"tür","b":[1,2]}')

const mac = (signed: string, algorithm = 'sha256', key: BinaryLike = secret) =>
  createHmac(algorithm, key).update(signed).update(body).digest()

type Sent = { readonly line?: RequestLine; readonly bytes?: Buffer; readonly atMs?: number }

/** Undefined when a webhook with these fields takes the delivery, else why not. */
const refusal = (fields: string, headers: Headers, sent: Sent = {}): string | undefined => {
  const yaml = webhook(`    secret_env: A\n${fields}`)
  const gateway = 'server: { public_url: "https://hooks.example/base/" }\n'
  const [entry] = check({ webhooks: yaml, gateway, env: { A: secret } }).webhooks
  assert.ok(entry)
  const verifier = prepareVerifier(entry.scheme, [secret], 'https://hooks.example/base')
  const { bytes = body, atMs = nowMs, line = { method: 'POST', url: '/a?x=1' } } = sent
  try {
    verify(bytes, distinct(headers), verifier, atMs, line)
    return undefined
  } catch (error) {
    assert.ok(error instanceof DoorwardError && error.code === 'signature-invalid')
    return error.localDetail
  }
}

const fields = (...lines: string[]) => lines.map((line) => `    ${line}\n`).join('')

describe('a signature that its owner describes', () => {
  const encodings = [
    ['sha256', 'hex'],
    ['sha1', 'hex'],
    ['sha512', 'hex'],
    ['sha256', 'base64'],
    ['sha256', 'base64url'],
    ['sha512', 'base64url'],
  ] as const
  for (const [algorithm, encoding] of encodings)
    it(`is taken by ${algorithm} in ${encoding}, and in no other way`, () => {
      const given = fields(
        'signature_header: X-Sig',
        `signature_algo: ${algorithm}`,
        `signature_encoding: ${encoding}`,
        'signature_prefix: ""',
      )
      const value = mac('', algorithm).toString(encoding)
      assert.equal(refusal(given, { 'x-sig': value }), undefined)
      assert.match(refusal(given, { 'x-sig': value.slice(0, -1) }) ?? '', /signature/)
      assert.match(refusal(given, { 'x-sig': `${value} ` }) ?? '', /signature/)
      assert.match(refusal(given, { 'x-sig': value }, { bytes: Buffer.from('{}') }) ?? '', /match/)
      const other = mac('', algorithm === 'sha1' ? 'sha256' : 'sha1').toString(encoding)
      assert.match(refusal(given, { 'x-sig': other }) ?? '', /signature/)
    })

  it('is taken in hex of either case, and in base64url with its padding', () => {
    const hex = mac('').toString('hex').toUpperCase()
    assert.equal(refusal('', { 'x-hub-signature-256': `sha256=${hex}` }), undefined)
    const given = fields('signature_header: X-Sig', 'signature_encoding: base64url')
    const url = mac('').toString('base64url')
    assert.equal(refusal(given, { 'x-sig': `${url}=` }), undefined)
    assert.match(refusal(given, { 'x-sig': `${url}==` }) ?? '', /base64url text of 32 bytes/)
  })

  it('has the prefix of its algorithm in hex, and none in base64 or a list', () => {
    const sha512 = fields('signature_algo: sha512')
    const hex = mac('', 'sha512').toString('hex')
    assert.equal(refusal(sha512, { 'x-hub-signature-256': `sha512=${hex}` }), undefined)
    const base64 = mac('').toString('base64')
    assert.equal(
      refusal(fields('signature_encoding: base64'), { 'x-hub-signature-256': base64 }),
      undefined,
    )
  })

  const listed = fields(
    'signature_header: X-Sig',
    'signature_param: v1',
    "signed: '{timestamp}.{body}'",
    'timestamp_param: t',
  )

  it('is found by its name in a list, between commas or semicolons, with a signed time', () => {
    const value = mac(`${seconds}.`).toString('hex')
    for (const text of [
      `t=${seconds},v1=${value}`,
      `t=${seconds}; v1=${value}`,
      `v1=${value};t=${seconds};v0=abc`,
    ])
      assert.equal(refusal(listed, { 'x-sig': text }), undefined, text)
    for (const [text, why] of [
      [`v1=${value}`, /no "t="/],
      [`t=${seconds},t=${seconds},v1=${value}`, /more than one "t="/],
      [`t=${seconds},v2=${value}`, /no signature begins with "v1="/],
      [`t=1790000001,v1=${value}`, /does not match/],
      [value, /no signature begins/],
    ] as const)
      assert.match(refusal(listed, { 'x-sig': text }) ?? '', why, text)
  })

  it('fits if any of several of that name does, as while a secret is rotated', () => {
    const value = mac(`${seconds}.`).toString('hex')
    const old = mac(`${seconds}.`, 'sha256', 'old').toString('hex')
    assert.equal(refusal(listed, { 'x-sig': `t=${seconds},v1=${old},v1=${value}` }), undefined)
    assert.match(refusal(listed, { 'x-sig': `t=${seconds},v1=${old},v1=${old}` }) ?? '', /match/)
  })

  it('has a time in seconds, milliseconds or ISO 8601, which may differ by five minutes', () => {
    const iso = new Date(nowMs).toISOString()
    for (const [unit, time] of [
      ['s', seconds],
      ['ms', String(nowMs)],
      ['iso', iso],
      ['iso', iso.replace('.000Z', '.123456789Z')],
    ] as const) {
      const given = fields(
        'signature_header: X-Sig',
        'signature_prefix: ""',
        "signed: '{timestamp}{body}'",
        'timestamp_header: X-Time',
        `timestamp_unit: ${unit}`,
      )
      const headers = { 'x-sig': mac(time).toString('hex'), 'x-time': time }
      assert.equal(refusal(given, headers, { atMs: nowMs + 300_000 }), undefined)
      assert.equal(refusal(given, headers, { atMs: nowMs - 300_000 }), undefined)
      assert.match(refusal(given, headers, { atMs: nowMs + 302_000 }) ?? '', /30\d s in the past/)
      assert.match(refusal(given, headers, { atMs: nowMs - 302_000 }) ?? '', /30\d s in the future/)
      assert.match(refusal(given, { ...headers, 'x-time': 'now' }) ?? '', /not a time in/)
      const { 'x-sig': only } = headers
      assert.match(refusal(given, { 'x-sig': only }) ?? '', /no x-time header/)
    }
  })

  it('covers an id, which has no text that separates it from what follows', () => {
    const given = fields(
      'signature_header: X-Sig',
      'signature_prefix: ""',
      "signed: '{id}:{timestamp}:{body}'",
      'timestamp_header: X-Time',
      'id_header: X-Id',
    )
    const sent = (id: string) => ({
      'x-sig': mac(`${id}:${seconds}:`).toString('hex'),
      'x-time': seconds,
      'x-id': id,
    })
    assert.equal(refusal(given, sent('a.1')), undefined)
    assert.match(refusal(given, sent('a:1')) ?? '', /x-id is empty, too long/)
    assert.match(refusal(given, { ...sent('a.1'), 'x-id': 'a.2' }) ?? '', /does not match/)
  })

  it('covers the method, the public address with its query, and the path', () => {
    const given = fields(
      'signature_header: X-Sig',
      'signature_prefix: ""',
      "signed: '{method} {url} {path}\\n{body}'".replaceAll("'", '"'),
    )
    const headers = {
      'x-sig': mac('POST https://hooks.example/base/a?x=1 /a\n').toString('hex'),
    }
    assert.equal(refusal(given, headers), undefined)
    for (const line of [
      { method: 'POST', url: '/a?x=2' },
      { method: 'POST', url: '/a' },
      { method: 'PUT', url: '/a?x=1' },
    ])
      assert.match(refusal(given, headers, { line }) ?? '', /does not match/)
  })

  it('has a key of hex or base64, with or without whsec_', () => {
    const given = (encoding: string) =>
      fields('signature_prefix: ""', `secret_encoding: ${encoding}`)
    const key = Buffer.from(secret, 'base64')
    const headers = { 'x-hub-signature-256': mac('', 'sha256', key).toString('hex') }
    assert.equal(refusal(given('base64'), headers), undefined)
    assert.match(refusal(given('text'), headers) ?? '', /does not match/)
  })
})

describe('the fields of a described signature', () => {
  const lines = (text: string): readonly string[] => {
    try {
      check({ webhooks: webhook(text) })
      return []
    } catch (error) {
      return (error as Error).message.split('\n')
    }
  }
  const cases: readonly [string, RegExp][] = [
    [
      "signed: '{timestamp}.{body}'",
      /\{timestamp\} is signed, but no field says where .*timestamp_header/,
    ],
    ["signed: '{id}.{body}'", /\{id\} is signed, but .*id_header/],
    ['timestamp_header: X-T', /\{timestamp\} is not in signed, so anyone could change it/],
    ['id_header: X-I', /\{id\} is not in signed/],
    ["signed: '{timestamp}'", /\{body\} must be in it, once/],
    ["signed: '{body}{body}'", /\{body\} must be in it, once/],
    ["signed: '{bdy}'", /\{bdy\} is nothing that is signed/],
    ["signed: ''", /\{body\} must be in it, once/],
    ['timestamp_param: t', /needs signature_param/],
    ['signature_param: "a=b"', /not the name of a signature/],
    ['signature_algo: md5', /must be sha256, sha1 or sha512/],
    ['secret_encoding: base32', /must be text, hex or base64/],
    ['signature_scheme: github\n    signed: x', /cannot be combined with signature_scheme github/],
  ]
  for (const [text, expected] of cases)
    it(`are refused: ${text.replaceAll(/\s+/g, ' ')}`, () => {
      assert.match(lines(`    ${text}\n`).join('\n'), expected)
    })

  it('make no webhook that signs its address without server.public_url', () => {
    const [entry] = check({
      webhooks: webhook("    signed: '{url}{body}'\n    secret_env: A\n"),
    }).webhooks
    assert.ok(entry)
    assert.equal(prepareVerifier(entry.scheme, [secret]), 'no-address')
    assert.throws(() => verify(body, {}, 'no-address', nowMs), {
      code: 'unavailable',
      localDetail: /set server\.public_url/,
    })
  })
})

describe('a body that is not the end of what is signed', () => {
  const described = fields(
    'signature_header: X-Sig',
    "signature_prefix: ''",
    "signed: '{body}{timestamp}'",
    'timestamp_header: X-Time',
  )
  const sign = (text: string) => createHmac('sha256', secret).update(text).digest('hex')
  const sent = (text: string, time = seconds) =>
    refusal(described, { 'x-sig': sign(text + time), 'x-time': time }, { bytes: Buffer.from(text) })

  it('is taken where it is an object or a list, as Box signs it', () => {
    for (const text of ['{"a":1}', '[1]', '{"a":1}\n']) assert.equal(sent(text), undefined)
  })

  it('is refused where bytes could be moved between it and the rest', () => {
    for (const text of ['12', 'a=1&b=2', '"a"', 'true', ''])
      assert.match(sent(text) ?? '', /not the end/)
    const captured = sign(`{"a":1}${seconds}`)
    const moved = { 'x-sig': captured, 'x-time': seconds.slice(1) }
    const bytes = Buffer.from(`{"a":1}${seconds[0]}`)
    assert.match(refusal(described, moved, { bytes }) ?? '', /s are allowed|not the end/)
  })
})
