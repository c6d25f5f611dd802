import assert from 'node:assert/strict'
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { SignJWT } from 'jose'
import type { EventRecord } from '../../../shared/api/api.ts'
import type { Explanation } from '../../../shared/api/explain.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { send } from '../../support/servers/http.ts'
import { makeCertificates, startTlsFront } from '../../support/servers/private-network.ts'

const topic = 'arn:aws:sns:eu-west-1:123456789012:alerts'
const account = 'push@project.iam.gserviceaccount.com'
const audience = 'https://hooks.example/pubsub'

const webhooks = `webhooks:
  - { path: /discord, agent: echo, signature_scheme: discord, public_key_env: DISCORD_KEY, prompt_template: "{{event.data.name}}" }
  - { path: /broken, agent: echo, signature_scheme: discord, public_key_env: BROKEN_KEY, prompt_template: x }
  - { path: /pubsub, agent: echo, signature_scheme: google-pubsub, audience: ${audience}, service_account: ${account}, prompt_template: "{{event.message.data}}" }
  - { path: /oidc, agent: echo, signature_scheme: oidc, issuer: 'https://token.actions.githubusercontent.com', audience: ${audience}, claims: { repository: acme/shop }, prompt_template: "{{event.step}}" }
  - { path: /signed, agent: echo, signature_scheme: public-key, algorithm: ed25519, public_key_env: SIGNED_KEY, signature_header: X-Signed, timestamp_header: X-Time, signed: '{timestamp}|{body}', prompt_template: "{{event.step}}" }
  - { path: /sns, agent: echo, signature_scheme: aws-sns, audience: "${topic}", confirm: true, prompt_template: "{{event.Message}}" }
  - { path: /asked, agent: echo, signature_scheme: aws-sns, audience: "${topic}", prompt_template: x }
  - { path: /graph, agent: echo, signature_scheme: microsoft-graph, secret_env: GRAPH_STATE, prompt_template: x }
`

describe('senders with key pairs, through a running daemon', () => {
  const discord = generateKeyPairSync('ed25519')
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
  let daemon: RunningDaemon
  let certificateKey: KeyObject
  /** What the hosts of Google and Amazon were asked. */
  const asked: string[] = []
  const closing: (() => void)[] = []

  before(async () => {
    const certificates = await makeCertificates([
      'www.googleapis.com',
      'token.actions.githubusercontent.com',
      'sns.eu-west-1.amazonaws.com',
      'sns.cn-north-1.amazonaws.com.cn',
    ])
    certificateKey = certificates.signingKey
    const hosts = createServer((request, response) => {
      asked.push(`${request.headers.host}${request.url}`)
      if (request.url === '/.well-known/openid-configuration') {
        const issuer = `https://${request.headers.host}`
        response.end(JSON.stringify({ issuer, jwks_uri: `${issuer}/oauth2/v3/certs` }))
      } else if (request.url === '/oauth2/v3/certs') {
        const jwk = { ...rsa.publicKey.export({ format: 'jwk' }), kid: 'one', alg: 'RS256' }
        response.end(JSON.stringify({ keys: [jwk] }))
      } else response.end(certificates.signingCert)
    })
    const front = await startTlsFront(certificates, await portOf(hosts))
    // Every name is this machine.
    const proxy = createServer()
    proxy.on('connect', (_request, socket: Socket) => {
      const upstream = connect(front.port, '127.0.0.1')
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      socket.pipe(upstream).pipe(socket)
      socket.on('error', () => upstream.destroy())
      upstream.on('error', () => socket.destroy())
    })
    const proxyPort = await portOf(proxy)
    closing.push(
      () => hosts.close(),
      () => front.close(),
      () => proxy.close(),
    )
    const raw = Buffer.from(discord.publicKey.export({ format: 'jwk' }).x ?? '', 'base64url')
    daemon = await startDaemon({
      webhooks,
      env: [
        `DISCORD_KEY=${raw.toString('hex')}`,
        `SIGNED_KEY=${raw.toString('base64')}`,
        'BROKEN_KEY=not-a-key',
        'GRAPH_STATE=state',
        `HTTPS_PROXY=http://127.0.0.1:${proxyPort}`,
        `NODE_EXTRA_CA_CERTS=${certificates.caFile}`,
        '',
      ].join('\n'),
    })
  })
  after(async () => {
    assert.equal(await daemon.stop(), 0)
    for (const close of closing) close()
  })
  beforeEach(() => asked.splice(0))

  const lastEvent = async (webhook: string): Promise<EventRecord> => {
    const path = `/events?webhook=${encodeURIComponent(webhook)}`
    const [event] = (await daemon.client.get<{ events: EventRecord[] }>(path)).events
    assert.ok(event)
    return event
  }
  const post = async (path: string, body: string, headers: Record<string, string> = {}) =>
    send(`${daemon.url}${path}`, {
      body,
      headers: { 'content-type': 'application/json', ...headers },
    })
  const result = async (id: unknown) => (await untilFinished(daemon, String(id))).result

  const signDiscord = (body: string, key = discord.privateKey) => {
    const timestamp = String(Math.floor(Date.now() / 1000))
    return {
      'x-signature-ed25519': sign(null, Buffer.from(timestamp + body), key).toString('hex'),
      'x-signature-timestamp': timestamp,
    }
  }

  it('answers the PING of Discord, and only with a valid signature', async () => {
    const body = '{"application_id":"1","id":"2","token":"t","type":1,"version":1}'
    const reply = await post('/discord', body, signDiscord(body))
    assert.deepEqual([reply.status, reply.json()], [200, { type: 1 }])
    assert.equal(reply.headers['content-type'], 'application/json')
    const other = generateKeyPairSync('ed25519').privateKey
    assert.equal((await post('/discord', body, signDiscord(body, other))).status, 401)
    assert.equal((await post('/discord', body)).status, 401)
  })

  it('runs the agent for a command of Discord, which the person sees as accepted', async () => {
    const body = '{"id":"3","token":"t","type":2,"data":{"name":"deploy"}}'
    const reply = await post('/discord', body, signDiscord(body))
    assert.equal(reply.status, 200)
    assert.equal((reply.json()['data'] as { content: string }).content, 'Accepted.')
    const [id] = String(reply.headers['doorward-event']).split(' ')
    assert.equal(await result(id), 'deploy')
  })

  it('accepts a token of Google for this audience and account, and asks for its keys once', async () => {
    const now = Math.floor(Date.now() / 1000)
    const token = async (email: string) =>
      new SignJWT({ email, email_verified: true, aud: audience, iat: now, exp: now + 60 })
        .setIssuer('https://accounts.google.com')
        .setProtectedHeader({ alg: 'RS256', kid: 'one' })
        .sign(rsa.privateKey)
    for (const messageId of ['1', '2']) {
      const body = JSON.stringify({ message: { messageId, data: 'aGk=' }, subscription: 's' })
      const reply = await post('/pubsub', body, { authorization: `Bearer ${await token(account)}` })
      assert.equal(reply.status, 202, reply.text)
      assert.equal(await result(reply.json()['id']), 'aGk=')
    }
    const evil = await post('/pubsub', '{}', { authorization: `Bearer ${await token('e@vil')}` })
    assert.equal(evil.status, 401)
    assert.deepEqual(asked, ['www.googleapis.com/oauth2/v3/certs'])
  })

  it('accepts a token of a named issuer with the claims of the entry, by its discovery', async () => {
    const now = Math.floor(Date.now() / 1000)
    const token = async (repository: string) =>
      new SignJWT({ repository, aud: audience, iat: now, exp: now + 60 })
        .setIssuer('https://token.actions.githubusercontent.com')
        .setProtectedHeader({ alg: 'RS256', kid: 'one' })
        .sign(rsa.privateKey)
    const send = async (repository: string) =>
      post('/oidc', '{"step":"deploy"}', { authorization: `Bearer ${await token(repository)}` })
    const reply = await send('acme/shop')
    assert.equal(reply.status, 202, reply.text)
    assert.equal(await result(reply.json()['id']), 'deploy')
    assert.equal((await send('evil/shop')).status, 401)
    assert.match((await lastEvent('/oidc')).detail ?? '', /claim repository/)
    assert.deepEqual(asked, [
      'token.actions.githubusercontent.com/.well-known/openid-configuration',
      'token.actions.githubusercontent.com/oauth2/v3/certs',
    ])
  })

  it('accepts a signature by a key pair that the entry describes', async () => {
    const time = String(Math.floor(Date.now() / 1000))
    const signed = (body: string) =>
      sign(null, Buffer.from(`${time}|${body}`), discord.privateKey).toString('base64')
    const body = '{"step":"deploy"}'
    const headers = { 'x-signed': signed(body), 'x-time': time }
    const reply = await post('/signed', body, headers)
    assert.equal(reply.status, 202, reply.text)
    assert.equal(await result(reply.json()['id']), 'deploy')
    assert.equal((await post('/signed', '{"step":"evil"}', headers)).status, 401)
  })

  const signSns = (message: Record<string, string>, SigningCertURL: string) => {
    const names = Object.keys(message).toSorted()
    const text = names.map((name) => `${name}\n${message[name]}\n`).join('')
    const Signature = sign('sha256', Buffer.from(text), certificateKey).toString('base64')
    return JSON.stringify({ ...message, SignatureVersion: '2', Signature, SigningCertURL })
  }
  const certificate = 'https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-1.pem'
  const notification = (MessageId: string) => ({
    Type: 'Notification',
    MessageId,
    TopicArn: topic,
    Message: 'disk full',
    Timestamp: new Date().toISOString(),
  })
  const confirmation = {
    Type: 'SubscriptionConfirmation',
    MessageId: 'c-1',
    Token: 'token',
    TopicArn: topic,
    Message: 'You have chosen to subscribe',
    SubscribeURL: 'https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&Token=token',
    Timestamp: new Date().toISOString(),
  }
  const text = { 'content-type': 'text/plain; charset=UTF-8' }

  it('accepts a message of Amazon SNS, which is JSON called text', async () => {
    const reply = await post('/sns', signSns(notification('m-1'), certificate), text)
    assert.equal(reply.status, 202, reply.text)
    assert.equal(await result(reply.json()['id']), 'disk full')
    assert.deepEqual(asked, ['sns.eu-west-1.amazonaws.com/SimpleNotificationService-1.pem'])
    const again = await post('/sns', signSns(notification('m-1'), certificate), text)
    assert.equal(again.json()['status'], 'duplicate')
    const changed = signSns(notification('m-2'), certificate).replace('disk full', 'evil')
    assert.equal((await post('/sns', changed, text)).status, 401)
    const other = signSns({ ...notification('m-3'), TopicArn: `${topic}2` }, certificate)
    assert.equal((await post('/sns', other, text)).status, 401)
    assert.equal(asked.length, 1)
  })

  it('explains a message as it would be verified', async () => {
    const explain = async (payload: string) =>
      daemon.client.post<Explanation>('/webhooks/explain', { path: '/sns', headers: text, payload })
    const message = signSns(notification('m-5'), certificate)
    assert.equal((await explain(message)).signature.result, 'valid')
    const { signature } = await explain(message.replace('disk full', 'evil'))
    assert.equal(signature.result, 'invalid')
    assert.match(signature.detail ?? '', /not match/)
  })

  it('fetches no certificate from another host', async () => {
    for (const url of [
      'https://evil.example/SimpleNotificationService-1.pem',
      'https://sns.eu-west-1.amazonaws.com.evil.example/SimpleNotificationService-1.pem',
      'http://sns.eu-west-1.amazonaws.com/SimpleNotificationService-1.pem',
    ])
      assert.equal((await post('/sns', signSns(notification('m-4'), url), text)).status, 401)
    assert.deepEqual(asked, [])
    assert.match((await lastEvent('/sns')).detail ?? '', /not one of Amazon SNS/)
  })

  it('confirms a subscription with the consent of the owner only', async () => {
    const body = signSns(confirmation, certificate)
    const reply = await post('/sns', body, text)
    assert.deepEqual([reply.status, reply.json()['status']], [202, 'challenge'])
    await daemon.client.get('/status')
    for (let event = await lastEvent('/sns'); !event.detail?.endsWith('is confirmed');)
      event = await lastEvent('/sns')
    assert.deepEqual(asked, ['sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&Token=token'])
    assert.equal((await post('/asked', body, text)).status, 202)
    assert.match((await lastEvent('/asked')).detail ?? '', /set confirm: true/)
    const forged = body.replace('Token=token', 'Token=other')
    assert.equal((await post('/sns', forged, text)).status, 401)
    assert.equal(asked.length, 1)
  })

  it('answers the validation of Microsoft Graph, and takes only its clientState', async () => {
    const query = '?validationToken=Validation%3A+Testing%20%3Cb%3E'
    const reply = await post(`/graph${query}`, '')
    assert.deepEqual([reply.status, reply.text], [200, 'Validation: Testing <b>'])
    assert.equal(reply.headers['content-type'], 'text/plain; charset=utf-8')
    assert.equal(reply.headers['x-content-type-options'], 'nosniff')
    const body = (clientState: string) => JSON.stringify({ value: [{ clientState }] })
    assert.equal((await post('/graph', body('state'))).status, 202)
    assert.equal((await post('/graph', body('other'))).status, 401)
  })
})

const portOf = async (server: ReturnType<typeof createServer>): Promise<number> => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}
