import assert from 'node:assert/strict'
import { generateKeyPairSync, type KeyObject, sign, type SignKeyObjectInput } from 'node:crypto'
import { prepareVerifier, verify } from '../../../../daemon/webhook/signatures/verify.ts'
import { DoorwardError } from '../../../../shared/errors.ts'
import type { KeyAlgorithm } from '../../../../shared/signatures/form.ts'
import { readPublicKey } from '../../../../shared/signatures/public-keys.ts'
import { distinct } from '../../../support/daemon/accepts.ts'
import { check, webhook } from '../../../support/daemon/config-files.ts'

const nowMs = 1_790_000_000_000
const time = String(nowMs / 1000)
const body = Buffer.from('{"a":"tür"}')

const pairs: Readonly<Record<KeyAlgorithm, { publicKey: KeyObject; privateKey: KeyObject }>> = {
  ed25519: generateKeyPairSync('ed25519'),
  'ecdsa-p256': generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  'rsa-sha256': generateKeyPairSync('rsa', { modulusLength: 2048 }),
}
const algorithms = Object.keys(pairs) as KeyAlgorithm[]

const der = (algorithm: KeyAlgorithm) =>
  pairs[algorithm].publicKey.export({ type: 'spki', format: 'der' })
const signed = (
  algorithm: KeyAlgorithm,
  text: Buffer | string,
  more: Omit<SignKeyObjectInput, 'key'> = {},
): Buffer =>
  sign(algorithm === 'ed25519' ? null : 'sha256', Buffer.from(text), {
    key: pairs[algorithm].privateKey,
    ...more,
  })

/** Undefined when a webhook with these fields takes the delivery, else why not. */
const refusal = (
  fields: readonly string[],
  headers: Readonly<Record<string, string>>,
  { key, bytes = body }: { readonly key: string; readonly bytes?: Buffer },
): string | undefined => {
  const lines = ['signature_scheme: public-key', 'public_key_env: K', 'signature_header: X-Sig']
  const yaml = [...lines, ...fields].map((line) => `    ${line}\n`).join('')
  const [entry] = check({ webhooks: webhook(yaml), env: { K: key } }).webhooks
  assert.ok(entry)
  const verifier = prepareVerifier(entry.scheme, [key])
  assert.notEqual(verifier, 'unusable')
  try {
    verify(bytes, distinct(headers), verifier, nowMs)
    return undefined
  } catch (error) {
    assert.ok(error instanceof DoorwardError && error.code === 'signature-invalid', String(error))
    return error.localDetail
  }
}

describe('a signature by a key pair that its owner describes', () => {
  for (const algorithm of algorithms) {
    const key = der(algorithm).toString('base64')
    const fields = [`algorithm: ${algorithm}`]

    it(`is taken by ${algorithm} in each encoding, and for no other body or key`, () => {
      const signature = signed(algorithm, body)
      for (const encoding of ['hex', 'base64', 'base64url'] as const) {
        const given = { 'x-sig': signature.toString(encoding) }
        const described = [...fields, `signature_encoding: ${encoding}`]
        assert.equal(refusal(described, given, { key }), undefined)
        const bytes = Buffer.from('{"a":"tur"}')
        assert.match(refusal(described, given, { key, bytes }) ?? '', /not match/)
      }
      const base64 = { 'x-sig': signature.toString('base64') }
      assert.equal(refusal(fields, base64, { key }), undefined)
      const type = algorithm === 'ed25519' ? 'ed25519' : 'rsa'
      const other =
        algorithm === 'ecdsa-p256'
          ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
          : type === 'rsa'
            ? generateKeyPairSync('rsa', { modulusLength: 2048 })
            : generateKeyPairSync('ed25519')
      const otherKey = other.publicKey.export({ type: 'spki', format: 'pem' }).toString()
      assert.match(refusal(fields, base64, { key: otherKey }) ?? '', /not match/)
    })

    it(`covers by ${algorithm} the time and what else is signed, in this order`, () => {
      const described = [
        ...fields,
        "signed: '{timestamp}|{id}|{body}'",
        'timestamp_header: X-Time',
        'id_header: X-Id',
      ]
      const signature = signed(algorithm, `${time}|m-1|${body.toString()}`).toString('base64')
      const good = { 'x-sig': signature, 'x-time': time, 'x-id': 'm-1' }
      assert.equal(refusal(described, good, { key }), undefined)
      const later = String(Number(time) + 1)
      assert.match(refusal(described, { ...good, 'x-time': later }, { key }) ?? '', /not match/)
      assert.match(refusal(described, { ...good, 'x-id': 'm-2' }, { key }) ?? '', /not match/)
      const old = String(Number(time) - 301)
      assert.match(refusal(described, { ...good, 'x-time': old }, { key }) ?? '', /301 s/)
      assert.match(refusal(described, { ...good, 'x-time': '' }, { key }) ?? '', /Unix seconds/)
    })

    it(`has a key by ${algorithm} in PEM, in one line or several, and as the base64 of its DER`, () => {
      const pem = pairs[algorithm].publicKey.export({ type: 'spki', format: 'pem' }).toString()
      for (const text of [pem, pem.replaceAll('\n', '\\n'), pem.replaceAll('\n', ''), key])
        assert.deepEqual(readPublicKey(algorithm, text), der(algorithm))
    })

    it(`has no key by ${algorithm} in what is another key, a private one, or none`, () => {
      const others = algorithms.filter((other) => other !== algorithm)
      const wrong = [
        ...others.map((other) => der(other).toString('base64')),
        pairs[algorithm].privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
        generateKeyPairSync('ec', { namedCurve: 'P-384' })
          .publicKey.export({ type: 'spki', format: 'der' })
          .toString('base64'),
        generateKeyPairSync('rsa', { modulusLength: 1024 })
          .publicKey.export({ type: 'spki', format: 'pem' })
          .toString(),
        key.slice(0, -8),
        'whsec_secret',
        '',
      ]
      for (const text of wrong) assert.equal(readPublicKey(algorithm, text), undefined, text)
    })
  }

  it('has a raw key of Ed25519 or P-256 in base64 or hex', () => {
    const sizes = { ed25519: 32, 'ecdsa-p256': 65 } as const
    for (const algorithm of ['ed25519', 'ecdsa-p256'] as const) {
      const raw = der(algorithm).subarray(-sizes[algorithm])
      for (const text of [raw.toString('base64'), raw.toString('hex'), raw.toString('base64url')])
        assert.deepEqual(readPublicKey(algorithm, text), der(algorithm))
    }
  })

  it('is taken by ECDSA as DER and as two numbers', () => {
    const key = der('ecdsa-p256').toString('base64')
    const plain = signed('ecdsa-p256', body, { dsaEncoding: 'ieee-p1363' }).toString('base64')
    assert.equal(refusal(['algorithm: ecdsa-p256'], { 'x-sig': plain }, { key }), undefined)
  })

  it('is refused in another text of the same bytes, too long, or twice', () => {
    const key = der('rsa-sha256').toString('base64')
    const signature = signed('rsa-sha256', body).toString('base64')
    const texts = [
      ` ${signature}`,
      signature.replace(/=+$/, ''),
      `${signature}=`,
      Buffer.alloc(2000).toString('base64'),
      '',
    ]
    for (const text of texts)
      assert.ok(refusal(['algorithm: rsa-sha256'], { 'x-sig': text }, { key }), text)
  })
})
