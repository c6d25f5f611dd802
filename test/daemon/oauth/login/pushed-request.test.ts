import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'
import { afterEach, describe, it } from 'mocha'
import { browse } from '../../../support/desktop/browser.ts'
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '../../../support/providers/authorization-server.ts'
import { type OAuthApp, startOAuthApp } from '../../../support/providers/oauth-app.ts'
import { sendJson, startScriptedProvider } from '../../../support/providers/scripted-provider.ts'

describe('a login at a server that demands pushed authorization requests', () => {
  let server: AuthorizationServer
  let app: OAuthApp

  const startAt = async (demandsPushed: boolean, entry: object = {}, oauth: object = {}) => {
    server = await startAuthorizationServer({ demandsPushed })
    app = await startOAuthApp({
      gateway: {
        oauth: { callback_port: 0, ...oauth },
        providers: { mine: { issuer: server.issuer, scopes: ['openid', 'email'], ...entry } },
      },
    })
  }
  afterEach(async () => {
    await app.close()
    await server.close()
  })
  const pushes = () => server.paths.filter((path) => path === '/request').length

  const clients: readonly (readonly [string, string, boolean, object])[] = [
    ['without a secret', 'public', false, {}],
    ['with its secret in the body', 'confidential', true, {}],
    ['with its secret by HTTP Basic', 'basic', true, { token_auth: 'basic' }],
  ]
  for (const [how, clientId, hasSecret, entry] of clients)
    it(`is pushed ${how}, and the page names only the request`, async () => {
      await startAt(true, entry)
      const started = await app.start({
        provider: 'mine',
        clientId,
        ...(hasSecret && { clientSecret: server.secret }),
      })
      assert.equal(pushes(), 1)
      const { searchParams } = new URL(started.authorizationUrl)
      assert.deepEqual([...searchParams.keys()].sort(), ['client_id', 'request_uri'])
      assert.match(searchParams.get('request_uri') ?? '', /^urn:ietf:params:oauth:request_uri:/)
      const leftMs = Date.parse(started.openBefore ?? '') - Date.now()
      assert.ok(leftMs > 30_000 && leftMs <= 60_000, `${leftMs}`)
      const page = await browse(started.authorizationUrl)
      assert.match(page.text, /Logged in to mine/)
      const login = await app.ended(started.loginId)
      assert.deepEqual(login.account, { id: 'person-1', name: 'ada@example.com' })
      assert.equal(server.tokenRequests.at(-1)?.get('code_verifier')?.length, 43)
    })

  it('sends the browser the whole request where the server only offers it', async () => {
    await startAt(false)
    const started = await app.start({ provider: 'mine', clientId: 'public' })
    assert.equal(pushes(), 0)
    assert.equal(started.openBefore, undefined)
    assert.ok(new URL(started.authorizationUrl).searchParams.has('code_challenge'))
    await browse(started.authorizationUrl)
    assert.equal((await app.ended(started.loginId)).status, 'authorized')
  })

  it('fails at its start with a wrong secret, an unknown client and redirect URI, and leaves no listener', async () => {
    const free = createServer().listen(0, '127.0.0.1')
    await once(free, 'listening')
    const { port } = free.address() as AddressInfo
    free.close()
    await startAt(true, { redirect_path: '/unknown' }, { callback_port: port })
    const refusal = async (body: object) => {
      const answer = await app.send('POST', '/oauth/start', {
        provider: 'mine',
        ...body,
      })
      assert.deepEqual([answer.status, answer.body.code], [502, 'provider-refused'])
      return `${answer.body.detail} | ${answer.body.hint}`
    }
    const wrong = await refusal({ clientId: 'confidential', clientSecret: 'canary-secret' })
    assert.match(wrong, /does not accept the client id and secret \(invalid_client.* compare both/)
    assert.match(await refusal({ clientId: 'nobody' }), /does not accept the client id/)
    assert.match(
      await refusal({ clientId: 'public' }),
      /refused the request \(invalid_request: redirect_uri did not match .* its redirect URI/,
    )
    assert.doesNotMatch(wrong + app.logLines.join(), /canary/)
    const socket = connect(port, '127.0.0.1')
    const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException]
    assert.equal(error.code, 'ECONNREFUSED')
  })
})

describe('a server that answers a pushed authorization request wrongly', () => {
  let provider: Awaited<ReturnType<typeof startScriptedProvider>>
  let app: OAuthApp
  afterEach(async () => {
    await app.close()
    provider.close()
  })

  const startWith = async (
    answer: (form: URLSearchParams, basic: string) => readonly [status: number, body: object],
    loginTimeoutMs = 60_000,
    path = '/par',
  ) => {
    provider = await startScriptedProvider((origin) => ({
      '/.well-known/openid-configuration': (response) =>
        sendJson(response, 200, {
          issuer: origin,
          authorization_endpoint: `${origin}/authorize`,
          token_endpoint: `${origin}/token`,
          ...(path !== '' && { pushed_authorization_request_endpoint: `${origin}${path}` }),
          require_pushed_authorization_requests: true,
        }),
      '/par': (response, { headers }, body) =>
        sendJson(response, ...answer(new URLSearchParams(body), headers.authorization ?? '')),
    }))
    app = await startOAuthApp({
      gateway: { providers: { mine: { issuer: provider.origin, client_id: 'me' } } },
      loginTimeoutMs,
    })
  }

  const named = 'urn:example:1'
  const answers: readonly (readonly [string, number, object, RegExp])[] = [
    ['names no request', 201, { expires_in: 60 }, /request_uri/],
    ['names no lifetime', 201, { request_uri: named }, /expires_in/],
    ['names one too long', 201, { request_uri: 'u'.repeat(4000), expires_in: 60 }, /too many/],
    ['answers 200', 200, { request_uri: named, expires_in: 60 }, /status 200 that is not/],
    ['is in trouble', 503, {}, /answered 503/],
    ['wants another scope', 400, { error: 'invalid_scope' }, /these scopes/],
  ]
  for (const [what, status, body, said] of answers)
    it(`is reported where it ${what}`, async () => {
      await startWith(() => [status, body])
      const answer = await app.send('POST', '/oauth/start', { provider: 'mine' })
      assert.equal(answer.status, 502)
      assert.match(answer.body.detail, said)
    })

  it('is asked again with the secret in the body where it refuses HTTP Basic', async () => {
    const seen: (string | null)[] = []
    await startWith((form, basic) => {
      seen.push(basic || form.get('client_secret'))
      return basic !== ''
        ? [401, { error: 'invalid_client' }]
        : [201, { request_uri: named, expires_in: 60 }]
    })
    const client = { clientId: 'me', clientSecret: 'it-s' }
    const { authorizationUrl } = await app.start({ provider: 'mine', ...client })
    assert.equal(new URL(authorizationUrl).searchParams.get('request_uri'), named)
    assert.deepEqual(seen, [`Basic ${Buffer.from('me:it-s').toString('base64')}`, 'it-s'])
  })

  it('does not get its state, nonce or challenge shown where it repeats them', async () => {
    let sent = new URLSearchParams()
    await startWith((form) => {
      sent = form
      const error_description = `no ${[...form.values()].join(' ')}`
      return [400, { error: 'invalid_request', error_description }]
    })
    const answer = await app.send('POST', '/oauth/start', { provider: 'mine', scopes: ['openid'] })
    assert.equal(answer.status, 502)
    for (const name of ['state', 'nonce', 'code_challenge'])
      assert.ok(!JSON.stringify(answer.body).includes(sent.get(name) ?? ''), name)
  })

  it('is misconfigured where it demands what it names no endpoint for', async () => {
    await startWith(() => [201, {}], 60_000, '')
    const { body } = await app.send('POST', '/oauth/start', { provider: 'mine' })
    assert.equal(body.code, 'provider-misconfigured')
    assert.match(body.detail, /demands pushed authorization requests and names no endpoint/)
  })

  it('is opened in time: a login that ends unused says so', async () => {
    await startWith(() => [201, { request_uri: named, expires_in: 0.01 }], 100)
    const { loginId } = await app.start({ provider: 'mine' })
    const { status, error } = await app.ended(loginId)
    assert.equal(status, 'expired')
    assert.match(error?.hint ?? '', /^be ready to open the page of mine right away/)
  })
})
