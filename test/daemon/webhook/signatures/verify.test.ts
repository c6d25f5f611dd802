import assert from 'node:assert/strict'
import { createHmac, createSecretKey } from 'node:crypto'
import {
  type SignatureHeaders,
  type Verifier,
  verify,
} from '../../../../daemon/webhook/signatures/verify.ts'
import { hmacScheme } from '../../../../shared/signatures/described.ts'
import { DoorwardError } from '../../../../shared/errors.ts'

const header = 'x-hub-signature-256'
const sha256 = hmacScheme({ header, algorithm: 'sha256', prefix: 'sha256=' })
const sha1 = hmacScheme({ header: 'x-hub-signature', algorithm: 'sha1', prefix: 'sha1=' })
const keyOf = (secret: string | Buffer) => Buffer.from(secret as string)
/** With keys of any bytes; a secret in the configuration is text. */
const verifierOf = (keys: readonly Buffer[], scheme = sha256): Verifier => {
  const [form] = scheme.forms
  assert.ok(form)
  return [
    { ...form, keys: keys.map((key) => createSecretKey(key)), tokens: [], toleranceSeconds: 0 },
  ]
}
const repeated = (byte: number, times: number) => Buffer.alloc(times, byte)

const secret = "It's a Secret to Everybody"
const body = Buffer.from('Hello, World!')
const mac = '757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17'
const good = `sha256=${mac}`

/** What a refusal says; fails when it is none. */
const refusal = (
  values: readonly string[] | undefined,
  verifier: Verifier = verifierOf([keyOf(secret)]),
): DoorwardError => {
  const headers: SignatureHeaders = values === undefined ? {} : { [header]: values }
  try {
    verify(body, headers, verifier, 0)
  } catch (error) {
    assert.ok(error instanceof DoorwardError)
    return error
  }
  return assert.fail('it was accepted')
}

describe('verify', () => {
  it("accepts GitHub's published example", () => {
    assert.equal(verify(body, { [header]: [good] }, verifierOf([keyOf(secret)]), 0).bytes, body)
  })

  // RFC 4231 sections 4.2 to 4.8 (4.6 is a truncated MAC, which we do not take).
  const rfc4231: readonly [string, Buffer, Buffer, string][] = [
    [
      '4.2',
      repeated(0x0b, 20),
      Buffer.from('Hi There'),
      'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7',
    ],
    [
      '4.3',
      Buffer.from('Jefe'),
      Buffer.from('what do ya want for nothing?'),
      '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    ],
    [
      '4.4',
      repeated(0xaa, 20),
      repeated(0xdd, 50),
      '773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe',
    ],
    [
      '4.5',
      Buffer.from(Array.from({ length: 25 }, (_, i) => i + 1)),
      repeated(0xcd, 50),
      '82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b',
    ],
    [
      '4.7',
      repeated(0xaa, 131),
      Buffer.from('Test Using Larger Than Block-Size Key - Hash Key First'),
      '60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54',
    ],
    [
      '4.8',
      repeated(0xaa, 131),
      Buffer.from(
        'This is a test using a larger than block-size key and a larger than block-size data. The key needs to be hashed before being used by the HMAC algorithm.',
      ),
      '9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2',
    ],
  ]
  for (const [section, key, data, hex] of rfc4231)
    it(`accepts the SHA-256 vector of RFC 4231 section ${section}`, () => {
      assert.equal(
        verify(data, { [header]: [`sha256=${hex}`] }, verifierOf([keyOf(key)]), 0).bytes,
        data,
      )
    })

  // RFC 2202 section 3.
  const rfc2202: readonly [number, Buffer, Buffer, string][] = [
    [1, repeated(0x0b, 20), Buffer.from('Hi There'), 'b617318655057264e28bc0b6fb378c8ef146be00'],
    [
      2,
      Buffer.from('Jefe'),
      Buffer.from('what do ya want for nothing?'),
      'effcdf6ae5eb2fa2d27416d5f184df9c259a7c79',
    ],
    [3, repeated(0xaa, 20), repeated(0xdd, 50), '125d7342b9ac11cd91a39af48aa17b4f63f175d3'],
    [
      5,
      repeated(0x0c, 20),
      Buffer.from('Test With Truncation'),
      '4c1a03424b55e07fe7f27be1d58bb9324a9a5a04',
    ],
    [
      6,
      repeated(0xaa, 80),
      Buffer.from('Test Using Larger Than Block-Size Key - Hash Key First'),
      'aa4ae5e15272d00e95705637ce8a3b55ed402112',
    ],
  ]
  for (const [number, key, data, hex] of rfc2202)
    it(`accepts the SHA-1 vector ${number} of RFC 2202`, () => {
      const headers = { 'x-hub-signature': [`sha1=${hex}`] }
      assert.equal(verify(data, headers, verifierOf([keyOf(key)], sha1), 0).bytes, data)
    })

  const refused: readonly [string, readonly string[] | undefined, RegExp][] = [
    ['no header', undefined, /no x-hub-signature-256 header/],
    ['an empty list of headers', [], /no x-hub-signature-256 header/],
    ['an empty header', [''], /does not begin/],
    ['the prefix alone', ['sha256='], /0 hex digits/],
    ['a wrong MAC', [`sha256=${'0'.repeat(64)}`], /does not match/],
    ['a MAC that differs in its last digit', [good.replace(/7$/, '6')], /does not match/],
    ['a header sent twice', [good, good], /more than once/],
    ['two headers of which the first fits', [good, `sha256=${'0'.repeat(64)}`], /more than once/],
    ['a joined list of two', [`${good}, ${good}`], /not hex digits/],
    ['a MAC cut short', [good.slice(0, -2)], /62 hex digits/],
    ['a MAC of one byte', ['sha256=75'], /2 hex digits/],
    ['a MAC that is too long', [`${good}00`], /66 hex digits/],
    ['an odd number of digits', [good.slice(0, -1)], /63 hex digits/],
    ['characters beyond ASCII', [`sha256=${'é'.repeat(64)}`], /not hex digits/],
    ['full-width digits', [`sha256=${'７'.repeat(64)}`], /not hex digits/],
    ['hex that stops in the middle', [`sha256=abzz${mac.slice(4)}`], /not hex digits/],
    ['abzz', ['sha256=abzz'], /not hex digits/],
    ['no prefix', [mac], /does not begin/],
    ['the prefix twice', [`sha256=${good}`], /not hex digits/],
    ['the prefix in upper case', [`SHA256=${mac}`], /does not begin/],
    ['the prefix of another algorithm', [`sha1=${mac}`], /does not begin/],
    ['a MAC with a line feed behind it', [`${good}\n`], /not hex digits/],
    ['a MAC with a space behind it', [`${good} `], /not hex digits/],
    ['a MAC with a NUL behind it', [`${good}\0`], /not hex digits/],
    ['base64', [`sha256=${Buffer.from(mac, 'hex').toString('base64')}`], /not hex digits/],
    ['a SHA-1 MAC', [`sha256=${createHmac('sha1', secret).update(body).digest('hex')}`], /40 hex/],
    ['the name of an own property of objects', ['__proto__'], /does not begin/],
  ]
  for (const [name, values, why] of refused)
    it(`refuses ${name}, and says why to the owner only`, () => {
      const error = refusal(values)
      assert.equal(error.code, 'signature-invalid')
      assert.equal(error.message, 'the signature is missing or not valid')
      assert.match(error.localDetail ?? '', why)
      const told = [error.message, error.hint, error.localDetail, error.stack].join('\n')
      assert.ok(!told.includes(mac) && !told.includes(secret))
    })

  it('says the same to the sender, whatever is wrong', () => {
    const told = refused.map(([, values]) => {
      const { code, message, hint } = refusal(values)
      return JSON.stringify([code, message, hint])
    })
    assert.equal(new Set(told).size, 1)
  })

  it('takes any of several keys, whichever place it has', () => {
    const others = [keyOf('one'), keyOf('two')]
    for (const place of [0, 1, 2]) {
      const keys = others.toSpliced(place, 0, keyOf(secret))
      assert.equal(verify(body, { [header]: [good] }, verifierOf(keys), 0).bytes, body)
    }
    assert.equal(refusal([good], verifierOf(others)).code, 'signature-invalid')
  })

  it('takes a signature without a prefix where none is asked for', () => {
    const linear = hmacScheme({ header: 'linear-signature', algorithm: 'sha256', prefix: '' })
    const keys = [keyOf(secret)]
    assert.equal(
      verify(body, { 'linear-signature': [mac] }, verifierOf(keys, linear), 0).bytes,
      body,
    )
    assert.throws(() => verify(body, { 'linear-signature': [good] }, verifierOf(keys, linear), 0), {
      code: 'signature-invalid',
    })
  })

  it('accepts nothing while the secret is unset, and anything where none is asked for', () => {
    for (const values of [undefined, [good]])
      assert.equal(refusal(values, 'unset').code, 'unavailable')
    assert.equal(verify(body, {}, 'none', 0).bytes, body)
  })

  it('accepts nothing when there is no key at all', () => {
    assert.equal(refusal([good], verifierOf([])).code, 'signature-invalid')
  })

  it('signs bytes, not text: a body that is not UTF-8 is told from its decoded form', () => {
    const bytes = Buffer.from([0xff, 0xfe, 0x00, 0x80])
    const decoded = Buffer.from(bytes.toString('utf8'))
    const signed = `sha256=${createHmac('sha256', secret).update(bytes).digest('hex')}`
    assert.equal(verify(bytes, { [header]: [signed] }, verifierOf([keyOf(secret)]), 0).bytes, bytes)
    assert.throws(() => verify(decoded, { [header]: [signed] }, verifierOf([keyOf(secret)]), 0), {
      code: 'signature-invalid',
    })
  })
})
