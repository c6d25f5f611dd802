import assert from 'node:assert/strict'
import { createHash, createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { crc32 } from 'node:zlib'
import * as fc from 'fast-check'
import { prove } from '../../../daemon/webhook/senders/prove.ts'
import {
  prepareVerifier,
  type Verifier,
  verify,
} from '../../../daemon/webhook/signatures/verify.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { presetScheme } from '../../../shared/signatures/presets.ts'
import type { specialPresets } from '../../../shared/signatures/special-presets.ts'
import { check, webhook } from '../../support/daemon/config-files.ts'
import { bytesLike, holds } from '../../support/fuzz/fuzz.ts'

const nowMs = Date.parse('2026-11-26T12:00:00Z')
const now = nowMs / 1000
const secret = 'shared-secret'

type Sent = {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly url: string
}
type Sender = {
  readonly verifier: Verifier
  readonly remoteKey?: KeyObject
  readonly sent: Sent
  /** What the signature covers or is. */
  readonly covered: readonly string[]
}

type KeyPair = { readonly publicKey: KeyObject; readonly privateKey: KeyObject }

const discord = generateKeyPairSync('ed25519')
const sendgrid = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })

const of = (name: keyof typeof specialPresets, key: string, expected: object = {}): Verifier => {
  const scheme = presetScheme(name)
  const forms = scheme.forms.map((form) => ({ ...form, ...expected }))
  return prepareVerifier({ ...scheme, forms }, key === '' ? [] : [key], 'https://hooks.example')
}
const described = (yaml: string, key: string): Verifier => {
  const [entry] = check({ webhooks: webhook(yaml) }).webhooks
  assert.ok(entry)
  return prepareVerifier(entry.scheme, key === '' ? [] : [key])
}
const byKeyPair = (algorithm: string, publicKey: KeyObject) =>
  described(
    `    signature_scheme: public-key\n    public_key_env: K\n    algorithm: ${algorithm}\n    signature_header: X-Sig\n    timestamp_header: X-Time\n    signed: '{timestamp}|{body}'\n`,
    publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  )
const json = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const jwt = (claims: object, alg: 'HS256' | 'RS256') => {
  const signed = `${json({ alg, kid: 'one' })}.${json(claims)}`
  const signature =
    alg === 'HS256'
      ? createHmac('sha256', secret).update(signed).digest()
      : sign('sha256', Buffer.from(signed), rsa.privateKey)
  return `${signed}.${signature.toString('base64url')}`
}

const body = '{"a":"text"}'
const base = { headers: { 'content-type': 'application/json' }, body, url: '/hook' }
const withHeaders = (headers: Record<string, string>, more: Partial<Sent> = {}): Sent => ({
  ...base,
  ...more,
  headers: { ...base.headers, ...headers },
})

const senders = (): Readonly<Record<string, Sender>> => {
  const time = String(now)
  const ed = Buffer.from(discord.publicKey.export({ format: 'jwk' }).x ?? '', 'base64url')
  const spki = sendgrid.publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
  const timed = Buffer.from(time + body)
  const hash = createHash('sha256').update(body).digest('hex')
  const claims = {
    exp: now + 60,
    aud: 'https://a.example/',
    email: 'a@b.example',
    email_verified: true,
  }
  const netlify = jwt({ iss: 'netlify', sha256: hash }, 'HS256')
  const monday = jwt(claims, 'HS256')
  const google = jwt({ ...claims, iss: 'https://accounts.google.com' }, 'RS256')
  const message = {
    Type: 'Notification',
    MessageId: 'm-1',
    TopicArn: 'arn:x',
    Message: 'hi',
    Timestamp: 't',
  }
  const text = Object.keys(message)
    .toSorted()
    .map((name) => `${name}\n${message[name as keyof typeof message]}\n`)
    .join('')
  const Signature = sign('sha256', Buffer.from(text), rsa.privateKey).toString('base64')
  const token = 'e0b5477167110d68991efc6b9f89f0a11066af27834600e123'
  const mailgun = createHmac('sha256', secret)
    .update(time + token)
    .digest('hex')
  const twilio = createHmac('sha1', secret)
    .update('https://hooks.example/hookFrom1To2')
    .digest('base64')
  const edSignature = sign(null, timed, discord.privateKey).toString('hex')
  const ecSignature = sign('sha256', timed, sendgrid.privateKey).toString('base64')
  const issuer = 'https://token.example'
  const iso = new Date(nowMs).toISOString()
  const paypal = sign(
    'sha256',
    Buffer.from(`tx-1|${iso}|WH1|${crc32(Buffer.from(body))}`),
    rsa.privateKey,
  ).toString('base64')
  const plaidJwt = (() => {
    const head = json({ alg: 'ES256', kid: 'key-of-plaid' })
    const signed = `${head}.${json({ iat: now, request_body_sha256: hash })}`
    const key = { key: sendgrid.privateKey, dsaEncoding: 'ieee-p1363' } as const
    return `${signed}.${sign('sha256', Buffer.from(signed), key).toString('base64url')}`
  })()
  const adyenKey = 'ab'.repeat(32)
  const adyenText = 'psp1::Shop:order-1:1130:EUR:AUTHORISATION:true'
  const adyenMac = createHmac('sha256', Buffer.from(adyenKey, 'hex'))
    .update(adyenText)
    .digest('base64')
  const adyenItem = {
    pspReference: 'psp1',
    merchantAccountCode: 'Shop',
    merchantReference: 'order-1',
    amount: { value: 1130, currency: 'EUR' },
    eventCode: 'AUTHORISATION',
    success: 'true',
    additionalData: { hmacSignature: adyenMac },
  }
  const oidc = jwt({ ...claims, iss: issuer, sub: 'repo:acme/shop' }, 'RS256')
  const signedBody = Buffer.from(`${time}|${body}`)
  const signedBy = (algorithm: string, { publicKey, privateKey }: KeyPair): Sender => {
    const hash = algorithm === 'ed25519' ? null : 'sha256'
    const signature = sign(hash, signedBody, privateKey).toString('base64')
    return {
      verifier: byKeyPair(algorithm, publicKey),
      sent: withHeaders({ 'x-sig': signature, 'x-time': time }),
      covered: [signature, time, body],
    }
  }
  return {
    'public-key by ed25519': signedBy('ed25519', discord),
    'public-key by ecdsa-p256': signedBy('ecdsa-p256', sendgrid),
    'public-key by rsa-sha256': signedBy('rsa-sha256', rsa),
    oidc: {
      verifier: described(
        `    signature_scheme: oidc\n    issuer: ${issuer}\n    audience: ${claims.aud}\n    claims: { sub: "repo:acme/shop" }\n`,
        '',
      ),
      remoteKey: rsa.publicKey,
      sent: withHeaders({ authorization: `Bearer ${oidc}` }),
      covered: [oidc],
    },
    paypal: {
      verifier: of('paypal', '', { audience: 'WH1' }),
      remoteKey: rsa.publicKey,
      sent: withHeaders({
        'paypal-transmission-id': 'tx-1',
        'paypal-transmission-time': iso,
        'paypal-auth-algo': 'SHA256withRSA',
        'paypal-transmission-sig': paypal,
      }),
      covered: [paypal, 'tx-1', iso, body],
    },
    plaid: {
      verifier: of('plaid', 'secret-of-the-api', { account: 'client-1' }),
      remoteKey: sendgrid.publicKey,
      sent: withHeaders({ 'plaid-verification': plaidJwt }),
      covered: [plaidJwt, body],
    },
    adyen: {
      verifier: of('adyen', adyenKey),
      sent: withHeaders(
        {},
        { body: JSON.stringify({ notificationItems: [{ NotificationRequestItem: adyenItem }] }) },
      ),
      covered: [adyenMac, 'psp1', '"Shop"', 'order-1', '1130', 'EUR', 'AUTHORISATION', '"true"'],
    },
    discord: {
      verifier: of('discord', ed.toString('hex')),
      sent: withHeaders({ 'x-signature-ed25519': edSignature, 'x-signature-timestamp': time }),
      covered: [edSignature, time, body],
    },
    sendgrid: {
      verifier: of('sendgrid', spki),
      sent: withHeaders({
        'x-twilio-email-event-webhook-signature': ecSignature,
        'x-twilio-email-event-webhook-timestamp': time,
      }),
      covered: [ecSignature, time, body],
    },
    netlify: {
      verifier: of('netlify', secret),
      sent: withHeaders({ 'x-webhook-signature': netlify }),
      covered: [netlify, body],
    },
    monday: {
      verifier: of('monday', secret, { audience: 'https://a.example/' }),
      sent: withHeaders({ authorization: monday }),
      covered: [monday],
    },
    'google-pubsub': {
      verifier: of('google-pubsub', '', { audience: 'https://a.example/', account: 'a@b.example' }),
      remoteKey: rsa.publicKey,
      sent: withHeaders({ authorization: `Bearer ${google}` }),
      covered: [google],
    },
    'aws-sns': {
      verifier: of('aws-sns', '', { audience: 'arn:x' }),
      remoteKey: rsa.publicKey,
      sent: withHeaders(
        {},
        { body: JSON.stringify({ ...message, SignatureVersion: '2', Signature }) },
      ),
      covered: [Signature, 'm-1', 'arn:x', '"hi"', '"t"', 'Notification'],
    },
    mailgun: {
      verifier: of('mailgun', secret),
      sent: withHeaders(
        {},
        { body: JSON.stringify({ signature: { timestamp: time, token, signature: mailgun } }) },
      ),
      covered: [mailgun, token, time],
    },
    twilio: {
      verifier: of('twilio', secret),
      sent: withHeaders(
        { 'content-type': 'application/x-www-form-urlencoded', 'x-twilio-signature': twilio },
        { body: 'To=2&From=1' },
      ),
      // Not '=1' alone: Twilio signs names and values without a mark between them, so From1= is signed as From=1.
      covered: [twilio, '2&', 'From=1', '/hook'],
    },
    'microsoft-graph': {
      verifier: of('microsoft-graph', secret),
      sent: withHeaders({}, { body: JSON.stringify({ value: [{ clientState: secret }] }) }),
      covered: [secret],
    },
  }
}

const isAccepted = async (
  { verifier, remoteKey }: Sender,
  { headers, body: text, url }: Sent,
): Promise<boolean> => {
  const distinct = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, [value]]),
  )
  const bytes = Buffer.from(text, 'latin1')
  const find = async () => remoteKey ?? assert.fail('no key is published here')
  const remoteKeys = {
    findOfGoogle: find,
    findOfIssuer: find,
    findOfPaypal: find,
    findOfPlaid: find,
    findOfSns: find,
  }
  try {
    const proof = await prove(verifier, { headers: distinct, bytes, nowMs, remoteKeys })
    verify(bytes, distinct, verifier, nowMs, { method: 'POST', url, proof })
    return true
  } catch (error) {
    assert.ok(error instanceof DoorwardError, String(error))
    assert.equal(error.code, 'signature-invalid')
    return false
  }
}

const replaceIn = ({ headers, body: text, url }: Sent, from: string, to: string): Sent => ({
  headers: Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, value.replace(from, () => to)]),
  ),
  body: text.replace(from, () => to),
  url: url.replace(from, () => to),
})

describe('a sender that proves itself in a way of its own', () => {
  for (const [name, sender] of Object.entries(senders())) {
    it(`${name} is accepted as it is`, async () => assert.ok(await isAccepted(sender, sender.sent)))

    it(`${name} is refused after a change of any one bit that is covered`, async () => {
      for (const from of sender.covered)
        for (const at of from.split('').keys())
          for (let bit = 0; bit < 7; bit += 1) {
            const flipped = String.fromCharCode(from.charCodeAt(at) ^ (1 << bit))
            const changed = from.slice(0, at) + flipped + from.slice(at + 1)
            const forged = replaceIn(sender.sent, from, changed)
            assert.equal(await isAccepted(sender, forged), false, changed)
          }
    })

    holds(
      `${name} is never accepted for any other text in place of what is covered`,
      300,
      fc.asyncProperty(
        fc.nat(sender.covered.length - 1),
        fc.oneof(
          fc.string(),
          bytesLike('attacks').map((bytes) => bytes.toString('latin1')),
        ),
        async (which, text) => {
          const from = sender.covered[which] ?? ''
          fc.pre(!text.includes(from))
          assert.equal(await isAccepted(sender, replaceIn(sender.sent, from, text)), false)
        },
      ),
    )
  }
})
