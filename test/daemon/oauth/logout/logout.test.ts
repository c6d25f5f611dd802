import assert from 'node:assert/strict'
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { afterEach, describe, it } from 'mocha'
import { rememberClient } from '../../../../daemon/oauth/providers/client-store.ts'
import { getLastDay } from '../../../../daemon/oauth/logout/revocations.ts'
import { writeToken } from '../../../../daemon/oauth/tokens/token-store.ts'
import type { TokenRecord } from '../../../../daemon/oauth/tokens/token-record.ts'
import { type Logout, logoutSchema } from '../../../../shared/api/api.ts'
import { type Home, prepareHome } from '../../../../shared/home/home.ts'
import { type OAuthApp, startOAuthApp } from '../../../support/providers/oauth-app.ts'
import { sendJson, startScriptedProvider } from '../../../support/providers/scripted-provider.ts'
import { filesIn, temporaryHome } from '../../../support/temporary.ts'

const record: TokenRecord = {
  version: 1,
  provider: 'mine',
  accessToken: 'access-secret-1',
  refreshToken: 'refresh-secret-1',
  tokenType: 'Bearer',
  scopes: [],
  expiresAt: null,
  obtainedAt: '2026-01-01T00:00:00.000Z',
  account: { id: '1', name: 'ada@example.com' },
  clientId: 'me',
}

describe('logout', () => {
  let home: Home
  let app: OAuthApp
  let provider: Awaited<ReturnType<typeof startScriptedProvider>>

  afterEach(async () => {
    await app.close()
    provider.close()
  })

  const startWith = async (
    revoke: (response: ServerResponse) => void,
    entry: (origin: string) => object = () => ({}),
  ) => {
    provider = await startScriptedProvider(() => ({ '/revoke': revoke }))
    home = await temporaryHome()
    await prepareHome(home)
    await writeToken(home, record)
    const { origin } = provider
    app = await startOAuthApp({
      home,
      env: { MINE_SECRET: 'client-secret-1' },
      gateway: {
        providers: {
          mine: {
            authorization_endpoint: `${origin}/authorize`,
            token_endpoint: `${origin}/token`,
            revocation_endpoint: `${origin}/revoke`,
            client_id: 'me',
            client_secret_env: 'MINE_SECRET',
            ...entry(origin),
          },
        },
      },
    })
  }
  const logOut = async (query = '') =>
    app.send<Logout>('DELETE', `/oauth/tokens/mine${query}`).then(({ status, body }) => {
      assert.equal(status, 200, JSON.stringify(body))
      return logoutSchema.parse(body)
    })
  const tokenFiles = () => filesIn(home.tokens)
  const pendingFile = async () => {
    const [name = '', ...more] = await tokenFiles()
    assert.match(name, /^revoke\/mine-[0-9a-f]{16}\.json$/)
    assert.deepEqual(more, [])
    const path = join(home.tokens, name)
    return { path, text: await readFile(path, 'utf8') }
  }

  it('revokes both tokens and leaves nothing', async () => {
    await startWith((response) => sendJson(response, 200, {}))
    assert.deepEqual(await logOut(), {
      provider: 'mine',
      removed: true,
      revokedAtProvider: true,
      detail: 'refresh token and access token revoked',
    })
    assert.deepEqual(await tokenFiles(), [])
    const sent = provider.requests.map(({ body }) => new URLSearchParams(body).get('token'))
    assert.deepEqual(sent, ['refresh-secret-1', 'access-secret-1'])
    assert.deepEqual(await app.oauth.problems(), [])
  })

  it('says that it forgets a client without a login, also of a provider that is no longer configured', async () => {
    await startWith((response) => sendJson(response, 200, {}))
    await logOut()
    for (const name of ['mine', 'gone']) {
      await rememberClient(home, name, { clientId: 'me' })
      const forget = async () => {
        const { status, body } = await app.send('DELETE', `/oauth/tokens/${name}?forget=true`)
        assert.deepEqual([status, body.code], [404, 'not-logged-in'])
        return body.detail
      }
      assert.match(await forget(), /^you are not logged in to \w+; its OAuth client is forgotten$/)
      assert.match(await forget(), /^you are not logged in to \w+$/)
    }
    assert.deepEqual(await filesIn(home.clients), [])
  })

  const unreachable: [string, (response: ServerResponse) => void, RegExp][] = [
    ['answers 500', (response) => sendJson(response, 500, {}), /answered 500/],
    ['asks to come back later', (response) => sendJson(response, 429, {}), /answered 429/],
    ['breaks off', (response) => response.destroy(), /cannot be reached/],
  ]
  for (const [what, revoke, said] of unreachable)
    it(`keeps the revocation for later when the provider ${what}, and says until when`, async () => {
      await startWith(revoke)
      const { revokedAtProvider, detail } = await logOut('?forget=true')
      assert.equal(revokedAtProvider, false)
      assert.match(detail ?? '', said)
      assert.match(detail ?? '', new RegExp(`tried again until ${getLastDay(Date.now())}`))
      assert.match(detail ?? '', /in your account settings there$/)

      const { path, text } = await pendingFile()
      assert.equal((await stat(path)).mode & 0o777, 0o600)
      assert.equal((await stat(join(home.tokens, 'revoke'))).mode & 0o777, 0o700)
      const { tokens, client, extent, lastFailure } = JSON.parse(text) as Record<string, unknown>
      assert.deepEqual(tokens, { accessToken: 'access-secret-1', refreshToken: 'refresh-secret-1' })
      assert.deepEqual(client, { clientId: 'me', clientSecret: 'client-secret-1' })
      assert.equal(extent, 'grant')
      assert.match(String(lastFailure), said)

      const [problem, ...more] = await app.oauth.problems()
      assert.deepEqual([problem?.code, more], ['revocation-pending', []])
      assert.match(problem?.detail ?? '', said)
      assert.match(problem?.hint ?? '', /tried again until 20/)
      const told = JSON.stringify([app.events, app.logLines, problem, detail])
      assert.equal(/secret-1/.test(told), false)
      assert.equal(app.events[0]?.detail, detail)
      const again = await app.send('DELETE', '/oauth/tokens/mine')
      assert.equal(again.body.code, 'not-logged-in')
    })

  it('names the page where a person can revoke by hand', async () => {
    await startWith((response) => sendJson(response, 500, {}))
    await writeToken(home, { ...record, provider: 'github' })
    // Nobody answers at this port.
    const there = 'http://127.0.0.1:1'
    const other = await startOAuthApp({
      home,
      gateway: {
        providers: {
          github: {
            issuer: there,
            dialect: 'standard',
          },
        },
      },
    })
    const { body } = await other.send<Logout>('DELETE', '/oauth/tokens/github')
    await other.close()
    assert.equal(body.revokedAtProvider, false)
    assert.match(
      body.detail ?? '',
      /127\.0\.0\.1:1 cannot be reached \(ECONNREFUSED\); it is tried again until 20/,
    )
    assert.match(body.detail ?? '', /at https:\/\/github\.com\/settings\/applications$/)
    assert.match((await tokenFiles()).join(' '), /revoke\/github-/)
  })

  it('keeps the revocation when the metadata cannot be had', async () => {
    await startWith(
      (response) => sendJson(response, 200, {}),
      () => ({
        issuer: 'http://127.0.0.1:1',
        authorization_endpoint: undefined,
        token_endpoint: undefined,
      }),
    )
    assert.equal((await logOut()).revokedAtProvider, false)
    await pendingFile()
  })

  it('keeps nothing when the provider refuses or cannot revoke', async () => {
    await startWith((response) => sendJson(response, 400, { error: 'invalid_client' }))
    const { revokedAtProvider, detail } = await logOut()
    assert.equal(revokedAtProvider, false)
    assert.match(detail ?? '', /invalid_client; you can revoke the access in your account settings/)
    assert.deepEqual(await tokenFiles(), [])
    await writeToken(home, { ...record, provider: 'gone' })
    const { body } = await app.send<Logout>('DELETE', '/oauth/tokens/gone')
    assert.match(body.detail ?? '', /there is no provider gone; you can revoke/)
    assert.deepEqual(await tokenFiles(), [])
  })

  it('is kept for the next daemon when this one stops while the provider hangs', async () => {
    let asked: () => void = () => undefined
    const hanging = new Promise<void>((resolve) => (asked = resolve))
    await startWith(() => asked())
    const answer = logOut()
    await hanging
    await app.oauth.close()
    assert.equal((await answer).revokedAtProvider, false)
    await pendingFile()
  })

  it('removes a damaged token file and says that nothing could be revoked', async () => {
    await startWith((response) => sendJson(response, 200, {}))
    await writeFile(join(home.tokens, 'mine.json'), '{"accessToken":"acc', { mode: 0o600 })
    const { revokedAtProvider, detail } = await logOut()
    assert.equal(revokedAtProvider, false)
    assert.match(detail ?? '', /damaged, so that nothing could be revoked; you can revoke/)
    assert.deepEqual(await tokenFiles(), [])
    assert.deepEqual(provider.requests, [])
    assert.equal((await app.send('DELETE', '/oauth/tokens/mine')).body.code, 'not-logged-in')
  })

  it('never says removed of a file that is still there', async () => {
    await startWith((response) => sendJson(response, 500, {}))
    // A folder in the way: no user, not even root, can unlink it.
    await mkdir(join(home.tokens, 'mine.json.in-the-way'))
    const { status, body } = await app.send('DELETE', '/oauth/tokens/mine')
    assert.deepEqual([status, body.code], [500, 'home-unusable'])
    assert.equal(app.events.length, 0)
  })
})
