import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { AccessToken, Login, Logout, TokenSummary } from '../../shared/api/api.ts'
import type { Home } from '../../shared/home/home.ts'
import { approve, browse, visit } from '../support/desktop/browser.ts'
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '../support/providers/authorization-server.ts'
import { type GitHubProvider, startGitHubProvider } from '../support/providers/github-provider.ts'
import { type OAuthApp, startOAuthApp } from '../support/providers/oauth-app.ts'
import { startProviderServer } from '../support/providers/provider-server.ts'
import { storeLogin } from '../support/providers/stored-login.ts'
import { filesIn } from '../support/temporary.ts'

/*
 * One edit of gateway.yaml makes a name mean another server. What the first server gave stays here: tokens, the
 * client secret, and revocations that are still to be done.
 */

const tokenIn = async (app: OAuthApp, name: string, query = '') =>
  app.send<Partial<AccessToken> & { code?: string; detail?: string; hint?: string }>(
    'GET',
    `/oauth/tokens/${name}/access${query}`,
  )
const statusIn = async (app: OAuthApp, name: string) =>
  (await app.send<{ tokens: TokenSummary[] }>('GET', '/oauth/tokens')).body.tokens.find(
    ({ provider }) => provider === name,
  )
const fileIn = async (home: Home, path: string) =>
  JSON.parse(await readFile(join(home.root, path), 'utf8')) as Record<string, unknown>
/** Longer than any token is valid: it must be renewed first. */
const forced = '?min_validity=86400'

describe('a login after gateway.yaml names another server', () => {
  let honest: AuthorizationServer
  let hostile: AuthorizationServer
  let app: OAuthApp

  const at = (issuer: string, entry: object = {}) => ({
    providers: {
      mine: {
        issuer,
        scopes: ['openid', 'email'],
        client_id: 'confidential',
        client_secret_env: 'SECRET',
        ...entry,
      },
    },
  })
  const startApp = async (gateway: object, home?: Home) => {
    const env = { SECRET: honest.secret }
    app = await startOAuthApp({ gateway, env, ...(home && { home }) })
    await app.oauth.start()
  }
  const logIn = async (body: object = {}) => {
    const { authorizationUrl, loginId } = await app.start({ provider: 'mine', ...body })
    await visit(await approve(authorizationUrl))
    assert.equal((await app.ended(loginId)).status, 'authorized')
  }

  before(async () => {
    honest = await startAuthorizationServer()
    hostile = await startAuthorizationServer()
  })
  beforeEach(async () => {
    hostile.paths.length = 0
    await startApp(at(honest.issuer))
  })
  afterEach(() => app.close())
  after(async () => {
    await honest.close()
    await hostile.close()
  })

  it('gives no token, renews nothing, and works again when the first one is back', async () => {
    await logIn()
    const before = (await tokenIn(app, 'mine')).body.accessToken
    app.configure(at(hostile.issuer))
    for (const query of ['', forced]) {
      const { status, body } = await tokenIn(app, 'mine', query)
      assert.deepEqual([status, body.code], [409, 'needs-login'])
      assert.ok(body.detail?.includes(`belongs to ${honest.issuer}, but the configuration names`))
      assert.match(body.hint ?? '', /^doorward oauth login mine, or correct the provider/)
    }
    const shown = await statusIn(app, 'mine')
    assert.deepEqual([shown?.status, shown?.refreshable], ['needs-login', false])
    const [problem] = await app.oauth.problems()
    assert.deepEqual([problem?.code, problem?.about?.provider], ['needs-login', 'mine'])
    assert.deepEqual(hostile.paths, [])

    app.configure(at(`${honest.issuer}/`))
    assert.equal((await tokenIn(app, 'mine')).body.accessToken, before)
    const { status, body } = await tokenIn(app, 'mine', forced)
    assert.equal(status, 200)
    assert.notEqual(body.accessToken, before)
    assert.deepEqual(await app.oauth.problems(), [])
  })

  it('is renewed at no other token endpoint of the same issuer, and revoked at none', async () => {
    await logIn()
    const endpoints = { authorization_endpoint: `${honest.issuer}/auth` }
    for (const entry of [
      { ...endpoints, token_endpoint: `${hostile.issuer}/token` },
      { revocation_endpoint: `${hostile.issuer}/token/revocation` },
      { api_url: hostile.issuer },
    ]) {
      app.configure(at(honest.issuer, entry))
      assert.equal((await tokenIn(app, 'mine', forced)).body.code, 'needs-login')
    }
    assert.equal((await app.send<Logout>('DELETE', '/oauth/tokens/mine')).body.removed, true)
    assert.deepEqual(hostile.paths, [])
  })

  it('is removed by a logout, which says where its tokens are still valid', async () => {
    await logIn()
    const { refreshToken } = await fileIn(app.home, 'tokens/mine.json')
    app.configure(at(hostile.issuer))
    const { body } = await app.send<Logout>('DELETE', '/oauth/tokens/mine')
    assert.deepEqual([body.removed, body.revokedAtProvider], [true, false])
    assert.match(body.detail ?? '', /^nothing was revoked, because the login to mine belongs to /)
    assert.ok(body.detail?.endsWith(`in your account settings at ${honest.issuer}`), body.detail)
    assert.deepEqual(await filesIn(app.home.tokens), [])
    assert.equal(await honest.isRefreshTokenAlive(String(refreshToken)), true)
    assert.deepEqual(hostile.paths, [])
  })

  it('does not bring its remembered client to the next login', async () => {
    const unknown = { client_id: undefined, client_secret_env: undefined }
    app.configure(at(honest.issuer, unknown))
    await logIn({ clientId: 'confidential', clientSecret: honest.secret })
    app.configure(at(hostile.issuer, unknown))
    const { status, body } = await app.send('POST', '/oauth/start', { provider: 'mine' })
    assert.deepEqual([status, body.code], [409, 'client-unknown'])
    assert.ok(body.detail.includes(`belongs to ${honest.issuer}, and is not sent`), body.detail)
    app.configure(at(honest.issuer, unknown))
    await logIn()
  })

  it('of an earlier version belongs from the first start on to the server of that time', async () => {
    const { home } = app
    await app.close()
    await storeLogin(home, 'mine', await honest.mint(), 0)
    const client = JSON.stringify({ clientId: 'public' })
    await writeFile(join(home.clients, 'mine.json'), client, { mode: 0o600 })
    await startApp(at(honest.issuer), home)
    for (const path of ['tokens/mine.json', 'clients/mine.json'])
      assert.deepEqual((await fileIn(home, path))['server'], { issuer: honest.issuer })
    await app.close()

    await startApp(at(hostile.issuer), home)
    assert.equal((await tokenIn(app, 'mine', forced)).body.code, 'needs-login')
    assert.deepEqual((await fileIn(home, 'tokens/mine.json'))['server'], { issuer: honest.issuer })
    await app.close()

    // Its token has to be renewed at the start.
    const [obtainedAt, expiresAt] = [-3540, 60].map((seconds) =>
      new Date(Date.now() + seconds * 1000).toISOString(),
    )
    const record = { ...(await fileIn(home, 'tokens/mine.json')), obtainedAt, expiresAt }
    await writeFile(join(home.tokens, 'mine.json'), JSON.stringify(record), { mode: 0o600 })
    await startApp(at(hostile.issuer), home)
    const event = await app.untilEvent(({ what }) => what === 'needs-login')
    assert.match(event.detail ?? '', /^the login to mine belongs to /)
    assert.deepEqual(hostile.paths, [])
    await app.close()

    await startApp(at(honest.issuer), home)
    assert.equal((await tokenIn(app, 'mine', forced)).status, 200)
  })

  it('of an earlier version that came while the daemon runs belongs to the one that is asked first', async () => {
    await storeLogin(app.home, 'mine', await honest.mint(), 0)
    assert.equal((await tokenIn(app, 'mine')).status, 200)
    app.configure(at(hostile.issuer))
    assert.equal((await tokenIn(app, 'mine')).body.code, 'needs-login')
  })
})

describe('a login at a GitHub of its own, after gateway.yaml names another server', () => {
  let honest: GitHubProvider
  let hostile: GitHubProvider
  let app: OAuthApp

  const at = (entry: object) => ({
    providers: { github: { ...entry, client_secret_env: 'SECRET' } },
  })
  const startApp = async (gateway: object, home?: Home) => {
    const env = { SECRET: honest.client.secret }
    app = await startOAuthApp({ gateway, env, ...(home && { home }) })
    await app.oauth.start()
  }
  const logIn = async () => {
    const { authorizationUrl, loginId } = await app.start({ provider: 'github' })
    await browse(authorizationUrl)
    const { status } = (await app.send<Login>('GET', `/oauth/logins/${loginId}?wait=10`)).body
    assert.equal(status, 'authorized')
  }

  beforeEach(async () => {
    honest = await startGitHubProvider({ accessTokenSeconds: 28_800 })
    hostile = await startGitHubProvider({ accessTokenSeconds: 28_800 })
    await startApp(at(honest.gatewayEntry))
    await logIn()
  })
  afterEach(async () => {
    await app.close()
    honest.close()
    hostile.close()
  })

  it('answers git for no other host: not when the entry is deleted, and not before that is known', async () => {
    const git = async (origin: string) =>
      (await tokenIn(app, 'github', `?git_origin=${encodeURIComponent(origin)}`)).body
    assert.match((await git(honest.origin)).accessToken ?? '', /^gho_/)
    // git reads the edited file before the daemon does.
    assert.equal((await git('https://ghe.example.com')).code, 'config-invalid')
    app.configure({})
    assert.equal((await git('https://github.com')).code, 'needs-login')
    assert.equal((await git(honest.origin)).code, 'config-invalid')
    app.configure(at({ ...honest.gatewayEntry, authorization_endpoint: `${hostile.origin}/a` }))
    assert.equal((await git(hostile.origin)).code, 'config-invalid')
    app.configure(at(hostile.gatewayEntry))
    assert.equal((await git(hostile.origin)).code, 'needs-login')
    assert.deepEqual(hostile.requests, [])
  })

  it('is revoked at the first server only, also later', async () => {
    const { home } = app
    honest.fail({ path: '/applications' })
    const { body } = await app.send<Logout>('DELETE', '/oauth/tokens/github')
    assert.match(body.detail ?? '', /answered 500; it is tried again until/)
    await app.close()
    for (const entry of [
      hostile.gatewayEntry,
      { ...honest.gatewayEntry, api_url: hostile.origin },
    ]) {
      await startApp(at(entry), home)
      await app.close()
      const [problem] = await app.oauth.problems()
      assert.match(problem?.detail ?? '', /are not revoked yet: the login to github belongs to /)
      const there = `by hand you can do it in your account settings at ${honest.origin}/login/oauth`
      assert.ok(problem?.hint.endsWith(there), problem?.hint)
    }
    assert.deepEqual(hostile.requests, [])
    honest.requests.length = 0
    await startApp(at(honest.gatewayEntry), home)
    await app.untilEvent(({ what }) => what === 'revoked')
    assert.match(honest.requests[0]?.path ?? '', /^\/applications\/.+\/grant$/)
  })

  it('is revoked at the server of the first start, where an earlier version kept it for later', async () => {
    const { home } = app
    honest.fail({ path: '/applications' })
    await app.send<Logout>('DELETE', '/oauth/tokens/github')
    await app.close()
    const [name = ''] = await filesIn(home.tokens)
    const { server, ...older } = await fileIn(home, `tokens/${name}`)
    await writeFile(join(home.tokens, name), JSON.stringify(older), { mode: 0o600 })

    const held = honest.hold('/applications')
    await startApp(at(honest.gatewayEntry), home)
    await held.arrived
    assert.deepEqual((await fileIn(home, `tokens/${name}`))['server'], server)
    app.configure(at(hostile.gatewayEntry))
    honest.fail({ path: '/applications' })
    held.release()
    await app.close()
    await startApp(at(hostile.gatewayEntry), home)
    assert.equal((await app.oauth.problems())[0]?.code, 'revocation-pending')
    await app.close()
    assert.deepEqual(hostile.requests, [])
  })

  it('goes on with an API that is named later, on its own host', async () => {
    const withoutApi = { ...honest.gatewayEntry, api_url: undefined }
    const other = await startOAuthApp({
      gateway: at(withoutApi),
      env: { SECRET: honest.client.secret },
    })
    await app.close()
    app = other
    await logIn()
    const { server } = await fileIn(app.home, 'tokens/github.json')
    assert.equal((server as { apiUrl?: string }).apiUrl, undefined)
    app.configure(at({ ...withoutApi, api_url: hostile.origin }))
    assert.equal((await tokenIn(app, 'github')).body.code, 'needs-login')
    app.configure(at(honest.gatewayEntry))
    assert.equal((await tokenIn(app, 'github')).status, 200)
    const { body } = await app.send<Logout>('DELETE', '/oauth/tokens/github')
    assert.equal(body.revokedAtProvider, true)
  })
})

describe('a login at a server that moves its token endpoint', () => {
  it('goes on where the metadata of its issuer name the new one, and within an origin', async () => {
    const answer = { access_token: 'new', token_type: 'Bearer', expires_in: 3600 }
    const renew = () => startProviderServer(() => ({ status: 200, body: answer }))
    const [first, second] = [await renew(), await renew()]
    let tokenEndpoint = `${first.origin}/token`
    const issuer = await startProviderServer(({ path }) =>
      path.startsWith('/.well-known/')
        ? {
            status: 200,
            body: {
              issuer: issuer.origin,
              authorization_endpoint: `${issuer.origin}/authorize`,
              token_endpoint: tokenEndpoint,
            },
          }
        : undefined,
    )
    const plain = (path: string) => ({
      authorization_endpoint: `${first.origin}/authorize`,
      token_endpoint: `${first.origin}${path}`,
      client_id: 'public',
    })
    const found = { issuer: issuer.origin, client_id: 'public' }
    const app = await startOAuthApp({ gateway: { providers: { found, plain: plain('/token') } } })
    for (const name of ['found', 'plain']) await storeLogin(app.home, name, 'refresh', 0)
    await app.oauth.start()
    await app.close()
    tokenEndpoint = `${second.origin}/oauth2/token`
    const moved = await startOAuthApp({
      home: app.home,
      gateway: { providers: { found, plain: plain('/oauth2/token') } },
    })
    try {
      for (const name of ['found', 'plain'])
        assert.equal((await tokenIn(moved, name, forced)).body.accessToken, 'new')
      const asked = [first, second].map(({ requests }) => requests.map(({ path }) => path))
      assert.deepEqual(asked, [['/oauth2/token'], ['/oauth2/token']])
    } finally {
      await moved.close()
      for (const server of [first, second, issuer]) server.close()
    }
  })
})
