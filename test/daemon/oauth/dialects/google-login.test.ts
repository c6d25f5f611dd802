import assert from 'node:assert/strict'
import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, it } from 'mocha'
import {
  loginSchema,
  type Logout,
  type TokenSummary,
  tokenSummarySchema,
} from '../../../../shared/api/api.ts'
import { browse, textOf } from '../../../support/desktop/browser.ts'
import {
  type GoogleOptions,
  type GoogleProvider,
  startGoogleProvider,
} from '../../../support/providers/google-provider.ts'
import { type OAuthApp, startOAuthApp } from '../../../support/providers/oauth-app.ts'

const mail = 'https://www.googleapis.com/auth/gmail.modify'
const calendar = 'https://www.googleapis.com/auth/calendar'

describe('login to a Google', () => {
  let provider: GoogleProvider
  let app: OAuthApp

  afterEach(async () => {
    await app.close()
    provider.close()
  })

  const start = async (options: GoogleOptions = {}, entry: object = {}) => {
    provider = await startGoogleProvider(options)
    app = await startOAuthApp({
      gateway: {
        providers: {
          google: { ...provider.gatewayEntry, client_secret_env: 'GOOGLE_SECRET', ...entry },
        },
      },
      env: { GOOGLE_SECRET: provider.client.secret },
    })
  }
  const logIn = async (body: object = {}) => {
    const started = await app.start({ provider: 'google', ...body })
    const page = await browse(started.authorizationUrl)
    return { started, page, login: loginSchema.parse(await app.ended(started.loginId)) }
  }
  const record = async () =>
    JSON.parse(await readFile(join(app.home.tokens, 'google.json'), 'utf8')) as Record<
      string,
      string
    >

  it('asks for offline access and the default scopes, and knows the mailbox', async () => {
    await start()
    const { started, page, login } = await logIn()
    const asked = new URL(started.authorizationUrl).searchParams
    assert.deepEqual(
      ['access_type', 'prompt', 'scope'].map((name) => asked.get(name)),
      ['offline', 'consent', `${mail} ${calendar}`],
    )
    const account = { id: 'ada@example.com', name: 'ada@example.com' }
    assert.deepEqual([login.status, login.account], ['authorized', account])
    assert.equal('missingScopes' in login, false)
    assert.match(page.text, /ada@example\.com/)
    assert.equal(provider.isAlive((await record())['refreshToken'] ?? ''), true)
  })

  it('knows the account by its primary calendar where the mailbox is not allowed', async () => {
    await start()
    const { login } = await logIn({ scopes: [calendar] })
    assert.deepEqual(login.account, { id: 'ada@example.com', name: 'ada@example.com' })
    const asked = provider.requests.map(({ path }) => path)
    assert.ok(asked.includes('/gmail/v1/users/me/profile'))
  })

  it('takes the long names of email and profile for what was asked', async () => {
    await start()
    const { login } = await logIn({ scopes: ['openid', 'email', 'profile'] })
    assert.equal(login.missingScopes, undefined)
    assert.deepEqual(login.account, { id: 'sub-of-ada@example.com', name: 'ada@example.com' })
  })

  it('says which permission the person did not give, and how to ask for it', async () => {
    await start()
    provider.notGranted = [calendar]
    const { page, login } = await logIn()
    assert.deepEqual(login.missingScopes, [calendar])
    assert.match(page.text, /Logged in to Google/)
    assert.match(page.text, /One permission was not granted/)
    const command = `doorward oauth login google --scopes ${mail},${calendar}`
    assert.ok(textOf(page.text).includes(command))
    const { body } = await app.send<{ tokens: TokenSummary[] }>('GET', '/oauth/tokens')
    const token = tokenSummarySchema.parse(body.tokens[0])
    assert.deepEqual([token.scopes, token.missingScopes], [[mail], [calendar]])
  })

  it('ends all tokens at a logout', async () => {
    await start()
    await logIn()
    const { accessToken = '', refreshToken = '' } = await record()
    const { body } = await app.send<Logout>('DELETE', '/oauth/tokens/google')
    assert.deepEqual(
      [body.revokedAtProvider, body.detail],
      [true, 'refresh token and access token revoked'],
    )
    assert.deepEqual(
      [provider.isAlive(accessToken), provider.isAlive(refreshToken)],
      [false, false],
    )
    assert.deepEqual(await readdir(app.home.tokens), [])
  })

  it('says at a logout that the person had ended it before', async () => {
    await start()
    await logIn()
    provider.revokeAll()
    const { body } = await app.send<Logout>('DELETE', '/oauth/tokens/google')
    assert.deepEqual(
      [body.revokedAtProvider, body.detail],
      [true, 'refresh token and access token had ended before'],
    )
  })

  it('names the missing client secret and where to find it', async () => {
    await start({}, { client_secret_env: undefined })
    const { login, page } = await logIn()
    assert.deepEqual(login.error, {
      code: 'provider-refused',
      message:
        'Google does not accept the client id without a secret (invalid_request: client_secret is missing)',
      hint: 'compare the client id with the settings of the app at https://console.cloud.google.com/apis/credentials and copy its secret, then: doorward oauth login google --client-secret-stdin',
    })
    assert.match(page.text, /console\.cloud\.google\.com/)
    assert.match(textOf(page.text), /doorward oauth login google --client-secret-stdin$/m)
  })

  it('is one without a refresh token too', async () => {
    await start({ hasRefreshToken: false })
    assert.equal((await logIn()).login.status, 'authorized')
    const { body } = await app.send<Logout>('DELETE', '/oauth/tokens/google')
    assert.deepEqual([body.revokedAtProvider, body.detail], [true, 'access token revoked'])
  })
})
