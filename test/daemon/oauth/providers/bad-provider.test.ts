import assert from 'node:assert/strict'
import { readFile, readdir } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { afterEach, describe, it } from 'mocha'
import type { Login, Logout, TokenSummary } from '../../../../shared/api/api.ts'
import { browse, visit } from '../../../support/desktop/browser.ts'
import { type OAuthApp, startOAuthApp } from '../../../support/providers/oauth-app.ts'
import { filesIn } from '../../../support/temporary.ts'
import {
  type Script,
  sendJson,
  startScriptedProvider,
} from '../../../support/providers/scripted-provider.ts'

describe('provider that misbehaves', () => {
  let app: OAuthApp
  let provider: Awaited<ReturnType<typeof startScriptedProvider>>

  afterEach(async () => {
    await app.close()
    provider.close()
  })

  const startWith = async (
    entry: (origin: string) => object,
    script: (origin: string) => Script = () => ({}),
  ) => {
    provider = await startScriptedProvider(script)
    app = await startOAuthApp({
      gateway: { providers: { mine: { client_id: 'me', ...entry(provider.origin) } } },
    })
  }
  const endpoints = (origin: string) => ({
    authorization_endpoint: `${origin}/authorize`,
    token_endpoint: `${origin}/token`,
  })
  const logIn = async (): Promise<Login> => {
    const { loginId, authorizationUrl, redirectUri } = await app.start({ provider: 'mine' })
    const state = new URL(authorizationUrl).searchParams.get('state') ?? ''
    await visit(`${redirectUri}?code=the-code&state=${state}&iss=${provider.origin}`)
    return app.ended(loginId)
  }
  const answers: [string, (response: ServerResponse) => void, string][] = [
    ['an error', (r) => sendJson(r, 400, { error: 'invalid_grant' }), 'provider-refused'],
    [
      'an error with a token in it',
      (r) => sendJson(r, 400, { error: 'gho_secretsecret1' }),
      'provider-refused',
    ],
    [
      'an error with status 200',
      (r) => sendJson(r, 200, { error: 'bad_verification_code' }),
      'provider-refused',
    ],
    [
      'no access token',
      (r) => sendJson(r, 200, { token_type: 'bearer', refresh_token: 'gho_secretsecret1' }),
      'provider-refused',
    ],
    [
      'no JSON',
      (r) => r.writeHead(200, { 'content-type': 'text/html' }).end('<p>'),
      'provider-refused',
    ],
    [
      'broken JSON',
      (r) =>
        r
          .writeHead(200, { 'content-type': 'application/json' })
          .end('{"access_token":"gho_secretsecret1'),
      'provider-refused',
    ],
    [
      'a redirect',
      (r) => r.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
      'provider-refused',
    ],
    [
      'a fault of its own',
      (r) => sendJson(r, 503, { error: 'gho_secretsecret1' }),
      'provider-unavailable',
    ],
    ['too many requests', (r) => sendJson(r, 429, {}), 'provider-unavailable'],
    [
      'two megabytes',
      (r) => r.writeHead(200, { 'content-type': 'application/json' }).end('x'.repeat(2 ** 21)),
      'provider-unavailable',
    ],
    [
      'an access token of two lines',
      (r) => sendJson(r, 200, { access_token: 'gho_secretsecret1\nX: y', token_type: 'bearer' }),
      'provider-refused',
    ],
    [
      'a refresh token that is not ASCII',
      (r) =>
        sendJson(r, 200, {
          access_token: 'access-1',
          refresh_token: 'gho_secretsecret1\u009b2J',
          token_type: 'bearer',
        }),
      'provider-refused',
    ],
    ['nothing', (r) => r.destroy(), 'provider-unavailable'],
  ]
  for (const [what, token, code] of answers)
    it(`fails with ${code} when the token endpoint answers with ${what}`, async () => {
      await startWith(endpoints, () => ({ '/token': token }))
      const login = await logIn()
      assert.deepEqual([login.status, login.error?.code], ['failed', code])
      assert.deepEqual(await readdir(app.home.tokens), [])
      const told = JSON.stringify([login, app.events, app.logLines])
      assert.equal(/secretsecret|the-code/.test(told), false)
    })

  it('takes comma scopes, a missing expiry and an id token it cannot check as they are', async () => {
    await startWith(endpoints, () => ({
      '/token': (response) =>
        sendJson(response, 200, {
          access_token: 'access-1',
          token_type: 'bearer',
          scope: 'repo,user  gist \u001b[2J \u202eresu',
          id_token: 'not.a.jwt',
        }),
    }))
    const login = await logIn()
    assert.deepEqual([login.status, login.account], ['authorized', null])
    const text = await readFile(join(app.home.tokens, 'mine.json'), 'utf8')
    const { scopes, expiresAt } = JSON.parse(text) as Record<string, unknown>
    assert.deepEqual([scopes, expiresAt], [['repo', 'user', 'gist'], null])

    const { body } = await app.send<Logout>('DELETE', '/oauth/tokens/mine')
    assert.equal(body.revokedAtProvider, false)
    assert.match(body.detail ?? '', /no standard way to revoke; you can revoke/)
    assert.deepEqual(await readdir(app.home.tokens), [])
  })

  it('says why a login failed, in words of the provider where it has some', async () => {
    const answers: [number, object, RegExp][] = [
      [200, { access_token: 'access-1', token_type: 'user' }, /token of the type "user", and only/],
      [
        400,
        { error: 'invalid_request', error_description: 'nonce is required.' },
        /nonce is required/,
      ],
      [418, { error: 'ERR 42', error_description: 'no tea' }, /error with status 418: no tea/],
      [200, { id_token: 'x.y.z', token_type: 'Bearer' }, /"access_token" property must be/],
    ]
    const answer = { status: 200, body: {} }
    await startWith(endpoints, () => ({
      '/token': (response) => sendJson(response, answer.status, answer.body),
    }))
    for (const [status, body, message] of answers) {
      Object.assign(answer, { status, body })
      const { error } = await logIn()
      assert.match(error?.message ?? '', message)
      assert.notEqual(error?.hint, 'doorward oauth login mine')
    }
  })

  it('shows what the provider says at the callback', async () => {
    await startWith(endpoints)
    const { loginId, authorizationUrl, redirectUri } = await app.start({ provider: 'mine' })
    const state = new URL(authorizationUrl).searchParams.get('state') ?? ''
    const says = encodeURIComponent('no such scope: <b>made-up</b>\n')
    const url = `${redirectUri}?error=invalid_scope&error_description=${says}&state=${state}`
    const page = await browse(url)
    assert.match(page.text, /invalid_scope: no such scope: &#60;b&#62;made-up&#60;\/b&#62;\)/)
    const { error } = await app.ended(loginId)
    assert.match(error?.message ?? '', /\(invalid_scope: no such scope: <b>made-up<\/b>\)$/)
  })

  // Mailchimp and VK send 0 for a token that never expires.
  it('takes a lifetime of 0 for none, unless there is a refresh token', async () => {
    const more = {}
    await startWith(endpoints, () => ({
      '/token': (response) =>
        sendJson(response, 200, { access_token: 'access-1', expires_in: 0, ...more }),
    }))
    const status = async () => {
      assert.equal((await logIn()).status, 'authorized')
      const { body } = await app.send<{ tokens: TokenSummary[] }>('GET', '/oauth/tokens')
      return [body.tokens[0]?.status, body.tokens[0]?.expiresAt === null]
    }
    assert.deepEqual(await status(), ['ok', true])
    Object.assign(more, { refresh_token: 'refresh-1' })
    assert.deepEqual(await status(), ['expired', false])
  })

  it('keeps no tokens that come after the login was cancelled', async () => {
    let asked: (response: ServerResponse) => void
    const exchange = new Promise<ServerResponse>((resolve) => (asked = resolve))
    await startWith(endpoints, () => ({ '/token': (response) => asked(response) }))
    const { loginId, authorizationUrl, redirectUri } = await app.start({ provider: 'mine' })
    const state = new URL(authorizationUrl).searchParams.get('state') ?? ''
    const page = visit(`${redirectUri}?code=the-code&state=${state}`)
    const response = await exchange
    assert.equal((await app.send('DELETE', `/oauth/logins/${loginId}`)).status, 204)
    sendJson(response, 200, { access_token: 'access-1', token_type: 'bearer' })
    assert.equal((await page).status, 303)
    assert.equal((await app.ended(loginId)).status, 'cancelled')
    await app.oauth.close()
    assert.deepEqual(await filesIn(app.home.tokens), [])
    assert.deepEqual(app.events, [])
  })

  it('asks userinfo, which need not know', async () => {
    const answer = { status: 200 }
    await startWith(
      (origin) => ({ ...endpoints(origin), userinfo_endpoint: `${origin}/me` }),
      () => ({
        '/token': (response) =>
          sendJson(response, 200, { access_token: 'access-1', token_type: 'bearer' }),
        '/me': (response) => sendJson(response, answer.status, { id: 7, login: 'octocat' }),
      }),
    )
    assert.deepEqual((await logIn()).account, { id: '7', name: 'octocat' })
    answer.status = 500
    const login = await logIn()
    assert.deepEqual([login.status, login.account], ['authorized', null])
  })
})
