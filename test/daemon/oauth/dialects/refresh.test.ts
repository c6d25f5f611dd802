import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, it } from 'mocha'
import type { AccessToken, TokenSummary } from '../../../../shared/api/api.ts'
import { browse } from '../../../support/desktop/browser.ts'
import { startGitHubProvider } from '../../../support/providers/github-provider.ts'
import { startGoogleProvider } from '../../../support/providers/google-provider.ts'
import { type OAuthApp, startOAuthApp } from '../../../support/providers/oauth-app.ts'
import { startSlackProvider } from '../../../support/providers/slack-provider.ts'

type Fake = Awaited<
  ReturnType<typeof startGitHubProvider | typeof startGoogleProvider | typeof startSlackProvider>
>

describe('refresh in the dialect of', () => {
  let provider: Fake
  let app: OAuthApp

  afterEach(async () => {
    await app.close()
    provider.close()
  })

  const startApp = async (secret: string, home?: OAuthApp['home']) => {
    app = await startOAuthApp({
      gateway: {
        providers: {
          mine: {
            ...provider.gatewayEntry,
            scopes: ['chat:write'],
            client_secret_env: 'MY_SECRET',
          },
        },
      },
      env: { MY_SECRET: secret },
      ...(home && { home }),
    })
  }
  const logIn = async () => {
    await startApp(provider.client.secret)
    const { authorizationUrl, loginId } = await app.start({ provider: 'mine' })
    await browse(authorizationUrl)
    assert.equal((await app.ended(loginId)).status, 'authorized')
  }
  /** A night later, with this secret in the environment: the access token has ended. */
  const wakeUp = async (secret = provider.client.secret) => {
    await app.close()
    const path = join(app.home.tokens, 'mine.json')
    const record = JSON.parse(await readFile(path, 'utf8')) as Record<string, string>
    const expiresAt = new Date(Date.now() - 1000).toISOString()
    await writeFile(path, JSON.stringify({ ...record, expiresAt }))
    await startApp(secret, app.home)
    return record
  }
  const access = () => app.send<AccessToken>('GET', '/oauth/tokens/mine/access')
  const status = async () => {
    const { body } = await app.send<{ tokens: TokenSummary[] }>('GET', '/oauth/tokens')
    return body.tokens[0]?.status
  }

  const accessTokenSeconds = 3600
  type Dialect = {
    readonly start: () => Promise<Fake>
    readonly keepsRefreshToken?: boolean
    readonly endsAccessToken?: boolean
    readonly wrongSecret: RegExp
  }
  const dialects: Record<string, Dialect> = {
    google: {
      start: () => startGoogleProvider({ accessTokenSeconds }),
      keepsRefreshToken: true,
      wrongSecret: /\(invalid_client: The provided client secret is invalid\)/,
    },
    github: {
      start: () => startGitHubProvider({ accessTokenSeconds }),
      endsAccessToken: true,
      wrongSecret:
        /\(incorrect_client_credentials: The client_id and.or client_secret passed are incorrect\)/,
    },
    slack: {
      start: () => startSlackProvider({ accessTokenSeconds }),
      wrongSecret: /\(bad_client_secret\)/,
    },
  }
  for (const [name, dialect] of Object.entries(dialects)) {
    it(`${name}: brings new tokens each time`, async () => {
      provider = await dialect.start()
      await logIn()
      const first = await wakeUp()
      const second = (await access()).body
      assert.notEqual(second.accessToken, first['accessToken'])
      assert.equal(provider.isAlive(second.accessToken), true)
      assert.equal(provider.isAlive(first['accessToken'] ?? ''), !dialect.endsAccessToken)
      assert.equal(
        provider.isAlive(first['refreshToken'] ?? ''),
        dialect.keepsRefreshToken ?? false,
      )
      assert.deepEqual([second.tokenType, second.scopes.includes('chat:write')], ['Bearer', true])
      await wakeUp()
      const third = (await access()).body
      assert.notEqual(third.accessToken, second.accessToken)
      assert.equal(provider.isAlive(third.accessToken), true)
    })

    it(`${name}: ends the login when the person has ended it`, async () => {
      provider = await dialect.start()
      await logIn()
      provider.revokeAll()
      await wakeUp()
      const { body } = await app.send('GET', '/oauth/tokens/mine/access')
      assert.equal(body.code, 'needs-login')
      assert.equal(await status(), 'needs-login')
    })

    it(`${name}: says that the secret is wrong, which ends no login`, async () => {
      provider = await dialect.start()
      await logIn()
      await wakeUp('not-this-one')
      const { body } = await app.send('GET', '/oauth/tokens/mine/access')
      assert.equal(body.code, 'provider-refused')
      assert.match(body.detail, /^mine does not accept the client id and secret/)
      assert.match(body.detail, dialect.wrongSecret)
      assert.match(body.hint ?? '', /set MY_SECRET in \.env$/)
      assert.equal(await status(), 'expired')
      await wakeUp()
      assert.equal(provider.isAlive((await access()).body.accessToken), true)
    })
  }

  it('slack: tries again later when asked to', async () => {
    provider = await startSlackProvider({ accessTokenSeconds })
    await logIn()
    await wakeUp()
    provider.fail({ path: '/api/oauth', status: 200, body: { ok: false, error: 'ratelimited' } })
    const { body } = await app.send('GET', '/oauth/tokens/mine/access')
    assert.deepEqual(
      [body.code, body.detail],
      ['provider-unavailable', 'mine answered ratelimited'],
    )
    assert.equal(await status(), 'expired')
  })
})
