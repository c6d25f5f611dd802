import assert from 'node:assert/strict'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { after, afterEach, before, describe, it } from 'mocha'
import { writePending } from '../../../../daemon/oauth/logout/revocation-store.ts'
import { writeToken } from '../../../../daemon/oauth/tokens/token-store.ts'
import type { TokenRecord } from '../../../../daemon/oauth/tokens/token-record.ts'
import { type Login, loginSchema } from '../../../../shared/api.ts'
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '../../../support/authorization-server.ts'
import { type CookieJar, browse, visit } from '../../../support/browser.ts'
import { type OAuthApp, startOAuthApp } from '../../../support/oauth-app.ts'
import { sendJson, startScriptedProvider } from '../../../support/scripted-provider.ts'
import { filesIn } from '../../../support/temporary.ts'

const recordOf = async (app: OAuthApp): Promise<TokenRecord> =>
  JSON.parse(await readFile(join(app.home.tokens, 'mine.json'), 'utf8')) as TokenRecord

describe('a second login', () => {
  let server: AuthorizationServer
  let app: OAuthApp

  before(async () => {
    server = await startAuthorizationServer()
  })
  afterEach(() => app.close())
  after(() => server.close())

  const startApp = async () => {
    app = await startOAuthApp({
      gateway: {
        providers: {
          mine: { issuer: server.issuer, scopes: ['openid', 'email'], client_id: 'public' },
        },
      },
    })
  }
  const logIn = async (jar?: CookieJar) => {
    const { loginId, authorizationUrl } = await app.start({ provider: 'mine' })
    const page = await browse(authorizationUrl, undefined, jar)
    return { page, login: loginSchema.parse(await app.ended(loginId)) }
  }
  const isAlive = async ({ accessToken, refreshToken = '' }: TokenRecord) => [
    await server.isAccessTokenAlive(accessToken),
    await server.isRefreshTokenAlive(refreshToken),
  ]

  it('revokes the tokens of the first once its own are on the disk', async () => {
    await startApp()
    await logIn()
    const first = await recordOf(app)
    const { login, page } = await logIn()
    assert.deepEqual([login.status, login.replaced], ['authorized', undefined])
    assert.equal(page.text.includes('replaces'), false)
    assert.deepEqual(await isAlive(first), [false, false])
    assert.deepEqual(await isAlive(await recordOf(app)), [true, true])
    assert.deepEqual(await filesIn(app.home.tokens), ['mine.json'])
    assert.deepEqual(
      app.events.map(({ what }) => what),
      ['login', 'login'],
    )
  })

  it('says so when the provider ended it with the first, and the next does not fall into that again', async () => {
    await startApp()
    const jar: CookieJar = new Map()
    await logIn(jar)
    const { login, page } = await logIn(jar)
    assert.deepEqual([login.status, login.error?.code], ['failed', 'provider-refused'])
    assert.match(login.error?.message ?? '', /ended this login together with the one it replaced/)
    assert.match(page.text, /log in once more/)
    const ended = await recordOf(app)
    assert.deepEqual(await isAlive(ended), [false, false])
    assert.ok(ended.ended)
    assert.equal(app.events.at(-1)?.what, 'login-failed')
    const [problem] = await app.oauth.problems()
    assert.equal(problem?.code, 'needs-login')

    // All later ones work, in the same browser too: what is one grant is left alone.
    for (let time = 0; time < 2; time += 1) {
      assert.equal((await logIn(jar)).login.status, 'authorized')
      assert.deepEqual(await isAlive(await recordOf(app)), [true, true])
    }
    const { body } = await app.send<{ revokedAtProvider: boolean }>('DELETE', '/oauth/tokens/mine')
    assert.equal(body.revokedAtProvider, true)
    assert.deepEqual(await filesIn(app.home.tokens), [])
  })

  it('is not harmed by a revocation that still waits', async () => {
    await startApp()
    await logIn()
    const first = await recordOf(app)
    const { accessToken, refreshToken } = first
    await rm(join(app.home.tokens, 'mine.json'))
    await writePending(app.home, 'mine-0123456789abcdef.json', {
      version: 1,
      provider: 'mine',
      tokens: { accessToken, refreshToken },
      client: { clientId: 'public' },
      account: first.account,
      extent: 'grant',
      since: new Date().toISOString(),
      attempts: 1,
    })
    assert.equal((await logIn()).login.status, 'authorized')
    assert.deepEqual(await isAlive(first), [false, false])
    assert.deepEqual(await isAlive(await recordOf(app)), [true, true])
    assert.deepEqual(await filesIn(app.home.tokens), ['mine.json'])
    assert.deepEqual(
      app.events.map(({ what }) => what),
      ['login', 'revoked', 'login'],
    )
  })

  it('asks nothing for a first one that is known dead', async () => {
    await startApp()
    await logIn()
    const first = await recordOf(app)
    const at = new Date().toISOString()
    await writeToken(app.home, { ...first, expiresAt: at, ended: { at, cause: 'revoked' } })
    assert.equal((await logIn()).login.status, 'authorized')
    assert.deepEqual(await isAlive(first), [true, true])
  })
})

describe('a login whose tokens', () => {
  let app: OAuthApp
  let provider: Awaited<ReturnType<typeof startScriptedProvider>>
  let token: (response: ServerResponse) => void
  let revoke: (response: ServerResponse) => void
  let person: string

  afterEach(async () => {
    await app.close()
    provider.close()
  })

  const startWith = async () => {
    let serial = 0
    person = 'ada'
    token = (response) => {
      serial += 1
      sendJson(response, 200, {
        access_token: `access-secret-${serial}`,
        refresh_token: `refresh-secret-${serial}`,
        token_type: 'bearer',
      })
    }
    revoke = (response) => sendJson(response, 200, {})
    provider = await startScriptedProvider(() => ({
      '/token': (response) => token(response),
      '/revoke': (response) => revoke(response),
      '/me': (response) => sendJson(response, 200, { id: person, name: `<${person}>` }),
    }))
    const { origin } = provider
    app = await startOAuthApp({
      gateway: {
        providers: {
          mine: {
            authorization_endpoint: `${origin}/authorize`,
            token_endpoint: `${origin}/token`,
            revocation_endpoint: `${origin}/revoke`,
            userinfo_endpoint: `${origin}/me`,
            client_id: 'me',
          },
        },
      },
    })
  }
  const begin = async () => {
    const { loginId, authorizationUrl, redirectUri } = await app.start({ provider: 'mine' })
    const state = new URL(authorizationUrl).searchParams.get('state') ?? ''
    return { loginId, callback: `${redirectUri}?code=the-code&state=${state}` }
  }
  const logIn = async () => {
    const { loginId, callback } = await begin()
    const page = await browse(callback)
    return { page, login: await app.ended(loginId) }
  }
  const revoked = () =>
    provider.requests
      .filter(({ path }) => path === '/revoke')
      .map(({ body }) => new URLSearchParams(body).get('token'))

  it('replace those of another account says whose', async () => {
    await startWith()
    await logIn()
    person = 'bob'
    const { page, login } = await logIn()
    assert.deepEqual(loginSchema.parse(login).replaced, { id: 'ada', name: '<ada>' })
    assert.match(page.text, /This replaces the login of &#60;ada&#62;\./)
    assert.equal(app.events.at(-1)?.detail, 'logged in as <bob>; this replaces the login of <ada>')
    assert.deepEqual(revoked(), ['refresh-secret-1', 'access-secret-1'])
  })

  it('replace others is good although the provider cannot be asked to revoke those', async () => {
    await startWith()
    await logIn()
    revoke = (response) => sendJson(response, 503, {})
    assert.equal((await logIn()).login.status, 'authorized')
    const [, pending = ''] = await filesIn(app.home.tokens)
    assert.match(pending, /^revoke\/mine-/)
    const text = await readFile(join(app.home.tokens, pending), 'utf8')
    const { tokens, extent, attempts } = JSON.parse(text) as Record<string, unknown>
    assert.deepEqual([extent, attempts], ['tokens', 1])
    assert.deepEqual(tokens, { accessToken: 'access-secret-1', refreshToken: 'refresh-secret-1' })
    assert.equal((await app.oauth.problems())[0]?.code, 'revocation-pending')
  })

  it('replace others does not wait for long until those are revoked', async function () {
    // Five seconds is what it waits.
    this.slow(8000)
    await startWith()
    await logIn()
    revoke = () => undefined
    assert.equal((await logIn()).login.status, 'authorized')
    assert.match((await app.oauth.problems())[0]?.detail ?? '', /did not answer in time/)
    assert.equal((await filesIn(app.home.tokens)).length, 2)
  })

  it('replace others is good although the provider refuses to revoke those', async () => {
    await startWith()
    await logIn()
    revoke = (response) => sendJson(response, 400, { error: 'invalid_client' })
    assert.equal((await logIn()).login.status, 'authorized')
    assert.deepEqual(await filesIn(app.home.tokens), ['mine.json'])
    assert.equal(app.events.length, 2)
  })

  it('are the same again revokes nothing, and no more than is not shared', async () => {
    await startWith()
    const same = { access_token: 'access-secret-1', token_type: 'bearer' }
    token = (response) => sendJson(response, 200, { ...same, refresh_token: 'refresh-secret-1' })
    await logIn()
    await logIn()
    assert.deepEqual(revoked(), [])
    token = (response) =>
      sendJson(response, 200, {
        ...same,
        access_token: 'access-secret-2',
        refresh_token: 'refresh-secret-1',
      })
    assert.equal((await logIn()).login.status, 'authorized')
    assert.deepEqual(revoked(), ['access-secret-1'])
  })

  it('come after it was cancelled are revoked, and who cancelled does not wait for them', async () => {
    await startWith()
    let asked: (response: ServerResponse) => void = () => undefined
    const exchange = new Promise<ServerResponse>((resolve) => (asked = resolve))
    const answer = token
    token = (response) => asked(response)
    const { loginId, callback } = await begin()
    const page = visit(callback)
    const response = await exchange
    assert.equal((await app.send('DELETE', `/oauth/logins/${loginId}`)).status, 204)
    assert.equal((await page).status, 303)
    let confirmed: () => void = () => undefined
    const revocation = new Promise<void>((resolve) => (confirmed = resolve))
    revoke = (response) => {
      sendJson(response, 200, {})
      if (revoked().length === 2) confirmed()
    }
    answer(response)
    await revocation
    assert.deepEqual(revoked(), ['refresh-secret-1', 'access-secret-1'])
    await app.oauth.close()
    assert.deepEqual(await filesIn(app.home.tokens), [])
    assert.deepEqual(app.events, [])
    assert.equal(
      (await app.send<Login>('GET', `/oauth/logins/${loginId}`)).body.status,
      'cancelled',
    )
  })

  it('come while the daemon stops are revoked, or kept for the next', async () => {
    await startWith()
    let asked: (response: ServerResponse) => void = () => undefined
    const exchange = new Promise<ServerResponse>((resolve) => (asked = resolve))
    const answer = token
    token = (response) => asked(response)
    revoke = (response) => sendJson(response, 503, {})
    const { callback } = await begin()
    const page = visit(callback)
    const response = await exchange
    const closed = app.oauth.close()
    await page
    answer(response)
    await closed
    const [pending = '', ...more] = await filesIn(app.home.tokens)
    assert.match(pending, /^revoke\/mine-/)
    assert.deepEqual(more, [])
  })

  it('cannot be saved fails with the real reason, and keeps them to be revoked', async () => {
    await startWith()
    // A folder in the place of the file: not even root can write it, and nobody knows what it was.
    await mkdir(join(app.home.tokens, 'mine.json'))
    await writeFile(join(app.home.tokens, 'mine.json', 'x'), '')
    const { login } = await logIn()
    assert.deepEqual([login.status, login.error?.code], ['failed', 'home-unusable'])
    await app.oauth.close()
    const [left, pending = ''] = await filesIn(app.home.tokens)
    assert.equal(left, 'mine.json/x')
    assert.match(await readFile(join(app.home.tokens, pending), 'utf8'), /access-secret-1/)
  })

  it('cannot be saved are revoked, also when they cannot be kept beside', async () => {
    await startWith()
    await rm(app.home.tokens, { recursive: true })
    const { login } = await logIn()
    assert.equal(login.error?.code, 'home-unusable')
    await app.oauth.close()
    assert.deepEqual(revoked(), ['refresh-secret-1', 'access-secret-1'])
    assert.match(app.logLines.join('\n'), /kept in memory alone/)
    assert.equal(/secret-1/.test(app.logLines.join('\n')), false)
  })
})
