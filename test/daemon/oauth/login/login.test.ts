import assert from 'node:assert/strict'
import { readFile, readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import {
  startedLoginSchema,
  type TokenSummary,
  tokenSummarySchema,
} from '../../../../shared/api/api.ts'
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '../../../support/providers/authorization-server.ts'
import { browse } from '../../../support/desktop/browser.ts'
import { type OAuthApp, startOAuthApp } from '../../../support/providers/oauth-app.ts'

describe('login', () => {
  let server: AuthorizationServer
  let app: OAuthApp

  before(async () => {
    server = await startAuthorizationServer()
  })
  beforeEach(async () => {
    app = await startOAuthApp({
      gateway: {
        providers: { mine: { issuer: server.issuer, scopes: ['openid', 'email', 'repo'] } },
      },
    })
  })
  afterEach(() => app.close())
  after(() => server.close())

  const logIn = async (body: object = { clientId: 'public' }) => {
    const started = await app.start({ provider: 'mine', ...body })
    const page = await browse(started.authorizationUrl)
    return { started, page, login: await app.ended(started.loginId) }
  }
  const tokenFile = async () => {
    const path = join(app.home.tokens, 'mine.json')
    const text = await readFile(path, 'utf8')
    return { path, record: JSON.parse(text) as Record<string, string> }
  }

  it('goes through real redirects to tokens on the disk', async () => {
    const { started, page, login } = await logIn()
    startedLoginSchema.parse(started)
    assert.equal(page.status, 200)
    assert.match(page.text, /Logged in to mine/)
    assert.match(page.text, /ada@example\.com/)
    assert.deepEqual(login, {
      loginId: started.loginId,
      provider: 'mine',
      status: 'authorized',
      account: { id: 'person-1', name: 'ada@example.com' },
    })

    const { path, record } = await tokenFile()
    assert.equal((await stat(path)).mode & 0o777, 0o600)
    assert.deepEqual(await readdir(app.home.tokens), ['mine.json'])
    assert.equal(await server.isAccessTokenAlive(record['accessToken'] ?? ''), true)
    assert.equal(await server.isRefreshTokenAlive(record['refreshToken'] ?? ''), true)
    assert.equal(record['clientId'], 'public')
    assert.deepEqual(record['scopes'], ['openid', 'email', 'repo'])

    const { body } = await app.send<{ tokens: TokenSummary[] }>('GET', '/oauth/tokens')
    const [token] = body.tokens
    tokenSummarySchema.parse(token)
    assert.equal(token?.status, 'ok')
    assert.equal(token?.refreshable, true)
    assert.equal(JSON.stringify(body).includes(record['accessToken'] ?? ''), false)
  })

  it('says who has logged in as an event', async () => {
    await logIn()
    assert.deepEqual(app.events, [
      { provider: 'mine', what: 'login', state: 'done', detail: 'logged in as ada@example.com' },
    ])
  })

  it('sends the verifier and, for a confidential client, the secret in the body', async () => {
    const { login } = await logIn({ clientId: 'confidential', clientSecret: server.secret })
    assert.equal(login.status, 'authorized')
    const sent = server.tokenRequests.at(-1)
    assert.equal(sent?.get('code_verifier')?.length, 43)
    assert.equal(sent?.get('client_secret'), server.secret)
  })

  it('remembers the client, so that the next login needs no flags', async () => {
    await logIn({ clientId: 'confidential', clientSecret: server.secret })
    const file = join(app.home.clients, 'mine.json')
    assert.equal((await stat(file)).mode & 0o777, 0o600)
    const { login } = await logIn({})
    assert.equal(login.status, 'authorized')
  })

  it('asks again for the scopes that were chosen for a login that is over, and else for the usual', async () => {
    const usual = ['openid', 'email', 'repo']
    const endIt = async () => {
      const { path, record } = await tokenFile()
      const ended = { at: new Date().toISOString(), cause: 'it was ended' }
      await writeFile(path, JSON.stringify({ ...record, ended }), { mode: 0o600 })
    }
    await logIn({ clientId: 'public', scopes: ['openid', 'user'] })
    await endIt()
    assert.deepEqual((await logIn({})).started.scopes, ['openid', 'user'])
    await endIt()
    assert.deepEqual((await logIn({})).started.scopes, ['openid', 'user'])
    // It goes on now: what is asked for is a choice anew.
    assert.deepEqual((await logIn({})).started.scopes, usual)
    await endIt()
    assert.deepEqual((await logIn({})).started.scopes, usual)
    // Of another client nobody knows what it may ask for.
    await logIn({ clientId: 'public', scopes: ['openid', 'user'] })
    await endIt()
    const other = { clientId: 'confidential', clientSecret: server.secret }
    assert.deepEqual((await logIn(other)).started.scopes, usual)
  })
})
