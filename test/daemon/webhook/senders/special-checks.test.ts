import assert from 'node:assert/strict'
import {
  createHash,
  createHmac,
  generateKeyPairSync,
  type KeyObject,
  sign,
  createPublicKey,
} from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, globalAgent } from 'node:https'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import { EventWebhook } from '@sendgrid/eventwebhook'
import { verifyKey } from 'discord-interactions'
import { SignJWT } from 'jose'
import { loadMultipart } from '../../../../daemon/webhook/forms.ts'
import { prove } from '../../../../daemon/webhook/senders/prove.ts'
import type { Proof } from '../../../../daemon/webhook/signatures/header.ts'
import { prepareVerifier, verify } from '../../../../daemon/webhook/signatures/verify.ts'
import { presetScheme } from '../../../../shared/signatures/presets.ts'
import type { specialPresets } from '../../../../shared/signatures/special-presets.ts'
import { makeCertificates } from '../../../support/servers/private-network.ts'
import { secretFault } from '../../../../shared/signatures/secrets.ts'

/** The package has no types. */
const SnsValidator = createRequire(import.meta.url)('sns-validator') as new (host: RegExp) => {
  readonly validate: (
    message: object,
    done: (error: Error | null, message?: object) => void,
  ) => void
}

const nowMs = Date.parse('2026-11-26T12:00:00Z')
const now = nowMs / 1000

type Sent = {
  readonly body: string
  readonly headers?: Readonly<Record<string, string | undefined>>
  readonly url?: string
  readonly remoteKey?: KeyObject
  readonly audience?: string
  readonly account?: string
  readonly at?: number
}

const prepare = (name: keyof typeof specialPresets, secrets: readonly string[], sent: Sent) => {
  const { body, headers = {}, url = '/hook', remoteKey, audience, account, at = nowMs } = sent
  const scheme = presetScheme(name)
  const expected = { ...(audience && { audience }), ...(account && { account }) }
  const forms = scheme.forms.map((form) => ({ ...form, ...expected }))
  const verifier = prepareVerifier({ ...scheme, forms }, secrets, 'https://hooks.example')
  const distinct = Object.fromEntries(
    Object.entries(headers).map(([key, value]) => [key, value === undefined ? undefined : [value]]),
  )
  const bytes = Buffer.from(body)
  const verifyWith = (proof?: Proof) =>
    verify(bytes, distinct, verifier, at, { method: 'POST', url, proof }).signedId
  const find = async () => remoteKey ?? assert.fail('no key is published here')
  const remoteKeys = {
    findOfGoogle: find,
    findOfIssuer: find,
    findOfPaypal: find,
    findOfPlaid: find,
    findOfSns: find,
  }
  const proof = prove(verifier, { headers: distinct, bytes, nowMs: at, remoteKeys })
  return { proof, verifyWith }
}

/** The signed id of an accepted delivery, or undefined; throws why it is refused. */
const accept = (name: keyof typeof specialPresets, secrets: readonly string[], sent: Sent) =>
  prepare(name, secrets, sent).verifyWith(sent.remoteKey && { key: sent.remoteKey })

/** The same for a sender that proves itself by a JWT. */
const acceptProven = async (
  name: keyof typeof specialPresets,
  secrets: readonly string[],
  sent: Sent,
) => {
  const { proof, verifyWith } = prepare(name, secrets, sent)
  return verifyWith(await proof)
}

const refused = (localDetail: RegExp) => ({ code: 'signature-invalid', localDetail })

describe('discord', () => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const rawKey = Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url').toString(
    'hex',
  )
  const body = '{"type":1}'
  const signed = (text: string, timestamp = String(now)) => ({
    'x-signature-ed25519': sign(null, Buffer.from(timestamp + text), privateKey).toString('hex'),
    'x-signature-timestamp': timestamp,
  })

  it('is accepted as its own package accepts it', async () => {
    const headers = signed(body)
    assert.equal(
      await verifyKey(
        body,
        headers['x-signature-ed25519'],
        headers['x-signature-timestamp'],
        rawKey,
      ),
      true,
    )
    accept('discord', [rawKey], { body, headers })
    accept('discord', ['0'.repeat(63) + '1', rawKey.toUpperCase()], { body, headers })
  })

  it('is refused for another body, time or key, and when it is old', () => {
    const headers = signed(body)
    const other = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' }).x ?? ''
    const otherKey = Buffer.from(other, 'base64url').toString('hex')
    assert.throws(() => accept('discord', [rawKey], { body: '{}', headers }), refused(/not match/))
    assert.throws(() => accept('discord', [otherKey], { body, headers }), refused(/not match/))
    const later = { ...headers, 'x-signature-timestamp': String(now + 1) }
    assert.throws(() => accept('discord', [rawKey], { body, headers: later }), refused(/not match/))
    const old = signed(body, String(now - 901))
    assert.throws(() => accept('discord', [rawKey], { body, headers: old }), refused(/901 s/))
    for (const bad of ['', 'ab', 'z'.repeat(128), undefined])
      assert.throws(
        () =>
          accept('discord', [rawKey], {
            body,
            headers: { ...headers, 'x-signature-ed25519': bad },
          }),
        refused(/signature/),
      )
  })

  it('takes no public key of another kind', () => {
    const scheme = presetScheme('discord')
    const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey
    const der = ec.export({ type: 'spki', format: 'der' }).toString('base64')
    for (const key of [der, rawKey.slice(2), 'x', `${rawKey}00`]) {
      assert.equal(prepareVerifier(scheme, [key]), 'unusable')
      assert.match(secretFault(scheme, key)?.reason ?? '', /Ed25519 public key/)
    }
    assert.equal(secretFault(scheme, rawKey), undefined)
  })
})

describe('sendgrid', () => {
  // From the tests of @sendgrid/eventwebhook.
  const key =
    'MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g=='
  const headers = {
    'x-twilio-email-event-webhook-signature':
      'MEUCIGHQVtGj+Y3LkG9fLcxf3qfI10QysgDWmMOVmxG0u6ZUAiEAyBiXDWzM+uOe5W0JuG+luQAbPIqHh89M15TluLtEZtM=',
    'x-twilio-email-event-webhook-timestamp': '1600112502',
  }
  const events = [
    {
      email: 'hello@world.com',
      event: 'dropped',
      reason: 'Bounced Address',
      sg_event_id: 'ZHJvcC0xMDk5NDkxOS1MUnpYbF9OSFN0T0doUTRrb2ZTbV9BLTA',
      sg_message_id: 'LRzXl_NHStOGhQ4kofSm_A.filterdrecv-p3mdw1-756b745b58-kmzbl-18-5F5FC76C-9.0',
      'smtp-id': '<LRzXl_NHStOGhQ4kofSm_A@ismtpd0039p1iad1.sendgrid.net>',
      timestamp: 1600112492,
    },
  ]
  const body = `${JSON.stringify(events)}\r\n`
  const at = 1600112502 * 1000

  it('is accepted as its own package accepts it', () => {
    const webhook = new EventWebhook()
    const [signature = '', timestamp = ''] = Object.values(headers)
    const own = webhook.convertPublicKeyToECDSA(key)
    assert.equal(webhook.verifySignature(own, body, signature, timestamp), true)
    accept('sendgrid', [key], { body, headers, at })
    const pem = `-----BEGIN PUBLIC KEY-----\\n${key}\\n-----END PUBLIC KEY-----`
    accept('sendgrid', [pem], { body, headers, at })
  })

  it('is refused for another body, time or key, and after a day', () => {
    assert.throws(
      () => accept('sendgrid', [key], { body: body.trim(), headers, at }),
      refused(/not match/),
    )
    const other = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey
    const otherKey = other.export({ type: 'spki', format: 'der' }).toString('base64')
    assert.throws(() => accept('sendgrid', [otherKey], { body, headers, at }), refused(/not match/))
    assert.throws(
      () => accept('sendgrid', [key], { body, headers, at: at + 90_000_000 }),
      refused(/90000 s/),
    )
    const bad = { ...headers, 'x-twilio-email-event-webhook-signature': 'AAAA' }
    assert.throws(() => accept('sendgrid', [key], { body, headers: bad, at }), refused(/not match/))
  })

  it('takes no public key of another kind', () => {
    const scheme = presetScheme('sendgrid')
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey
    const ed = generateKeyPairSync('ed25519').publicKey
    const other = generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey
    const keys = [rsa, ed, other].map((each) =>
      each.export({ type: 'spki', format: 'der' }).toString('base64'),
    )
    for (const wrong of [...keys, 'x', '']) {
      assert.equal(prepareVerifier(scheme, [wrong]), 'unusable')
      assert.match(secretFault(scheme, wrong)?.reason ?? '', /P-256/)
    }
  })
})

describe('netlify and monday', () => {
  const secret = 'shared-secret'
  const key = Buffer.from(secret)
  const body = '{"state":"ready"}'
  const jwt = async (claims: Record<string, unknown>, alg = 'HS256', by: Buffer = key) =>
    new SignJWT(claims).setProtectedHeader({ alg }).sign(by)
  const hash = createHash('sha256').update(body).digest('hex')
  const netlify = async (text: string, sent = body) =>
    acceptProven('netlify', [secret], { body: sent, headers: { 'x-webhook-signature': text } })
  const monday = async (text: string, audience?: string) =>
    acceptProven('monday', [secret], {
      body: '{}',
      headers: { authorization: text },
      ...(audience !== undefined && { audience }),
    })

  it('are accepted as jose signs', async () => {
    await netlify(await jwt({ iss: 'netlify', sha256: hash }))
    const claims = { exp: now + 60, iat: now, aud: 'https://hooks.example/monday' }
    await monday(await jwt(claims))
    await monday(`Bearer ${await jwt(claims)}`, 'https://hooks.example/monday')
  })

  it('are refused for another body, issuer, audience, secret or time', async () => {
    const good = await jwt({ iss: 'netlify', sha256: hash })
    await assert.rejects(netlify(good, '{}'), refused(/another body/))
    await assert.rejects(netlify(await jwt({ iss: 'x', sha256: hash })), refused(/issuer/))
    await assert.rejects(netlify(await jwt({ iss: 'netlify' })), refused(/another body/))
    const other = await jwt({ iss: 'netlify', sha256: hash }, 'HS256', Buffer.from('other'))
    await assert.rejects(netlify(other), refused(/not match/))
    await assert.rejects(monday(await jwt({ exp: now - 61 })), refused(/expired/))
    await assert.rejects(monday(await jwt({ iat: now })), refused(/no time/))
    await assert.rejects(monday(await jwt({ exp: now + 600, nbf: now + 120 })), refused(/future/))
    const elsewhere = await jwt({ exp: now + 60, aud: 'https://evil.example' })
    await assert.rejects(
      monday(elsewhere, 'https://hooks.example/monday'),
      refused(/another address/),
    )
  })

  it('are refused with alg none, with another algorithm, and with no signature', async () => {
    const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')
    const claims = encode({ iss: 'netlify', sha256: hash, exp: now + 60 })
    const signature = createHmac('sha256', key).update('x').digest('base64url')
    for (const alg of ['none', 'NONE', 'HS512', 'RS256', '', undefined])
      for (const end of [signature, 'AA'])
        for (const check of [netlify, monday])
          await assert.rejects(
            check(`${encode({ alg })}.${claims}.${end}`),
            refused(/HS256|no JWT/),
          )
    const good = await jwt({ iss: 'netlify', sha256: hash, exp: now + 60 })
    const parts = good.split('.')
    for (const bad of [
      `${parts[0]}.${parts[1]}.`,
      `${parts[0]}.${parts[1]}`,
      `${good}.x`,
      `${good}=`,
      'a.b.c',
      '..',
      `${encode([])}.${claims}.${signature}`,
      'x'.repeat(20_000),
    ])
      for (const check of [netlify, monday]) await assert.rejects(check(bad), refused(/JWT/))
    const hs512 = await jwt({ iss: 'netlify', sha256: hash }, 'HS512')
    await assert.rejects(netlify(hs512), refused(/HS256/))
    const crit = `${encode({ alg: 'HS256', crit: ['x'] })}.${claims}.${signature}`
    await assert.rejects(netlify(crit), refused(/extension/))
  })
})

describe('google-pubsub', () => {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const audience = 'https://hooks.example/pubsub'
  const account = 'push@project.iam.gserviceaccount.com'
  const claims = {
    iss: 'https://accounts.google.com',
    aud: audience,
    email: account,
    email_verified: true,
    iat: now,
    exp: now + 3600,
  }
  const jwt = async (changed: Record<string, unknown> = {}, by: KeyObject = privateKey) =>
    new SignJWT({ ...claims, ...changed }).setProtectedHeader({ alg: 'RS256', kid: 'one' }).sign(by)
  const pubsub = async (token: string) =>
    acceptProven('google-pubsub', [], {
      body: '{}',
      headers: { authorization: `Bearer ${token}` },
      remoteKey: publicKey,
      audience,
      account,
    })

  it('is accepted for the audience and the account of the entry', async () => {
    await pubsub(await jwt())
    await pubsub(await jwt({ iss: 'accounts.google.com' }))
  })

  it('is refused for any other', async () => {
    for (const [changed, why] of [
      [{ aud: 'https://evil.example' }, /audience/],
      [{ aud: [audience, 'x'] }, /audience/],
      [{ email: 'other@project.iam.gserviceaccount.com' }, /account/],
      [{ email_verified: false }, /account/],
      [{ iss: 'https://evil.example' }, /issuer/],
      [{ exp: now - 61 }, /expired/],
      [{ exp: 'x' }, /no number/],
    ] as const) {
      const token = await jwt(changed)
      await assert.rejects(pubsub(token), refused(why))
    }
    const other = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const forged = await jwt({}, other.privateKey)
    await assert.rejects(pubsub(forged), refused(/not match/))
  })

  it('is refused with alg none, and with the public key as an HMAC secret', async () => {
    const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')
    const none = `${encode({ alg: 'none', kid: 'one' })}.${encode(claims)}.AA`
    await assert.rejects(pubsub(none), refused(/RS256/))
    const head = `${encode({ alg: 'HS256', kid: 'one' })}.${encode(claims)}`
    const pem = publicKey.export({ type: 'spki', format: 'pem' })
    const mac = createHmac('sha256', pem).update(head).digest('base64url')
    await assert.rejects(pubsub(`${head}.${mac}`), refused(/RS256/))
    const token = await jwt()
    const headers = { authorization: `Basic ${token}` }
    const sent = { body: '{}', headers, remoteKey: publicKey, audience, account }
    await assert.rejects(acceptProven('google-pubsub', [], sent), refused(/Bearer/))
  })
})

describe('aws-sns', () => {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const topic = 'arn:aws:sns:eu-west-1:123456789012:MyTopic'
  const notification = {
    Type: 'Notification',
    MessageId: '22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324',
    TopicArn: topic,
    Subject: 'My First Message',
    Message: 'Hello world!',
    Timestamp: '2012-05-02T00:54:06.655Z',
  }
  const confirmation = {
    Type: 'SubscriptionConfirmation',
    MessageId: '165545c9-2a5c-472c-8df2-7ff2be2b3b1b',
    Token: '2336412f37',
    TopicArn: topic,
    Message: 'You have chosen to subscribe to the topic',
    SubscribeURL: 'https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription',
    Timestamp: '2012-04-26T20:45:04.751Z',
  }
  // As the page of Amazon writes it for each kind.
  const signed = (message: Record<string, string>, version = '2', key = privateKey) => {
    const names = Object.keys(message).toSorted()
    const text = names.map((name) => `${name}\n${message[name]}\n`).join('')
    const algorithm = version === '1' ? 'RSA-SHA1' : 'RSA-SHA256'
    const Signature = sign(algorithm, Buffer.from(text), key).toString('base64')
    return { ...message, SignatureVersion: version, Signature, UnsubscribeURL: 'x' }
  }
  const sns = (message: object, audience = topic, remoteKey = publicKey) =>
    accept('aws-sns', [], { body: JSON.stringify(message), remoteKey, audience })

  it('is accepted in both versions, with and without a subject, and its id is signed', () => {
    for (const version of ['1', '2']) {
      assert.equal(sns(signed(notification, version)), notification.MessageId)
      const { Subject: _, ...bare } = notification
      assert.equal(sns(signed(bare, version)), notification.MessageId)
      assert.equal(sns(signed(confirmation, version)), confirmation.MessageId)
    }
  })

  it('is accepted as its own package accepts it', async () => {
    const { signingKey, signingCert, caFile, key, cert } = await makeCertificates()
    const host = createServer({ key, cert }, (_request, response) => response.end(signingCert))
    host.listen(0, '127.0.0.1')
    await once(host, 'listening')
    const before = globalAgent.options.ca
    globalAgent.options.ca = readFileSync(caFile)
    try {
      const { port } = host.address() as AddressInfo
      const url = `https://127.0.0.1:${port}/cert.pem`
      for (const message of [notification, confirmation]) {
        const whole = { ...signed(message, '2', signingKey), SigningCertURL: url }
        const validator = new SnsValidator(/^127\.0\.0\.1:\d+$/)
        await promisify(validator.validate.bind(validator))(whole)
        assert.equal(sns(whole, topic, createPublicKey(signingKey)), message.MessageId)
      }
    } finally {
      globalAgent.options.ca = before
      globalAgent.destroy()
      host.close()
    }
  })

  it('is refused for another topic, another text, another key, and without a signature', () => {
    assert.throws(() => sns(signed(notification), `${topic}2`), refused(/another topic/))
    const changed = { ...signed(notification), Message: 'evil' }
    assert.throws(() => sns(changed), refused(/not match/))
    const other = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey
    assert.throws(() => sns(signed(notification), topic, other), refused(/not match/))
    for (const bad of [{ SignatureVersion: '3' }, { Signature: undefined }, { Timestamp: 7 }])
      assert.throws(() => sns({ ...signed(notification), ...bad }), refused(/./))
    for (const body of ['x', '[]', 'null', '"a"'])
      assert.throws(
        () => accept('aws-sns', [], { body, remoteKey: publicKey }),
        refused(/Amazon SNS/),
      )
  })

  it('is refused where the text of another topic, which Amazon signed, is split into other fields', () => {
    const { Type, ...fields } = confirmation
    const names = Object.keys(fields).toSorted() as (keyof typeof fields)[]
    const [, ...lines] = [...names.flatMap((name) => [name, fields[name]]), 'Type', Type]
    const TopicArn = 'arn:aws:sns:eu-west-1:999999999999:Evil'
    const evil = signed({
      Type: 'Notification',
      MessageId: 'm',
      TopicArn,
      Timestamp: 't',
      Message: lines.join('\n'),
    })
    const rest = ['MessageId', 'm', 'Timestamp', 't', 'TopicArn', TopicArn, 'Type', 'Notification']
    for (const type of [[Type, ...rest], [Type]])
      assert.throws(
        () => sns({ ...evil, ...confirmation, Type: type.join('\n') }),
        refused(/type|not match/),
      )
    const subject = signed(notification)
    const MessageId = `${notification.MessageId}\nSubject\n${notification.Subject}`
    assert.throws(() => sns({ ...subject, MessageId, Subject: undefined }), refused(/lines/))
  })

  it('is refused when it wants another host to be called', () => {
    const SubscribeURL = 'https://sns.eu-west-1.amazonaws.com.evil.example/'
    assert.throws(() => sns(signed({ ...confirmation, SubscribeURL })), refused(/confirms/))
  })
})

describe('mailgun', () => {
  const key = 'signing-key'
  const token = 'e0b5477167110d68991efc6b9f89f0a11066af27834600e123'
  const timestamp = String(now)
  const signature = createHmac('sha256', key)
    .update(timestamp + token)
    .digest('hex')
  const json = (changed: object = {}) =>
    JSON.stringify({
      signature: { token, timestamp, signature, ...changed },
      'event-data': { event: 'opened' },
    })
  const form = { 'content-type': 'application/x-www-form-urlencoded' }

  it('is accepted as JSON and as a form, and its token is the signed id', () => {
    assert.equal(accept('mailgun', [key], { body: json() }), token)
    const body = new URLSearchParams({ token, timestamp, signature, subject: 'a' }).toString()
    assert.equal(accept('mailgun', [key], { body, headers: form }), token)
  })

  it('is accepted with attachments', async () => {
    await loadMultipart()
    const parts = new FormData()
    for (const [name, value] of Object.entries({ token, timestamp, signature }))
      parts.append(name, value)
    parts.append('attachment-1', new File(['text'], 'a.txt'))
    const sent = new Request('http://localhost', { method: 'POST', body: parts })
    const type = sent.headers.get('content-type') ?? ''
    const body = Buffer.from(await sent.arrayBuffer()).toString('latin1')
    assert.equal(accept('mailgun', [key], { body, headers: { 'content-type': type } }), token)
    const cut = body.slice(0, -10)
    assert.throws(
      () => accept('mailgun', [key], { body: cut, headers: { 'content-type': type } }),
      refused(/cut off/),
    )
  })

  it('is not read when it is large and nothing is proved', () => {
    const body = json({ padding: 'x'.repeat(1024 * 1024) })
    assert.throws(() => accept('mailgun', [key], { body }), refused(/too large/))
  })

  it('is refused for another token, time or key, and when it is old', () => {
    for (const changed of [
      { token: `${token}0` },
      { timestamp: String(now - 1) },
      { timestamp: String(now - 28_801) },
      { signature: signature.toUpperCase() },
      { signature: undefined },
      { token: 7 },
    ])
      assert.throws(() => accept('mailgun', [key], { body: json(changed) }), refused(/./))
    assert.throws(() => accept('mailgun', ['other'], { body: json() }), refused(/not match/))
    for (const body of ['', '{}', 'null', 'x', '{"signature":"x"}'])
      assert.throws(() => accept('mailgun', [key], { body }), refused(/./))
  })
})

describe('twilio', () => {
  // The vectors of Twilio's documents and libraries.
  const parameters = {
    CallSid: 'CA1234567890ABCDE',
    Caller: '+14158675309',
    Digits: '1234',
    From: '+14158675309',
    To: '+18005551212',
  }
  const form = { 'content-type': 'application/x-www-form-urlencoded; charset=UTF-8' }
  const twilio = (
    body: string,
    query: string,
    signature: string,
    headers: Readonly<Record<string, string>> = form,
  ) => {
    const scheme = presetScheme('twilio')
    const verifier = prepareVerifier(scheme, ['12345'], 'https://mycompany.com')
    const entries = Object.entries({ ...headers, 'x-twilio-signature': signature })
    const distinct = Object.fromEntries(entries.map(([name, value]) => [name, [value]]))
    const url = `/myapp.php?foo=1&bar=2${query}`
    return verify(Buffer.from(body), distinct, verifier, nowMs, { method: 'POST', url })
  }
  const sent = new URLSearchParams(parameters).toString()

  it('is accepted for a form and for JSON', () => {
    twilio(sent, '', 'RSOYDt4T1cUTdK1PDd93/VVr8B8=')
    twilio(sent.split('&').toReversed().join('&'), '', 'RSOYDt4T1cUTdK1PDd93/VVr8B8=')
    const repeated = 'Sid=CA123&SidAccount=AC123&Digits=5678&Digits=1234&Digits=1234'
    twilio(repeated, '', 'IK+Dwps556ElfBT0I3Rgjkr1wJU=')
    const hash = '&bodySHA256=0a1ff7634d9ab3b95db5c9a2dfe9416e41502b283a80c7cf19632632f96e6620'
    const json = { 'content-type': 'application/json' }
    const body = '{"property": "value", "boolean": true}'
    twilio(body, hash, 'a9nBmqA0ju/hNViExpshrM61xv4=', json)
    assert.throws(
      () => twilio('{}', hash, 'a9nBmqA0ju/hNViExpshrM61xv4=', json),
      refused(/another body/),
    )
    assert.throws(() => twilio('=', hash, 'a9nBmqA0ju/hNViExpshrM61xv4='), refused(/another body/))
  })

  it('is refused for another field, address or signature', () => {
    assert.throws(
      () => twilio(`${sent}&x=1`, '', 'RSOYDt4T1cUTdK1PDd93/VVr8B8='),
      refused(/not match/),
    )
    assert.throws(() => twilio(sent, '&x', 'RSOYDt4T1cUTdK1PDd93/VVr8B8='), refused(/not match/))
    for (const bad of ['', 'RSOYDt4T1cUTdK1PDd93/VVr8B8', 'AAAA'])
      assert.throws(() => twilio(sent, '', bad), refused(/20 bytes/))
    const many = 'a=1&'.repeat(101)
    assert.throws(() => twilio(many, '', 'RSOYDt4T1cUTdK1PDd93/VVr8B8='), refused(/too many/))
  })

  it('needs the public address', () => {
    assert.equal(prepareVerifier(presetScheme('twilio'), ['12345']), 'no-address')
  })
})

describe('microsoft-graph', () => {
  const body = (...states: unknown[]) =>
    JSON.stringify({ value: states.map((clientState) => ({ clientState, resource: 'x' })) })

  it('is accepted when every notification has the secret', () => {
    accept('microsoft-graph', ['state'], { body: body('state') })
    accept('microsoft-graph', ['old', 'state'], { body: body('state', 'old') })
  })

  it('is refused when one has not, and without notifications', () => {
    for (const bad of [body(), body('other'), body('state', 'other'), body('state', undefined)])
      assert.throws(() => accept('microsoft-graph', ['state'], { body: bad }), refused(/./))
    for (const bad of ['', '{}', '[]', 'null', '{"value":{}}', '{"value":["state"]}'])
      assert.throws(() => accept('microsoft-graph', ['state'], { body: bad }), refused(/./))
  })
})
