import assert from 'node:assert/strict'
import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, it } from 'mocha'
import { loginSchema, type Logout } from '../../../../shared/api/api.ts'
import { browse, textOf } from '../../../support/desktop/browser.ts'
import { type OAuthApp, startOAuthApp } from '../../../support/providers/oauth-app.ts'
import {
  type SlackOptions,
  type SlackProvider,
  startSlackProvider,
} from '../../../support/providers/slack-provider.ts'

describe('login to a Slack', () => {
  let provider: SlackProvider
  let app: OAuthApp

  afterEach(async () => {
    await app.close()
    provider.close()
  })

  const start = async (
    options: SlackOptions = {},
    entry: object = {},
    env = {},
    name = 'slack',
  ) => {
    provider = await startSlackProvider(options)
    app = await startOAuthApp({
      gateway: { providers: { [name]: { ...provider.gatewayEntry, ...entry } } },
      env,
    })
  }
  const logIn = async (body: object = {}) => {
    const started = await app.start({ provider: 'slack', ...body })
    const page = await browse(started.authorizationUrl)
    return { started, page, login: loginSchema.parse(await app.ended(started.loginId)) }
  }
  const record = async (name = 'slack') =>
    JSON.parse(await readFile(join(app.home.tokens, `${name}.json`), 'utf8')) as Record<
      string,
      unknown
    >
  const logOut = async () => (await app.send<Logout>('DELETE', '/oauth/tokens/slack')).body

  it('asks for user scopes and lifts what it gets', async () => {
    await start()
    const { started, login, page } = await logIn()
    const asked = new URL(started.authorizationUrl).searchParams
    assert.deepEqual(
      [asked.get('user_scope'), asked.get('scope')],
      ['chat:write,channels:read', null],
    )
    assert.deepEqual(login, {
      loginId: login.loginId,
      provider: 'slack',
      status: 'authorized',
      account: { id: 'U0ADA', name: 'ada (Acme)' },
    })
    assert.match(page.text, /ada \(Acme\)/)
    const { accessToken, refreshToken, tokenType, scopes } = await record()
    assert.equal(provider.isAlive(String(accessToken)), true)
    assert.equal(provider.isAlive(String(refreshToken)), true)
    assert.deepEqual([tokenType, scopes], ['Bearer', ['chat:write', 'channels:read', 'identify']])
  })

  it('knows who it is in an organisation without a workspace', async () => {
    await start({ isEnterprise: true, accessTokenSeconds: null })
    const { login } = await logIn()
    assert.deepEqual(login.account, { id: 'U0ADA', name: 'ada' })
    assert.equal((await record())['expiresAt'], null)
  })

  it('says which permission is missing', async () => {
    await start({ notGranted: ['channels:read'] })
    const { login, page } = await logIn()
    assert.deepEqual(login.missingScopes, ['channels:read'])
    assert.match(textOf(page.text), /oauth login slack --scopes chat:write,channels:read$/m)
  })

  it('revokes both tokens at a logout', async () => {
    await start()
    await logIn()
    const { accessToken, refreshToken } = await record()
    const logout = await logOut()
    assert.deepEqual(
      [logout.revokedAtProvider, logout.detail],
      [true, 'refresh token and access token revoked'],
    )
    assert.equal(provider.isAlive(String(accessToken)), false)
    assert.equal(provider.isAlive(String(refreshToken)), false)
    assert.deepEqual(await readdir(app.home.tokens), [])
  })

  it('says at a logout that the person had ended it before', async () => {
    await start({ accessTokenSeconds: null })
    await logIn()
    provider.revokeAll()
    const logout = await logOut()
    assert.deepEqual(
      [logout.revokedAtProvider, logout.detail],
      [true, 'access token had ended before'],
    )
  })

  it('logs in with the client secret where one is wanted', async () => {
    await start({ isSecretRequired: true })
    const { login } = await logIn({ clientSecret: provider.client.secret })
    assert.equal(login.status, 'authorized')
    const wrong = await logIn({ clientSecret: 'not-this-one' })
    assert.match(wrong.login.error?.message ?? '', /client id and secret \(bad_client_secret\)/)
  })

  it('sends the redirect URI that is registered, host and port', async () => {
    await start({}, { redirect_host: 'localhost' })
    const { login, started } = await logIn()
    assert.equal(new URL(started.redirectUri).hostname, 'localhost')
    assert.equal(login.status, 'authorized')
    provider.redirectUris = ['http://localhost:8080/callback']
    const other = await app.start({ provider: 'slack' })
    assert.match((await browse(other.authorizationUrl)).text, /did not match any configured URIs/)
  })
})
