import assert from 'node:assert/strict'
import { readFile, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, it } from 'mocha'
import { getDialect } from '../../../../daemon/oauth/dialects/dialects.ts'
import { loginSchema, type Logout, type TokenSummary } from '../../../../shared/api/api.ts'
import { browse, visit } from '../../../support/desktop/browser.ts'
import {
  type GitHubOptions,
  type GitHubProvider,
  startGitHubProvider,
} from '../../../support/providers/github-provider.ts'
import { type OAuthApp, startOAuthApp } from '../../../support/providers/oauth-app.ts'

describe('login to a GitHub', () => {
  let provider: GitHubProvider
  let app: OAuthApp

  afterEach(async () => {
    await app.close()
    provider.close()
  })

  const start = async (options: GitHubOptions = {}, entry: object = {}) => {
    provider = await startGitHubProvider(options)
    app = await startOAuthApp({
      gateway: {
        providers: {
          github: { ...provider.gatewayEntry, client_secret_env: 'GITHUB_SECRET', ...entry },
        },
      },
      env: { GITHUB_SECRET: provider.client.secret },
    })
  }
  const noSecret = { client_secret_env: undefined }
  const logIn = async (body: object = {}) => {
    const started = await app.start({ provider: 'github', ...body })
    const page = await browse(started.authorizationUrl)
    return { started, page, login: loginSchema.parse(await app.ended(started.loginId)) }
  }
  const record = async () =>
    JSON.parse(await readFile(join(app.home.tokens, 'github.json'), 'utf8')) as Record<
      string,
      unknown
    >
  const alive = async () => {
    const { accessToken, refreshToken } = await record()
    return { access: String(accessToken), refresh: String(refreshToken) }
  }
  const logOut = async () => (await app.send<Logout>('DELETE', '/oauth/tokens/github')).body
  const askedWith = (path: string) => provider.requests.filter((request) => request.path === path)

  it('reads scopes with commas and a token that does not end', async () => {
    await start()
    const { started, login, page } = await logIn()
    assert.equal(started.device, true)
    assert.deepEqual(login, {
      loginId: login.loginId,
      provider: 'github',
      status: 'authorized',
      account: { id: '583231', name: 'octocat' },
    })
    assert.match(page.text, /octocat/)
    const { scopes, expiresAt, refreshToken } = await record()
    assert.deepEqual([scopes, expiresAt, refreshToken], [['repo', 'user'], null, undefined])
    assert.equal(askedWith('/user')[0]?.headers['user-agent'], 'doorward')
  })

  it('imports a token only for a GitHub that knows it, and never logs one', async () => {
    await start({ app: 'github-app' }, {})
    await logIn()
    const { access } = await alive()
    const send = (name: string, accessToken: string) =>
      app.send<{ code?: string; detail?: string }>('POST', '/oauth/import', {
        provider: name,
        accessToken,
      })
    const cases = [
      ['google', access, 'provider-misconfigured'],
      ['nowhere', access, 'provider-unknown'],
      ['github', 'gho_unknown', 'provider-refused'],
      ['github', 'two\nlines', 'request-invalid'],
      ['github', '', 'request-invalid'],
    ] as const
    for (const [name, accessToken, code] of cases) {
      const { body } = await send(name, accessToken)
      assert.equal(body.code, code)
      assert.doesNotMatch(JSON.stringify(body), /gho_unknown|two/)
    }
    provider.fail({ status: 503 })
    assert.equal((await send('github', access)).body.code, 'provider-unavailable')
    assert.equal((await alive()).access, access)
    const { status, body } = await send('github', access)
    assert.deepEqual(
      [status, body],
      [201, { provider: 'github', account: { id: '583231', name: 'octocat' }, scopes: [] }],
    )
    assert.equal((await record())['refreshToken'], undefined)
    assert.equal(provider.isAlive(access), true)
    assert.doesNotMatch(app.logLines.join('\n'), new RegExp(access))
  })

  it('reads lifetimes that come as text', async () => {
    await start({ accessTokenSeconds: 28_800 })
    await logIn()
    const { expiresAt, refreshExpiresAt, refreshToken } = await record()
    const hours = (Date.parse(String(expiresAt)) - Date.now()) / 3_600_000
    assert.ok(hours > 7.9 && hours <= 8)
    const days = (Date.parse(String(refreshExpiresAt)) - Date.now()) / 86_400_000
    assert.ok(days > 183 && days <= 184)
    assert.equal(provider.isAlive(String(refreshToken)), true)
  })

  it('misses nothing at a GitHub App, which grants no scopes', async () => {
    await start({ app: 'github-app' })
    const { login } = await logIn()
    assert.deepEqual([login.status, login.missingScopes], ['authorized', undefined])
    const { body } = await app.send<{ tokens: TokenSummary[] }>('GET', '/oauth/tokens')
    assert.equal(body.tokens[0]?.missingScopes, undefined)
  })

  it('misses nothing that a wider scope holds', async () => {
    await start({ alsoGranted: ['admin:org'] })
    const { login } = await logIn({
      scopes: ['repo', 'public_repo', 'read:org', 'user:email', 'user'],
    })
    assert.equal(login.missingScopes, undefined)
  })

  const logouts: [string, GitHubOptions, object, string, boolean][] = [
    ['with the client secret', {}, {}, 'access token revoked', true],
    [
      'with the client secret and a refresh token',
      { accessTokenSeconds: 28_800 },
      {},
      'refresh token and access token revoked',
      true,
    ],
    ['without a secret', { isSecretRequired: false }, noSecret, 'access token revoked', false],
    [
      'without a secret but with a refresh token',
      { isSecretRequired: false, app: 'github-app' },
      noSecret,
      'refresh token and access token revoked',
      false,
    ],
  ]
  for (const [what, options, entry, detail, isOwner] of logouts)
    it(`really logs out ${what}`, async () => {
      await start(options, entry)
      await logIn()
      const tokens = await alive()
      const logout = await logOut()
      assert.deepEqual([logout.revokedAtProvider, logout.detail], [true, detail])
      assert.deepEqual(
        [provider.isAlive(tokens.access), provider.isAlive(tokens.refresh)],
        [false, false],
      )
      const asOwner = askedWith(`/applications/${provider.client.id}/grant`)
      const asHolder = askedWith('/credentials/revoke')
      assert.deepEqual([asOwner.length, asHolder.length], isOwner ? [1, 0] : [0, 1])
      assert.equal(asHolder[0]?.headers.authorization, undefined)
      assert.deepEqual(await readdir(app.home.tokens), [])
    })

  it('takes back single tokens while another login of the same person goes on', async () => {
    await start({ accessTokenSeconds: 28_800 })
    await logIn()
    const old = await alive()
    // Without a word to the provider, so that both live.
    await rm(join(app.home.tokens, 'github.json'))
    await logIn()
    const current = await alive()
    const { origin, client } = provider
    const revocation = await getDialect({ dialect: 'github' }).revoke({
      tokens: { accessToken: old.access, refreshToken: old.refresh },
      client: { clientId: client.id, clientSecret: client.secret },
      endpoints: {
        isIssuerKnown: false,
        server: { issuer: origin, authorization_endpoint: origin, token_endpoint: origin },
      },
      apiUrl: origin,
      extent: 'tokens',
      signal: new AbortController().signal,
    })
    assert.deepEqual(revocation, {
      revokedAtProvider: true,
      detail: 'refresh token and access token revoked',
    })
    const live = [old.access, old.refresh, current.access, current.refresh].map((token) =>
      provider.isAlive(token),
    )
    assert.deepEqual(live, [false, false, true, true])
  })

  it('ends the refresh token although the access token has expired', async () => {
    await start({ accessTokenSeconds: 28_800 })
    await logIn()
    const { refresh } = await alive()
    provider.expireAccessTokens()
    const logout = await logOut()
    assert.deepEqual(
      [logout.revokedAtProvider, logout.detail],
      [true, 'refresh token revoked; access token had ended before'],
    )
    assert.equal(provider.isAlive(refresh), false)
  })

  const hourly = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '4102444800' }
  for (const [what, fault] of [
    ['a limit that is used up', { headers: hourly, body: { message: 'Forbidden' } }],
    ['a limit in words', { body: { message: 'API rate limit exceeded for 192.0.2.1.' } }],
    ['the time to come back', { retryAfterSeconds: 60 }],
  ] as const)
    it(`keeps the tokens for another try where a 403 names ${what}`, async () => {
      await start({ isSecretRequired: false, app: 'github-app' }, noSecret)
      await logIn()
      provider.fail({ path: '/credentials/revoke', status: 403, ...fault })
      const logout = await logOut()
      assert.equal(logout.revokedAtProvider, false)
      assert.match(logout.detail ?? '', /rate limit reached \(403\); it is tried again until/)
      assert.equal((await readdir(join(app.home.tokens, 'revoke'))).length, 1)
    })

  it('keeps nothing where a 403 is a refusal', async () => {
    await start({ isSecretRequired: false, app: 'github-app' }, noSecret)
    await logIn()
    provider.fail({ path: '/credentials/revoke', status: 403, body: { message: 'Forbidden' } })
    const { detail } = await logOut()
    assert.match(detail ?? '', /answered 403; you can revoke the access/)
    assert.deepEqual(await readdir(app.home.tokens), [])
  })

  it('says at a logout that the person had ended it before', async () => {
    await start()
    await logIn()
    provider.revokeAll()
    const logout = await logOut()
    assert.deepEqual(
      [logout.revokedAtProvider, logout.detail],
      [true, 'access token had ended before'],
    )
  })

  it('names a wrong secret, and an unknown client id', async () => {
    await start({}, noSecret)
    const wrong = await logIn({ clientSecret: 'not-this-one' })
    assert.match(wrong.login.error?.message ?? '', /does not accept the client id and secret/)
    const started = await app.start({ provider: 'github', clientId: 'nobody' })
    const { origin, pathname, searchParams } = new URL(started.redirectUri)
    assert.equal(searchParams.size, 0)
    const state = new URL(started.authorizationUrl).searchParams.get('state') ?? ''
    await visit(`${origin}${pathname}?code=any&state=${state}`)
    const { error } = await app.ended(started.loginId)
    assert.match(error?.message ?? '', /does not accept the client id .*\(invalid_client\)$/)
    assert.match(error?.hint ?? '', /^compare the client id with .* --client-id nobody /)
  })

  it('goes on after an answer of 500 at the identity, which need not be known', async () => {
    await start()
    provider.fail({ path: '/user' })
    const { login } = await logIn()
    assert.deepEqual([login.status, login.account], ['authorized', null])
  })

  it('cannot revoke where the address of the API is not known, and names the key', async () => {
    await start({}, { api_url: undefined })
    const { login } = await logIn()
    assert.deepEqual([login.status, login.account], ['authorized', null])
    const logout = await logOut()
    assert.equal(logout.revokedAtProvider, false)
    assert.match(
      logout.detail ?? '',
      /api_url .* gateway\.yaml.*github\.com\/settings\/applications/,
    )
  })
})
