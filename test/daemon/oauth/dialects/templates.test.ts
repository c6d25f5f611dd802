import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, it } from 'mocha'
import { rememberClient } from '../../../../daemon/oauth/providers/client-store.ts'
import type { AccessToken, Login, Logout } from '../../../../shared/api/api.ts'
import { browse } from '../../../support/desktop/browser.ts'
import { type OAuthApp, startOAuthApp } from '../../../support/providers/oauth-app.ts'
import {
  type Speech,
  startTemplateProvider,
  type TemplateProvider,
} from '../../../support/providers/template-provider.ts'

const tenant = '72f988bf-86f1-41af-91ab-2d7cd011db47'
const bearer = { token_type: 'Bearer', expires_in: 3600 }
const noPkce = ['code_challenge', 'code_challenge_method']

/** The sources are in daemon/oauth/providers/templates.ts. */
const speeches: Readonly<Record<string, Speech>> = {
  microsoft: {
    scope: 'openid profile email offline_access User.Read',
    authorize: { code_challenge_method: 'S256' },
    redirectHost: 'localhost',
    client: 'none',
    body: 'form',
    tokenAnswer: { ...bearer, ext_expires_in: 3600, scope: 'User.Read profile openid email' },
    idClaims: (origin) => ({
      iss: `${origin}/${tenant}/v2.0`,
      sub: 'AAAAx',
      preferred_username: 'ada@example.com',
      tid: tenant,
    }),
    userinfo: { method: 'GET', answer: { sub: 'AAAAx' } },
  },
  gitlab: {
    scope: 'openid read_user read_api',
    authorize: { code_challenge_method: 'S256' },
    client: 'none',
    body: 'form',
    tokenAnswer: { ...bearer, expires_in: 7200, created_at: 1_760_000_000 },
    userinfo: { method: 'GET', answer: { sub: '42', nickname: 'ada', email: 'ada@example.com' } },
    revocation: 'standard',
  },
  linear: {
    scope: 'read,write',
    authorize: { code_challenge_method: 'S256' },
    client: 'post',
    body: 'form',
    tokenAnswer: { ...bearer, expires_in: 86_399, scope: 'read write' },
    userinfo: {
      method: 'POST',
      body: '{"query":"{ viewer { id name email } }"}',
      answer: { data: { viewer: { id: 'b1', name: 'Ada', email: 'ada@example.com' } } },
    },
    revocation: 'standard',
  },
  notion: {
    scope: undefined,
    authorize: { owner: 'user' },
    notAuthorize: noPkce,
    redirectHost: 'localhost',
    client: 'basic',
    body: 'json',
    onlyFields: ['grant_type', 'code', 'redirect_uri', 'refresh_token', 'token'],
    headers: { 'notion-version': '2022-06-28' },
    tokenAnswer: {
      token_type: 'bearer',
      bot_id: 'b3c9',
      workspace_name: 'Ada’s Notion',
      duplicated_template_id: null,
    },
    userinfo: {
      method: 'GET',
      answer: {
        object: 'user',
        id: 'the-bot',
        type: 'bot',
        bot: { owner: { type: 'user', user: { id: 'd40e', name: 'ada@example.com' } } },
      },
    },
    revocation: 'standard',
  },
  atlassian: {
    scope: 'read:me read:jira-work offline_access',
    authorize: { audience: 'api.atlassian.com', prompt: 'consent' },
    client: 'post',
    body: 'json',
    tokenAnswer: { ...bearer, scope: 'read:jira-work read:me offline_access' },
    userinfo: {
      method: 'GET',
      answer: { account_id: '5b1', name: 'Ada', email: 'ada@example.com' },
    },
  },
  discord: {
    scope: 'identify email',
    client: 'post',
    body: 'form',
    tokenAnswer: { ...bearer, expires_in: 604_800, scope: 'identify email' },
    userinfo: {
      method: 'GET',
      answer: { id: '80351', username: 'ada', global_name: null, email: 'ada@example.com' },
    },
    revocation: 'standard',
  },
  spotify: {
    scope: 'user-read-private user-read-email',
    authorize: { code_challenge_method: 'S256' },
    client: 'none',
    body: 'form',
    tokenAnswer: { ...bearer, scope: 'user-read-email user-read-private' },
    refreshBringsRefreshToken: false,
    userinfo: { method: 'GET', answer: { id: 'smedjan', display_name: 'ada@example.com' } },
  },
  dropbox: {
    scope: undefined,
    authorize: { token_access_type: 'offline', code_challenge_method: 'S256' },
    client: 'none',
    body: 'form',
    tokenAnswer: {
      ...bearer,
      token_type: 'bearer',
      expires_in: 14_400,
      scope: 'account_info.read files.metadata.read',
      account_id: 'dbid:AAH4',
    },
    refreshBringsRefreshToken: false,
    userinfo: {
      method: 'POST',
      answer: {
        account_id: 'dbid:AAH4',
        name: { display_name: 'Ada' },
        email: 'ada@example.com',
      },
    },
    revocation: 'bearer',
  },
}

describe('built-in provider', () => {
  let app: OAuthApp
  let provider: TemplateProvider

  afterEach(async () => {
    await app.close()
    provider.close()
  })

  const startAt = async (name: string, speech: Speech) => {
    provider = await startTemplateProvider(speech)
    const secret = speech.client === 'none' ? {} : { client_secret_env: 'MY_SECRET' }
    app = await startOAuthApp({
      env: { MY_SECRET: provider.client.secret },
      gateway: { providers: { [name]: { ...provider.gatewayEntry, ...secret } } },
    })
  }
  const logIn = async (name: string): Promise<Login> => {
    const { loginId, authorizationUrl } = await app.start({ provider: name })
    const page = await browse(authorizationUrl)
    assert.doesNotMatch(page.text, /^wrong: /)
    return app.ended(loginId)
  }
  const record = async (name: string) =>
    JSON.parse(await readFile(join(app.home.tokens, `${name}.json`), 'utf8')) as Record<
      string,
      string
    >
  const speechOf = (name: string): Speech => {
    const speech = speeches[name]
    assert.ok(speech)
    return speech
  }

  for (const [name, speech] of Object.entries(speeches))
    it(`${name} is logged in to, refreshed and logged out of as it documents`, async () => {
      await startAt(name, speech)
      const { status, account, error, missingScopes } = await logIn(name)
      assert.deepEqual(
        [status, account?.name, missingScopes],
        ['authorized', 'ada@example.com', undefined],
        JSON.stringify(error),
      )
      const first = await record(name)
      const expires = speech.tokenAnswer['expires_in']
      assert.equal(first['expiresAt'] === null, expires === undefined)

      if (expires !== undefined) {
        const { body } = await app.send<AccessToken>(
          'GET',
          `/oauth/tokens/${name}/access?min_validity=${Number(expires)}`,
        )
        const second = await record(name)
        assert.equal(body.accessToken, second['accessToken'])
        assert.notEqual(second['accessToken'], first['accessToken'])
        assert.equal(
          second['refreshToken'] === first['refreshToken'],
          speech.refreshBringsRefreshToken === false,
        )
        assert.deepEqual(second['scopes'], first['scopes'])
      }

      const last = await record(name)
      const { body } = await app.send<Logout>('DELETE', `/oauth/tokens/${name}`)
      assert.equal(body.revokedAtProvider, speech.revocation !== undefined, body.detail)
      const alive = [last['accessToken'], last['refreshToken']].map((token) =>
        provider.isAlive(token ?? ''),
      )
      assert.deepEqual(alive, Array(2).fill(speech.revocation === undefined))
    })

  it('discord is listed once its client is known, as others are by an entry in gateway.yaml', async () => {
    const listed = async () => (await app.oauth.providers()).map(({ provider: name }) => name)
    await startAt('gitlab', speechOf('gitlab'))
    assert.deepEqual(await listed(), ['github', 'gitlab', 'google', 'slack'])
    await rememberClient(app.home, 'discord', { clientId: 'me' })
    assert.deepEqual(await listed(), ['discord', 'github', 'gitlab', 'google', 'slack'])
  })

  it('spotify gets the secret of an app that has one by Basic', async () => {
    await startAt('spotify', { ...speechOf('spotify'), client: 'basic' })
    assert.equal((await logIn('spotify')).status, 'authorized')
  })

  it('microsoft must name the tenant of the user as the issuer of the id token, and the nonce', async () => {
    await startAt('microsoft', speechOf('microsoft'))
    for (const [claims, why] of [
      [{ iss: 'https://login.evil.example/v2.0' }, /JWT "iss" \(issuer\)/],
      [{ tid: '../..' }, /JWT "iss" \(issuer\)/],
      [{ nonce: 'another' }, /"nonce"/],
      [{ nonce: undefined }, /"nonce"/],
      [{ aud: 'another-app' }, /JWT "aud"/],
    ] as const) {
      provider.claims = claims
      const { status, error } = await logIn('microsoft')
      assert.equal(status, 'failed')
      assert.match(error?.message ?? '', why)
    }
  })
})
