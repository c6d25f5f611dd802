import assert from 'node:assert/strict'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { afterEach, describe, it } from 'mocha'
import { type Login, loginSchema } from '../../../../shared/api/api.ts'
import { browse, visit } from '../../../support/desktop/browser.ts'
import { type OAuthApp, startOAuthApp } from '../../../support/providers/oauth-app.ts'
import { sendJson, startScriptedProvider } from '../../../support/providers/scripted-provider.ts'
import { filesIn } from '../../../support/temporary.ts'

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
    assert.deepEqual(revoked(), [])
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

  it('cannot be saved are revoked, also when the revocation cannot be written', async () => {
    await startWith()
    await rm(app.home.tokens, { recursive: true })
    const { login } = await logIn()
    assert.equal(login.error?.code, 'home-unusable')
    await app.oauth.close()
    assert.deepEqual(revoked(), ['refresh-secret-1', 'access-secret-1'])
    assert.match(app.logLines.join('\n'), /cannot be written to the disk/)
    assert.equal(/secret-1/.test(app.logLines.join('\n')), false)
  })
})
