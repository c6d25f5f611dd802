import assert from 'node:assert/strict'
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, SignJWT } from 'jose'
import { prove } from '../../../../daemon/webhook/senders/prove.ts'
import { prepareVerifier, verify } from '../../../../daemon/webhook/signatures/verify.ts'
import { distinct } from '../../../support/daemon/accepts.ts'
import { check, webhook } from '../../../support/daemon/config-files.ts'
import { parseSnsUrl, RemoteKeys } from '../../../../daemon/webhook/senders/remote-keys.ts'
import { makeCertificates } from '../../../support/servers/private-network.ts'

const hour = 3_600_000
const unavailable = { code: 'unavailable' }
const refused = (localDetail: RegExp) => ({ code: 'signature-invalid', localDetail })

describe('the keys of Google', () => {
  const pair = generateKeyPairSync('rsa', { modulusLength: 2048 })
  let at = 0
  let asked: string[] = []
  let names: string[] | undefined
  const keys = () =>
    new RemoteKeys(
      async (url) => {
        asked.push(url.href)
        if (!names) throw new Error('down')
        const jwk = pair.publicKey.export({ format: 'jwk' })
        return JSON.stringify({ keys: names.map((kid) => ({ ...jwk, kid })) })
      },
      () => at,
    )
  beforeEach(() => {
    at = hour
    asked = []
    names = ['one']
  })

  it('are fetched from one address, once for many deliveries', async () => {
    const remote = keys()
    const found = Array.from({ length: 20 }, async () => remote.findOfGoogle('one'))
    assert.equal((await Promise.all(found)).length, 20)
    await remote.findOfGoogle('one')
    assert.deepEqual(asked, ['https://www.googleapis.com/oauth2/v3/certs'])
  })

  it('are fetched again for a new key, but not more than once a minute', async () => {
    const remote = keys()
    await remote.findOfGoogle('one')
    for (const kid of ['two', 'three'])
      await assert.rejects(remote.findOfGoogle(kid), refused(/does not have/))
    assert.equal(asked.length, 1)
    names = ['two']
    at += 61_000
    await remote.findOfGoogle('two')
    assert.equal(asked.length, 2)
  })

  it('serve for a day while Google cannot be reached', async () => {
    const remote = keys()
    await remote.findOfGoogle('one')
    names = undefined
    at += 23 * hour
    await remote.findOfGoogle('one')
    at += 2 * hour
    await assert.rejects(remote.findOfGoogle('one'), unavailable)
  })
})

describe('the certificates of Amazon SNS', () => {
  const good = 'https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0000.pem'
  const message = (SigningCertURL: unknown) => Buffer.from(JSON.stringify({ SigningCertURL }))

  it('are on a host of SNS, by https', () => {
    for (const url of [
      good,
      'https://sns.cn-north-1.amazonaws.com.cn/x',
      'https://sns.us-gov-west-1.amazonaws.com/',
    ])
      assert.ok(parseSnsUrl(url), url)
    for (const url of [
      'http://sns.eu-west-1.amazonaws.com/x.pem',
      'https://sns.eu-west-1.amazonaws.com.evil.example/x.pem',
      'https://evil.example/sns.eu-west-1.amazonaws.com/x.pem',
      'https://evil.example#sns.eu-west-1.amazonaws.com/x.pem',
      'https://sns.eu-west-1.amazonaws.com@evil.example/x.pem',
      'https://a:b@sns.eu-west-1.amazonaws.com/x.pem',
      'https://sns.eu-west-1.amazonaws.com:8443/x.pem',
      'https://s3.eu-west-1.amazonaws.com/x.pem',
      'https://sns.evil.amazonaws.com.co/x.pem',
      'https://sns.amazonaws.com/x.pem',
      'https://127.0.0.1/x.pem',
      'file:///etc/passwd',
      '',
      7,
      undefined,
    ])
      assert.equal(parseSnsUrl(url), undefined, String(url))
  })

  it('are fetched from nowhere else, and only as a .pem', async () => {
    const asked: string[] = []
    const remote = new RemoteKeys(async (url) => {
      asked.push(url.href)
      return ''
    })
    for (const url of [
      'https://evil.example/x.pem',
      'https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&Token=x',
      'https://sns.eu-west-1.amazonaws.com/a/../x.txt',
      `${good}?x=1`,
      `${good}?`,
      `${good}#1`,
      undefined,
    ])
      await assert.rejects(remote.findOfSns(message(url)), refused(/certificate/))
    await assert.rejects(remote.findOfSns(Buffer.from('x')), refused(/no message/))
    assert.deepEqual(asked, [])
  })

  it('are kept, must be valid now, and cannot be made to be fetched without end', async () => {
    const { cert, expiredCert } = await makeCertificates()
    let answer = cert
    let asked = 0
    const remote = new RemoteKeys(async () => {
      asked += 1
      return answer.toString()
    })
    const key = await remote.findOfSns(message(good))
    assert.equal(key.asymmetricKeyType, 'ec')
    await remote.findOfSns(message(good))
    assert.equal(asked, 1)
    answer = expiredCert
    const expired = good.replace('0000', '0001')
    await assert.rejects(remote.findOfSns(message(expired)), refused(/not valid now/))
    answer = Buffer.from('no certificate')
    for (let at = 0; at < 20; at += 1)
      await assert.rejects(remote.findOfSns(message(good.replace('0000', `1${at}`))), unavailable)
    assert.ok(asked <= 6, String(asked))
    await remote.findOfSns(message(good))
    // Nor can they keep the keys of Google from being fetched.
    const before = asked
    answer = Buffer.from('{"keys":[]}')
    await assert.rejects(remote.findOfGoogle('one'), refused(/does not have/))
    assert.equal(asked, before + 1)
  })
})

describe('a token of any issuer', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const ed = generateKeyPairSync('ed25519')
  const now = Math.floor(Date.now() / 1000)
  const audience = 'https://hooks.example'
  let server: Server
  let issuer: string
  let asked: string[]
  /** What the issuer answers, in place of what is right. */
  let answers: Readonly<Record<string, unknown>>
  let remoteKeys: RemoteKeys

  before(async () => {
    const jwks = {
      keys: [
        { ...(await exportJWK(rsa.publicKey)), kid: 'rsa', use: 'sig' },
        { ...(await exportJWK(ec.publicKey)), kid: 'ec' },
        { ...(await exportJWK(ed.publicKey)), kid: 'ed' },
        { ...(await exportJWK(rsa.publicKey)), kid: 'for-encryption', use: 'enc' },
        { kty: 'oct', k: 'AAAA', kid: 'secret' },
        { kty: 'unknown', kid: 'new' },
        null,
      ],
    }
    server = createServer((request, response) => {
      const { url = '' } = request
      asked.push(url)
      const answer = Object.hasOwn(answers, url)
        ? answers[url]
        : url === '/keys'
          ? jwks
          : { issuer, jwks_uri: `${issuer}/keys` }
      if (answer === undefined) response.writeHead(302, { location: '/keys' }).end()
      else response.end(typeof answer === 'string' ? answer : JSON.stringify(answer))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  after(() => server.close())
  beforeEach(() => {
    asked = []
    answers = {}
    remoteKeys = new RemoteKeys()
  })

  type Token = { readonly claims?: object; readonly alg?: string; readonly kid?: string }
  const sign = async ({ claims = {}, alg = 'RS256', kid = 'rsa' }: Token, key = rsa.privateKey) =>
    new SignJWT({ iss: issuer, aud: audience, exp: now + 60, sub: 'repo:acme/shop', ...claims })
      .setProtectedHeader({ alg, kid })
      .sign(key)
  const accept = async (token: string): Promise<void> => {
    const fields = `    signature_scheme: oidc\n    issuer: ${issuer}\n    audience: ${audience}\n    claims: { sub: "repo:acme/shop" }\n`
    const [entry] = check({ webhooks: webhook(fields) }).webhooks
    assert.ok(entry)
    const verifier = prepareVerifier(entry.scheme, [])
    const headers = distinct({ authorization: `Bearer ${token}` })
    const bytes = Buffer.from('{}')
    const proof = await prove(verifier, { headers, bytes, nowMs: now * 1000, remoteKeys })
    verify(bytes, headers, verifier, now * 1000, { method: 'POST', url: '/', proof })
  }

  it('is accepted by each kind of key, whose address is asked for once', async () => {
    await accept(await sign({}))
    await accept(await sign({ alg: 'PS256' }))
    await accept(await sign({ alg: 'ES256', kid: 'ec' }, ec.privateKey))
    await accept(await sign({ alg: 'EdDSA', kid: 'ed' }, ed.privateKey))
    await accept(await sign({ claims: { aud: ['other', audience] } }))
    assert.deepEqual(asked, ['/.well-known/openid-configuration', '/keys'])
  })

  it('is refused for another issuer, audience, claim or time', async () => {
    for (const [claims, reason] of [
      [{ iss: `${issuer}/` }, /issuer/],
      [{ aud: 'https://hooks.example/' }, /audience/],
      [{ aud: ['x'] }, /audience/],
      [{ aud: undefined }, /audience/],
      [{ sub: 'repo:acme/shop2' }, /claim sub/],
      [{ sub: ['repo:acme/shop'] }, /claim sub/],
      [{ sub: undefined }, /claim sub/],
      [{ exp: now - 61 }, /expired/],
      [{ exp: undefined }, /no time/],
      [{ nbf: now + 120 }, /future/],
    ] as const)
      await assert.rejects(accept(await sign({ claims })), refused(reason))
  })

  it('is refused without a signature, by a secret, and by a key that is not for its algorithm', async () => {
    const [head = '', claims = ''] = (await sign({})).split('.')
    const none = Buffer.from('{"alg":"none","kid":"rsa"}').toString('base64url')
    await assert.rejects(accept(`${none}.${claims}.AA`), refused(/not signed with RS256/))
    await assert.rejects(accept(`${none}.${claims}.`), refused(/no JWT/))
    await assert.rejects(accept(`${head}.${claims}.AAAA`), refused(/not match/))
    for (const publicKey of [
      rsa.publicKey.export({ type: 'spki', format: 'pem' }).toString(),
      rsa.publicKey.export({ type: 'spki', format: 'der' }),
    ]) {
      const bySecret = await new SignJWT({ iss: issuer, aud: audience, exp: now + 60 })
        .setProtectedHeader({ alg: 'HS256', kid: 'rsa' })
        .sign(Buffer.from(publicKey as string))
      await assert.rejects(accept(bySecret), refused(/not signed with RS256/))
    }
    await assert.rejects(accept(await sign({ kid: 'ec' })), refused(/another kind/))
    const es = await sign({ alg: 'ES256', kid: 'rsa' }, ec.privateKey)
    await assert.rejects(accept(es), refused(/another kind/))
    for (const kid of ['for-encryption', 'secret', 'new', 'x', '__proto__'])
      await assert.rejects(accept(await sign({ kid })), refused(/does not have/))
    const other = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
    await assert.rejects(accept(await sign({}, other)), refused(/not match/))
  })

  it('waits for an issuer that lies, sends too much, or sends elsewhere', async () => {
    const discovery = '/.well-known/openid-configuration'
    const token = await sign({})
    for (const [lie, detail] of [
      [
        { [discovery]: { issuer: 'https://other.example', jwks_uri: `${issuer}/keys` } },
        /another issuer/,
      ],
      [{ [discovery]: { issuer } }, /no https address/],
      [{ [discovery]: { issuer, jwks_uri: 'http://192.0.2.1/keys' } }, /no https address/],
      [{ [discovery]: { issuer, jwks_uri: 'file:///etc/passwd' } }, /no https address/],
      [{ [discovery]: [] }, /another issuer/],
      [{ [discovery]: 'no JSON' }, /cannot be fetched/],
      [{ [discovery]: undefined }, /cannot be fetched/],
      [{ '/keys': randomBytes(5 * 1024 * 1024).toString('hex') }, /too large/],
      [{ '/keys': undefined }, /cannot be fetched/],
    ] as const) {
      answers = lie
      remoteKeys = new RemoteKeys()
      await assert.rejects(accept(token), { code: 'unavailable', localDetail: detail })
    }
    answers = { '/keys': { keys: 'x' } }
    remoteKeys = new RemoteKeys()
    await assert.rejects(accept(token), refused(/does not have/))
  })

  it('lets no one make the issuer be asked more than six times a minute', async () => {
    answers = { '/keys': 'no JSON' }
    const token = await sign({})
    for (let count = 0; count < 20; count += 1) await assert.rejects(accept(token), unavailable)
    assert.equal(asked.length, 12)
  })
})
