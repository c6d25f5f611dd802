import assert from 'node:assert/strict'
import { chmod, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, it } from 'mocha'
import {
  type AccessToken,
  type DefaultAccount,
  type Login,
  loginSchema,
  type Logout,
  type TokenSummary,
  tokenSummarySchema,
} from '../../../shared/api/api.ts'
import { browse } from '../../support/desktop/browser.ts'
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '../../support/providers/authorization-server.ts'
import {
  type GitHubProvider,
  startGitHubProvider,
} from '../../support/providers/github-provider.ts'
import { startGoogleProvider } from '../../support/providers/google-provider.ts'
import { type OAuthApp, startOAuthApp } from '../../support/providers/oauth-app.ts'
import { filesIn } from '../../support/temporary.ts'

describe('accounts of one provider', () => {
  let app: OAuthApp
  const closing: (() => unknown)[] = []

  afterEach(async () => {
    await app.close()
    for (const close of closing.splice(0)) await close()
  })

  const logIn = async (provider: string, more: object = {}): Promise<Login> => {
    const started = await app.start({ provider, ...more })
    await browse(started.authorizationUrl)
    const login = loginSchema.parse(await app.ended(started.loginId))
    assert.equal(login.status, 'authorized', JSON.stringify(login))
    return login
  }
  const access = async (login: string, query = '') =>
    app.send<AccessToken & { code?: string; detail?: string; hint?: string }>(
      'GET',
      `/oauth/tokens/${login}/access${query}`,
    )
  const choose = async (provider: string, account: string | null) =>
    app.send<DefaultAccount & { code?: string }>('POST', '/oauth/default', { provider, account })
  const list = async () => {
    const { body } = await app.send<{ tokens: TokenSummary[] }>('GET', '/oauth/tokens')
    return body.tokens.map((token) => tokenSummarySchema.parse(token))
  }
  const read = async (path: string) =>
    JSON.parse(await readFile(join(app.home.root, path), 'utf8')) as Record<string, string>

  const startGitHub = async (): Promise<GitHubProvider> => {
    const github = await startGitHubProvider()
    closing.push(() => github.close())
    app = await startOAuthApp({
      gateway: { providers: { github: github.gatewayEntry } },
    })
    return github
  }
  const asPrivateAndWork = async () => {
    const github = await startGitHub()
    const { id: clientId, secret: clientSecret } = github.client
    await logIn('github', { clientId, clientSecret })
    github.person = { id: 7, login: 'ann-at-work' }
    await logIn('github@work')
    return github
  }

  it('have a token file each, and share the client of their provider', async () => {
    const github = await asPrivateAndWork()
    assert.deepEqual(await filesIn(app.home.tokens), ['github.json', 'github@work.json'])
    assert.deepEqual(await filesIn(app.home.clients), ['github.json'])
    assert.equal((await stat(join(app.home.tokens, 'github@work.json'))).mode & 0o777, 0o600)
    const both = await Promise.all([
      access('github'),
      access('github@work'),
      access('github%40work'),
    ])
    assert.deepEqual(
      both.map(({ body }) => body.provider),
      ['github', 'github@work', 'github@work'],
    )
    const [own, work] = both.map(({ body }) => body.accessToken)
    assert.notEqual(own, work)
    assert.deepEqual(
      [own, work].map((token) => github.isAlive(token ?? '')),
      [true, true],
    )
    assert.deepEqual(
      (await list()).map(({ provider, account, default: isDefault }) => [
        provider,
        account?.name,
        isDefault,
      ]),
      [
        ['github', 'octocat', true],
        ['github@work', 'ann-at-work', undefined],
      ],
    )
    const providers = await app.oauth.providers()
    assert.deepEqual(
      providers.map(({ provider, status, clientKnown }) => [provider, status, clientKnown]),
      [
        ['github', 'ok', true],
        ['github@work', 'ok', true],
        ['google', 'not-logged-in', false],
        ['slack', 'not-logged-in', false],
      ],
    )
  })

  it('are offered a choice by the page of the provider, since the browser may be another one', async () => {
    const github = await asPrivateAndWork()
    const asked = github.requests.filter(({ path }) => path.endsWith('/authorize'))
    assert.deepEqual(
      asked.map(({ query }) => query.get('prompt')),
      [null, 'select_account'],
    )
  })

  it('are told apart: a second name for the same account is reported', async () => {
    const github = await startGitHub()
    const { id: clientId, secret: clientSecret } = github.client
    assert.equal((await logIn('github', { clientId, clientSecret })).sameAccountAs, undefined)
    const { authorizationUrl, loginId } = await app.start({ provider: 'github@work' })
    assert.match((await browse(authorizationUrl)).text, /github is a login of the same account\. /)
    assert.equal((await app.ended(loginId)).sameAccountAs, 'github')
    const event = await app.untilEvent(({ provider }) => provider === 'github@work')
    assert.equal(event.detail, 'logged in as octocat; github is the same account')
  })

  it('stay logged in when another name of the same account logs out', async () => {
    const github = await startGitHub()
    const { id: clientId, secret: clientSecret } = github.client
    await logIn('github', { clientId, clientSecret })
    await logIn('github@work')
    const { body } = await app.send<Logout>('DELETE', '/oauth/tokens/github@work')
    assert.deepEqual([body.provider, body.revokedAtProvider], ['github@work', true])
    assert.equal(github.isAlive((await access('github')).body.accessToken), true)
  })

  it('stay logged in at Google, which would end all logins of that account', async () => {
    const google = await startGoogleProvider()
    closing.push(() => google.close())
    app = await startOAuthApp({ gateway: { providers: { google: google.gatewayEntry } } })
    const { id: clientId, secret: clientSecret } = google.client
    const scopes = ['https://www.googleapis.com/auth/gmail.modify']
    await logIn('google', { clientId, clientSecret, scopes })
    await logIn('google@same', { scopes })
    google.person = 'bob@example.com'
    await logIn('google@bob', { scopes })
    const same = await app.send<Logout>('DELETE', '/oauth/tokens/google@same')
    assert.equal(same.body.revokedAtProvider, false)
    assert.match(same.body.detail ?? '', /^not revoked: at Google that would end google too;/)
    const bob = await app.send<Logout>('DELETE', '/oauth/tokens/google@bob')
    assert.equal(bob.body.revokedAtProvider, true)
    assert.equal(google.isAlive((await access('google')).body.accessToken), true)
  })

  const startMine = async (): Promise<AuthorizationServer> => {
    const server = await startAuthorizationServer()
    closing.push(() => server.close())
    const scopes = ['openid', 'email']
    app = await startOAuthApp({
      gateway: { providers: { mine: { issuer: server.issuer, scopes } } },
    })
    return server
  }

  it('end alone: of two, the one that was revoked needs a login and the other is renewed', async () => {
    const server = await startMine()
    await logIn('mine', { clientId: server.clients.public })
    await logIn('mine@work')
    const { refreshToken = '' } = await read('tokens/mine@work.json')
    await server.revokeGrantOf(refreshToken)
    const work = await access('mine@work', '?min_validity=86400')
    assert.deepEqual([work.status, work.body.code], [409, 'needs-login'])
    assert.match(work.body.hint ?? '', /^doorward oauth login mine@work$/)
    const before = (await access('mine')).body.accessToken
    const own = await access('mine', '?min_validity=86400')
    assert.equal(own.status, 200)
    assert.notEqual(own.body.accessToken, before)
    assert.deepEqual(
      (await list()).map(({ provider, status }) => [provider, status]),
      [
        ['mine', 'ok'],
        ['mine@work', 'needs-login'],
      ],
    )
    assert.deepEqual(
      (await app.oauth.problems()).map(({ code, hint }) => [code, hint]),
      [['needs-login', 'doorward oauth login mine@work']],
    )
  })

  it('may have a client of their own, and keep it when the provider gets another one', async () => {
    const server = await startMine()
    const confidential = {
      clientId: server.clients.confidential,
      clientSecret: server.secret,
    }
    await logIn('mine@first', confidential)
    assert.deepEqual(await filesIn(app.home.clients), ['mine.json'])
    await logIn('mine@own', { clientId: server.clients.public })
    assert.deepEqual(await filesIn(app.home.clients), ['mine.json', 'mine@own.json'])
    await logIn('mine', { clientId: server.clients.public })
    assert.deepEqual(await read('clients/mine@first.json'), {
      ...confidential,
      server: { issuer: server.issuer },
    })
    assert.equal((await access('mine@first', '?min_validity=86400')).status, 200)
    await app.send('DELETE', '/oauth/tokens/mine?forget=true')
    assert.deepEqual(await filesIn(app.home.clients), ['mine@first.json', 'mine@own.json'])
    assert.equal((await access('mine@own', '?min_validity=86400')).status, 200)
  })

  it('take the name of the provider by choice', async () => {
    await asPrivateAndWork()
    const chosen = await choose('github', 'work')
    assert.deepEqual(chosen.body, { provider: 'github', default: 'github@work' })
    assert.equal((await stat(app.home.accounts)).mode & 0o777, 0o600)
    assert.equal((await access('github')).body.provider, 'github@work')
    assert.equal((await access('github', '?exact=true')).body.provider, 'github')
    assert.deepEqual(
      (await list()).map((token) => token.default),
      [undefined, true],
    )
    assert.equal((await choose('github', 'none')).body.code, 'not-logged-in')
    assert.equal((await choose('nothing', 'work')).body.code, 'provider-unknown')
    assert.equal((await choose('github@work', 'work')).body.code, 'request-invalid')
    assert.equal((await choose('github', '../x')).body.code, 'request-invalid')
    await choose('github', null)
    assert.equal((await access('github')).body.provider, 'github')
  })

  it('are never exchanged in silence for one that was not chosen', async () => {
    await asPrivateAndWork()
    await choose('github', 'work')
    await app.send('DELETE', '/oauth/tokens/github@work')
    const { body } = await access('github')
    assert.equal(
      body.detail,
      'you are not logged in to github@work, which github means; you are logged in to github',
    )
    assert.equal(
      body.hint,
      'doorward oauth login github@work, or doorward oauth default github --unnamed',
    )
    await writeFile(app.home.accounts, '{"version":1,"defaults":{"github":"../x"}}', {
      mode: 0o600,
    })
    assert.equal((await access('github')).body.code, 'home-unusable')
    assert.equal((await access('github', '?exact=true')).status, 200)
    assert.match((await app.oauth.problems())[0]?.detail ?? '', /accounts\.json is damaged$/)
    await chmod(app.home.accounts, 0o644)
    assert.equal((await access('github')).body.code, 'home-insecure')
  })

  it('are named where only they have a login', async () => {
    const github = await startGitHub()
    const { id: clientId, secret: clientSecret } = github.client
    await logIn('github@work', { clientId, clientSecret })
    const { body } = await access('github')
    assert.equal(body.detail, 'you are not logged in to github; you are logged in to github@work')
    assert.equal(body.hint, 'doorward oauth login github, or doorward oauth default github work')
  })

  it('have names that are safe as file names, and nothing else', async () => {
    await startGitHub()
    const bad = ['github@', 'github@Work', 'github@a@b', 'github@../x', 'github@a.json', '@work']
    for (const provider of [...bad, `github@${'a'.repeat(35)}`, 'github@-a', 'github@a_b']) {
      const started = await app.send('POST', '/oauth/start', { provider })
      assert.deepEqual([started.status, started.body.code], [404, 'provider-unknown'], provider)
      for (const [method, rest] of [
        ['GET', '/access'],
        ['DELETE', ''],
      ] as const) {
        const { body } = await app.send(
          method,
          `/oauth/tokens/${encodeURIComponent(provider)}${rest}`,
        )
        assert.equal(body.code, 'provider-unknown', provider)
      }
    }
    const { body } = await app.send('POST', '/oauth/start', { provider: 'nothing@work' })
    assert.equal(body.code, 'provider-unknown')
  })
})
