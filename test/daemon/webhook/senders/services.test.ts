import assert from 'node:assert/strict'
import { createHash, createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { exportJWK, SignJWT } from 'jose'
import { findHandshake, getReply } from '../../../../daemon/webhook/senders/handshakes.ts'
import { findUnsignedHandshake } from '../../../../daemon/webhook/senders/handshakes-unsigned.ts'
import { prove } from '../../../../daemon/webhook/senders/prove.ts'
import { RemoteKeys } from '../../../../daemon/webhook/senders/remote-keys.ts'
import { getDeliveryId } from '../../../../daemon/webhook/read-delivery.ts'
import { prepareVerifier, verify } from '../../../../daemon/webhook/signatures/verify.ts'
import { getEventNames } from '../../../../daemon/webhook/rules/choose.ts'
import { presetScheme, type SchemeName } from '../../../../shared/signatures/presets.ts'
import { readSample } from '../../../../shared/samples/samples.ts'
import { distinct, schemeNamed } from '../../../support/daemon/accepts.ts'
import { check, requiredFields, webhook } from '../../../support/daemon/config-files.ts'
import { makeCertificates } from '../../../support/servers/private-network.ts'

const nowMs = Date.parse('2026-11-28T12:00:00Z')
const seconds = String(nowMs / 1000)
const refused = { code: 'signature-invalid' }

type Sent = {
  readonly secret: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string
  readonly url?: string
  readonly atMs?: number
}

const accept = (
  name: SchemeName,
  { secret, headers = {}, body, url = '/a', atMs = nowMs }: Sent,
) => {
  const verifier = prepareVerifier(schemeNamed(name), [secret], 'https://hooks.example')
  const given = distinct({ 'content-type': 'application/json', ...headers })
  return verify(Buffer.from(body), given, verifier, atMs, { method: 'POST', url })
}

const mac = (secret: string | Buffer, text: string) => createHmac('sha256', secret).update(text)

/** Each as its documents describe it; those of Adyen, Box and LINE are the published examples. */
const deliveries: { readonly [Name in SchemeName]?: Sent } = {
  x: {
    secret: 'consumer-secret',
    body: '{"for_user_id":"1"}',
    headers: {
      'x-twitter-webhooks-signature': `sha256=${mac('consumer-secret', '{"for_user_id":"1"}').digest('base64')}`,
    },
  },
  okta: { secret: 'my secret value', body: '{}', headers: { authorization: 'my secret value' } },
  airtable: {
    secret: Buffer.from('mac-secret').toString('base64'),
    body: '{"base":{"id":"app1"}}',
    headers: {
      'x-airtable-content-mac': `hmac-sha256=${mac('mac-secret', '{"base":{"id":"app1"}}').digest('hex')}`,
    },
  },
  line: {
    secret: '8c570fa6dd201bb328f1c1eac23a96d8',
    body: '{"destination":"U8e742f61d673b39c7fff3cecb7536ef0","events":[]}',
    headers: { 'x-line-signature': 'GhRKmvmHys4Pi8DxkF4+EayaH0OqtJtaZxgTD9fMDLs=' },
  },
  linkedin: {
    secret: 'client-secret',
    body: '{"type":"T"}',
    headers: {
      'x-li-signature': mac('client-secret', 'hmacsha256={"type":"T"}').digest('hex'),
    },
  },
  strava: { secret: 'key-in-the-address', body: '{}', url: '/a?key=key-in-the-address' },
  nylas: {
    secret: 'nylas-secret',
    body: '{"id":"1"}',
    headers: { 'x-nylas-signature': mac('nylas-secret', '{"id":"1"}').digest('hex') },
  },
  box: {
    secret: 'SamplePrimaryKey',
    body: '{"type":"webhook_event","webhook":{"id":"1234567890"},"trigger":"FILE.UPLOADED","source":{"id":"1234567890","type":"file","name":"Test.txt"}}',
    headers: {
      'box-delivery-timestamp': '2020-01-01T00:00:00-07:00',
      'box-signature-primary': '6TfeAW3A1PASkgboxxA5yqHNKOwFyMWuEXny/FPD5hI=',
      'box-signature-secondary': 'v+1CD1Jdo3muIcbpv5lxxgPglOqMfsNHPV899xWYydo=',
    },
    atMs: Date.parse('2020-01-01T00:01:00-07:00'),
  },
  mux: {
    secret: 'mux-secret',
    body: '{}',
    headers: {
      'mux-signature': `t=${seconds},v1=${mac('mux-secret', `${seconds}.{}`).digest('hex')}`,
    },
  },
  workos: {
    secret: 'workos-secret',
    body: '{}',
    headers: {
      'workos-signature': `t=${nowMs}, v1=${mac('workos-secret', `${nowMs}.{}`).digest('hex')}`,
    },
  },
  elevenlabs: {
    secret: 'wsec_secret',
    body: '{}',
    headers: {
      'elevenlabs-signature': `t=${seconds},v0=${mac('wsec_secret', `${seconds}.{}`).digest('hex')}`,
    },
  },
  sanity: {
    secret: 'sanity-secret',
    body: '{}',
    headers: {
      'sanity-webhook-signature': `t=${nowMs},v1=${mac('sanity-secret', `${nowMs}.{}`).digest('base64url')}`,
    },
  },
  clickup: {
    secret: 'clickup-secret',
    body: '{"event":"taskCreated"}',
    headers: { 'x-signature': mac('clickup-secret', '{"event":"taskCreated"}').digest('hex') },
  },
  figma: { secret: 'passcode', body: '{"passcode":"passcode","event_type":"FILE_UPDATE"}' },
  cloudflare: { secret: 'cf-secret', body: '{}', headers: { 'cf-webhook-auth': 'cf-secret' } },
  adyen: {
    secret: '44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056',
    body: '{"live":"false","notificationItems":[{"NotificationRequestItem":{"additionalData":{"hmacSignature":"coqCmt/IZ4E3CzPvMY8zTjQVL5hYJUiBRg8UU+iCWo0="},"amount":{"value":1130,"currency":"EUR"},"pspReference":"7914073381342284","eventCode":"AUTHORISATION","eventDate":"2019-05-06T17:15:34.121+02:00","merchantAccountCode":"TestMerchant","merchantReference":"TestPayment-1407325143704","paymentMethod":"visa","success":"true"}}]}',
  },
}

/** By Standard Webhooks; Supabase shows the version before the secret. */
const secretBytes = Buffer.alloc(24, 7)
for (const name of ['resend', 'clerk', 'openai', 'supabase'] as const) {
  const family = name === 'openai' || name === 'supabase' ? 'webhook' : 'svix'
  const before = name === 'supabase' ? 'v1,' : ''
  Object.assign(deliveries, {
    [name]: {
      secret: `${before}whsec_${secretBytes.toString('base64')}`,
      body: '{"type":"t"}',
      headers: {
        [`${family}-id`]: 'msg_1',
        [`${family}-timestamp`]: seconds,
        [`${family}-signature`]: `v1,${mac(secretBytes, `msg_1.${seconds}.{"type":"t"}`).digest('base64')}`,
      },
    },
  })
}

describe('a delivery of a service', () => {
  for (const [name, sent] of Object.entries(deliveries) as [SchemeName, Sent][])
    it(`by ${name} is accepted as its documents describe it, and no other is`, () => {
      accept(name, sent)
      assert.throws(() => accept(name, { ...sent, secret: 'f0'.repeat(16) }), refused)
      const { headers = {} } = sent
      for (const key of Object.keys(headers))
        if (!/time|-id$|secondary/.test(key))
          assert.throws(
            () => accept(name, { ...sent, headers: { ...headers, [key]: 'x' } }),
            refused,
          )
      const isToken = ['okta', 'strava', 'figma', 'cloudflare'].includes(name)
      const body = sent.body.replace(/[a-zA-Z](?=[^a-zA-Z]*$)|\{\}/, 'Z')
      if (!isToken && name !== 'adyen')
        assert.throws(() => accept(name, { ...sent, body }), refused)
    })

  it('by Box is accepted by its second key where only that is here, and refused when it is old', () => {
    const { box } = deliveries
    assert.ok(box)
    const { 'box-signature-primary': _, ...headers } = box.headers ?? {}
    accept('box', { ...box, headers, secret: 'SampleSecondaryKey' })
    const atMs = (box.atMs ?? 0) + 11 * 60_000
    assert.throws(() => accept('box', { ...box, atMs }), refused)
  })

  it('by LinkedIn may have the prefix in its header, too', () => {
    const { linkedin } = deliveries
    assert.ok(linkedin)
    const value = `hmacsha256=${linkedin.headers?.['x-li-signature']}`
    accept('linkedin', { ...linkedin, headers: { 'x-li-signature': value } })
  })

  it('by a hub of WebSub is accepted by each algorithm of its own, and by no other', () => {
    const body = '<feed><entry><id>yt:video:1</id></entry></feed>'
    const sent = (name: string, algorithm = name) => {
      const digest = createHmac(algorithm, 'hub-secret').update(body).digest('hex')
      return { secret: 'hub-secret', body, headers: { 'x-hub-signature': `${name}=${digest}` } }
    }
    for (const algorithm of ['sha1', 'sha256', 'sha512']) accept('websub', sent(algorithm))
    for (const [name, algorithm] of [
      ['sha1', 'sha256'],
      ['sha512', 'sha256'],
      ['md5', 'md5'],
      ['', 'sha1'],
    ] as const)
      assert.throws(() => accept('websub', sent(name, algorithm)), refused)
    const doubled = `sha256=x,${sent('sha1').headers['x-hub-signature']}`
    const other = { ...sent('sha1'), headers: { 'x-hub-signature': doubled } }
    assert.throws(() => accept('websub', other), refused)
  })

  it('by Adyen is refused when one of its items is not signed, or has other fields', () => {
    const { adyen } = deliveries
    assert.ok(adyen)
    const item = /\{"NotificationRequestItem".*\}(?=\])/.exec(adyen.body)?.[0] ?? ''
    const list = (...items: string[]) => `{"notificationItems":[${items.join()}]}`
    accept('adyen', { ...adyen, body: list(item, item) })
    for (const body of [
      list(item, item.replace('1130', '1131')),
      list(item, '{}'),
      list(),
      list(...Array.from({ length: 101 }, () => item)),
      list(item.replace('"7914073381342284"', '{"a":1}')),
      // The same text to sign, with a boundary elsewhere.
      list(item.replace('"TestMerchant"', '"TestMerchant:TestPayment-1407325143704"')),
      '[]',
      '{"notificationItems":{}}',
    ])
      assert.throws(() => accept('adyen', { ...adyen, body }), refused, body)
  })

  it('by Adyen for its platform is signed in a header, by the same key', () => {
    const secret = 'ab'.repeat(32)
    const body = '{"type":"balancePlatform.transfer.created"}'
    const signature = mac(Buffer.from(secret, 'hex'), body).digest('base64')
    accept('adyen', { secret, body, headers: { hmacsignature: signature } })
    const other = { secret, body: '{}', headers: { hmacsignature: signature } }
    assert.throws(() => accept('adyen', other), refused)
  })
})

describe('a sender of whose keys a certificate or an API tells', () => {
  const asked: { url: string; json: string | undefined }[] = []
  let certificateKey: KeyObject
  let certificate: string
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  let plaidAnswer: unknown
  const remoteKeys = () =>
    new RemoteKeys(
      async (url, json) => {
        asked.push({ url: url.href, json })
        return url.host.endsWith('plaid.com') ? JSON.stringify(plaidAnswer) : certificate
      },
      () => Date.now(),
    )

  before(async () => {
    const made = await makeCertificates(['api.paypal.com'])
    certificateKey = made.signingKey
    certificate = made.signingCert.toString()
    plaidAnswer = { key: { ...(await exportJWK(ec.publicKey)), kid: keyId, expired_at: null } }
  })
  beforeEach(() => asked.splice(0))

  const keyId = 'bfbd5111-8e33-4643-8ced-b2e642a72f3c'
  const at = Date.now()
  const entryOf = (name: 'paypal' | 'plaid') => {
    const yaml = (requiredFields[name] ?? []).map((line) => `    ${line}\n`).join('')
    const [entry] = check({ webhooks: webhook(`    signature_scheme: ${name}\n${yaml}`) }).webhooks
    assert.ok(entry)
    return prepareVerifier(entry.scheme, name === 'plaid' ? ['api-secret'] : [])
  }
  const acceptBy = async (
    name: 'paypal' | 'plaid',
    headers: Readonly<Record<string, string>>,
    body: string,
    keys = remoteKeys(),
  ) => {
    const verifier = entryOf(name)
    const given = distinct(headers)
    const bytes = Buffer.from(body)
    const proof = await prove(verifier, { headers: given, bytes, nowMs: at, remoteKeys: keys })
    return verify(bytes, given, verifier, at, { method: 'POST', url: '/', proof }).signedId
  }

  const certificateUrl = 'https://api.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594'
  const paypal = (body: string, more: Record<string, string> = {}, webhookId = 'WH1') => {
    const time = more['paypal-transmission-time'] ?? new Date(at).toISOString()
    const signed = `tx-1|${time}|${webhookId}|${crc32(Buffer.from(body))}`
    return {
      'paypal-transmission-id': 'tx-1',
      'paypal-transmission-time': time,
      'paypal-auth-algo': 'SHA256withRSA',
      'paypal-cert-url': certificateUrl,
      'paypal-transmission-sig': sign('sha256', Buffer.from(signed), certificateKey).toString(
        'base64',
      ),
      ...more,
    }
  }

  it('is PayPal, by the certificate that it names, fetched once', async () => {
    const keys = remoteKeys()
    const body = '{"event_type":"PAYMENT.CAPTURE.COMPLETED"}'
    assert.equal(await acceptBy('paypal', paypal(body), body, keys), 'tx-1')
    await acceptBy('paypal', paypal('{}'), '{}', keys)
    assert.deepEqual(asked, [{ url: certificateUrl, json: undefined }])
    const isRefused = async (headers: Record<string, string>, sent = body) =>
      assert.rejects(acceptBy('paypal', headers, sent, keys), refused)
    await isRefused(paypal(body), '{"event_type":"evil"}')
    await isRefused(paypal(body, {}, 'WH2'))
    await isRefused(paypal(body, { 'paypal-transmission-id': 'tx-2' }))
    await isRefused(paypal(body, { 'paypal-auth-algo': 'SHA1withRSA' }))
    const old = new Date(at - 86_402_000).toISOString()
    await isRefused(paypal(body, { 'paypal-transmission-time': old }))
  })

  it('is no PayPal whose certificate is elsewhere', async () => {
    for (const url of [
      'https://api.paypal.com.evil.example/v1/notifications/certs/CERT-1',
      'https://evil.example/v1/notifications/certs/CERT-1',
      'http://api.paypal.com/v1/notifications/certs/CERT-1',
      'https://api.paypal.com/v1/notifications/certs/../../evil',
      'https://api.paypal.com/v1/notifications/certs/CERT-1?a=b',
      'https://evil@api.paypal.com/v1/notifications/certs/CERT-1',
      'https://api.paypal.com:8443/v1/notifications/certs/CERT-1',
    ])
      await assert.rejects(
        acceptBy('paypal', paypal('{}', { 'paypal-cert-url': url }), '{}'),
        refused,
      )
    assert.deepEqual(asked, [])
  })

  const plaid = async (body: string, claims: object = {}, alg = 'ES256') => ({
    'plaid-verification': await new SignJWT({
      iat: Math.floor(at / 1000),
      request_body_sha256: createHash('sha256').update(body).digest('hex'),
      ...claims,
    })
      .setProtectedHeader({ alg, kid: keyId })
      .sign(ec.privateKey),
  })

  it('is Plaid, by the key that its API gives to its customer, of the environment of the body', async () => {
    const keys = remoteKeys()
    const body = '{"environment":"sandbox"}'
    await acceptBy('plaid', await plaid(body), body, keys)
    await acceptBy('plaid', await plaid(body), body, keys)
    assert.deepEqual(asked, [
      {
        url: 'https://sandbox.plaid.com/webhook_verification_key/get',
        json: JSON.stringify({ client_id: 'c1', secret: 'api-secret', key_id: keyId }),
      },
    ])
    await acceptBy('plaid', await plaid('{}'), '{}', keys)
    assert.equal(asked[1]?.url, 'https://production.plaid.com/webhook_verification_key/get')
    const isRefused = async (headers: Record<string, string>, sent = body) =>
      assert.rejects(acceptBy('plaid', headers, sent, keys), refused)
    await isRefused(await plaid(body), '{"environment":"sandbox" }')
    await isRefused(await plaid(body, { iat: Math.floor(at / 1000) - 301 }))
    await isRefused(await plaid(body, { iat: undefined }))
    const [, claims] = (await plaid(body))['plaid-verification'].split('.')
    for (const alg of ['none', 'HS256']) {
      const head = Buffer.from(JSON.stringify({ alg, kid: keyId })).toString('base64url')
      await isRefused({ 'plaid-verification': `${head}.${claims}.AAAA` })
    }
  })

  it('is no Plaid with a key that has expired', async () => {
    const { key } = plaidAnswer as { readonly key: object }
    plaidAnswer = { key: { ...key, expired_at: 1 } }
    await assert.rejects(acceptBy('plaid', await plaid('{}'), '{}'), refused)
  })
})

describe('a test of an address by a service', () => {
  const ask = (
    name: SchemeName,
    secret: string,
    query: string,
    header: Record<string, string> = {},
  ) => {
    const scheme = schemeNamed(name)
    const found = findUnsignedHandshake(
      {
        scheme,
        verifier: prepareVerifier(scheme, [secret]),
        confirm: false,
        secretNames: ['A'],
        verifyTokens: () => ['mine'],
      },
      { method: 'GET', url: `/a${query}`, headers: distinct(header), bytes: Buffer.alloc(0) },
    )
    return found?.reply.text
  }

  it('by X, Okta, LinkedIn, Nylas and Strava gets the answer that they ask for', () => {
    const crc = mac('s', 'abc').digest('base64')
    assert.equal(ask('x', 's', '?crc_token=abc'), `{"response_token":"sha256=${crc}"}`)
    const okta = { 'x-okta-verification-challenge': 'abc' }
    assert.equal(ask('okta', 's', '', okta), '{"verification":"abc"}')
    const code = '890e4665-4dfe-4ab1-b689-ed553bceeed0'
    assert.deepEqual(JSON.parse(ask('linkedin', 's', `?challengeCode=${code}`) ?? ''), {
      challengeCode: code,
      challengeResponse: mac('s', code).digest('hex'),
    })
    assert.equal(ask('nylas', 's', '?challenge=a-b'), 'a-b')
    const hub = '?hub.challenge=a1&hub.topic=https%3A%2F%2Fexample.com%2Ffeed&hub.mode='
    assert.equal(ask('websub', 's', `${hub}subscribe`), 'a1')
    assert.equal(ask('websub', 's', `${hub}denied`), '')
    assert.equal(ask('websub', 's', `${hub}unsubscribe`), undefined)
    const strava = '?hub.mode=subscribe&hub.challenge=15f7d1a91c1f40f8&hub.verify_token='
    assert.equal(ask('strava', 's', `${strava}mine`), '{"hub.challenge":"15f7d1a91c1f40f8"}')
    assert.throws(() => ask('strava', 's', `${strava}other`), refused)
  })

  it('by LINE, Figma and Cloudflare runs nothing', () => {
    for (const [name, payload] of [
      ['line', { destination: 'U1', events: [] }],
      ['figma', { event_type: 'PING', passcode: 'x' }],
      [
        'cloudflare',
        { text: 'Hello World! This is a test message sent from https://cloudflare.com.' },
      ],
    ] as const) {
      assert.equal(findHandshake(presetScheme(name), {}, payload)?.status, 'ping', name)
      const { body } = readSample(`${name}:${sampleNames[name]}`)
      assert.equal(findHandshake(presetScheme(name), {}, JSON.parse(body.toString())), undefined)
    }
  })

  const sampleNames = {
    line: 'message',
    figma: 'FILE_COMMENT',
    cloudflare: 'universal_ssl_event_type',
  } as const
})

describe('the event and the answer of a service', () => {
  it('are those of its documents', () => {
    const named: Record<
      string,
      readonly [sample: string, event: string | undefined, reply: string]
    > = {
      adyen: ['AUTHORISATION', 'AUTHORISATION', '200 [accepted]'],
      airtable: ['change', undefined, '200 '],
      box: ['FILE.UPLOADED', 'FILE.UPLOADED', '202'],
      line: ['message', 'message', '200 '],
      okta: ['user.session.start', 'user.session.start', '200 '],
      plaid: ['TRANSACTIONS.SYNC_UPDATES_AVAILABLE', 'TRANSACTIONS.SYNC_UPDATES_AVAILABLE', '200 '],
      strava: ['activity.create', 'activity.create', '200 '],
      supabase: ['signup', 'signup', '200 {}'],
      telnyx: ['message.received', 'message.received', '202'],
    }
    for (const [name, [sample, event, expected]] of Object.entries(named)) {
      const scheme = schemeNamed(name as SchemeName)
      const payload: unknown = JSON.parse(readSample(`${name}:${sample}`).body.toString())
      assert.deepEqual(getEventNames(scheme, {}, payload), event === undefined ? [] : [event], name)
      const reply = getReply(scheme, {}, payload)
      assert.equal(reply ? `${reply.code ?? 200} ${reply.text}` : '202', expected, name)
    }
  })

  it('have no id where the body has an object in its place', () => {
    const scheme = presetScheme('telnyx')
    const id = (value: unknown) =>
      getDeliveryId(scheme, {}, { payload: { data: { id: value } }, signedId: undefined })
    assert.equal(id('b301'), 'b301')
    assert.equal(id({ a: 1 }), undefined)
  })
})
