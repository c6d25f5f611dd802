import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdir, rm } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import { after, afterEach, before, describe, it } from 'mocha'
import { type Login, loginSchema } from '../../../../shared/api/api.ts'
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '../../../support/providers/authorization-server.ts'
import { findListeningProcess } from '../../../../shared/client/discovery.ts'
import { approve, browse, visit, textOf } from '../../../support/desktop/browser.ts'
import { type OAuthApp, startOAuthApp } from '../../../support/providers/oauth-app.ts'

describe('end of a login', () => {
  let server: AuthorizationServer
  let app: OAuthApp

  before(async () => {
    server = await startAuthorizationServer()
  })
  afterEach(async () => {
    server.answer = 'consent'
    await app.close()
  })
  after(() => server.close())

  const startApp = async (oauth: object = {}, provider: object = {}, more: object = {}) => {
    app = await startOAuthApp({
      ...more,
      gateway: {
        oauth: { callback_port: 0, ...oauth },
        providers: {
          mine: { issuer: server.issuer, scopes: ['openid'], client_id: 'public', ...provider },
        },
      },
    })
  }

  it('fails as denied when the person refuses, and keeps nothing', async () => {
    await startApp()
    server.answer = 'deny'
    const { loginId, authorizationUrl } = await app.start({ provider: 'mine' })
    const page = await browse(authorizationUrl)
    assert.match(page.text, /You did not allow access/)
    const login = loginSchema.parse(await app.ended(loginId))
    assert.deepEqual([login.status, login.error?.code], ['failed', 'login-denied'])
    assert.deepEqual(await readdir(app.home.tokens), [])
    assert.deepEqual(await readdir(app.home.clients), [])
    assert.equal(app.events[0]?.code, 'login-denied')
  })

  it('expires after a while and closes the port', async () => {
    await startApp({}, {}, { loginTimeoutMs: 150 })
    const { loginId, authorizationUrl } = await app.start({ provider: 'mine' })
    const callback = await approve(authorizationUrl)
    const login = await app.ended(loginId)
    assert.deepEqual([login.status, login.error?.code], ['expired', 'login-expired'])
    await assert.rejects(visit(callback), { code: 'ECONNREFUSED' })
  })

  it('is cancelled, which wakes who waits and closes the port', async () => {
    await startApp()
    const { loginId, authorizationUrl } = await app.start({ provider: 'mine' })
    const callback = await approve(authorizationUrl)
    const waiting = app.ended(loginId)
    assert.equal((await app.send('DELETE', `/oauth/logins/${loginId}`)).status, 204)
    assert.deepEqual((await waiting).error, {
      code: 'login-cancelled',
      message: 'the login was cancelled',
      hint: 'doorward oauth login mine',
    })
    await assert.rejects(visit(callback), { code: 'ECONNREFUSED' })
    assert.equal((await app.send('DELETE', `/oauth/logins/${loginId}`)).status, 204)
    const paste = await app.send('POST', `/oauth/logins/${loginId}/redirect`, { url: callback })
    assert.deepEqual([paste.status, paste.body.code], [409, 'login-not-pending'])
  })

  it('answers a wait without an end with what is', async () => {
    await startApp()
    const { loginId } = await app.start({ provider: 'mine' })
    const { body } = await app.send<Login>('GET', `/oauth/logins/${loginId}?wait=1`)
    assert.deepEqual(body, { loginId, provider: 'mine', status: 'pending' })
    const bad = await app.send('GET', `/oauth/logins/${loginId}?wait=-1`)
    assert.deepEqual([bad.status, bad.body.code], [400, 'request-invalid'])
  })

  it('says when the callback port is taken, before any address is handed out', async () => {
    const squatter = createServer().listen(0, '127.0.0.1')
    await once(squatter, 'listening')
    const { port } = squatter.address() as AddressInfo
    await startApp({ callback_port: port })
    const { status, body } = await app.send('POST', '/oauth/start', { provider: 'mine' })
    assert.deepEqual([status, body.code], [409, 'callback-port-in-use'])
    assert.match(body.hint ?? '', /oauth\.callback_port/)
    // Which program has it is known where the system tells it: not on Windows.
    const holder = await findListeningProcess(port)
    assert.ok(holder === undefined || body.detail?.includes(`${holder.name}, pid ${process.pid}`))
    squatter.close()
    await once(squatter, 'close')
    const started = await app.start({ provider: 'mine' })
    assert.equal(started.redirectUri, `http://127.0.0.1:${port}/callback`)
  })

  it('takes both loopback addresses for the redirect host localhost', async () => {
    await startApp({}, { redirect_host: 'localhost' })
    const { loginId, authorizationUrl, redirectUri } = await app.start({ provider: 'mine' })
    const { host, port } = new URL(redirectUri)
    assert.equal(host, `localhost:${port}`)
    for (const address of hasIpv6 ? ['127.0.0.1', '[::1]'] : ['127.0.0.1']) {
      const page = await visit(`http://${address}:${port}/callback`, { headers: { host } })
      assert.equal(page.status, 400)
    }
    const page = await browse(authorizationUrl)
    assert.equal(page.status, 200)
    assert.equal((await app.ended(loginId)).status, 'authorized')
  })

  it('starts no login for localhost while another program holds the IPv6 side', async () => {
    const squatter = createServer().listen(0, hasIpv6 ? '::1' : '127.0.0.1')
    await once(squatter, 'listening')
    const { port } = squatter.address() as AddressInfo
    await startApp({ callback_port: port }, { redirect_host: 'localhost' })
    const { body } = await app.send('POST', '/oauth/start', { provider: 'mine' })
    assert.equal(body.code, 'callback-port-in-use')
    if (hasIpv6)
      await assert.rejects(visit(`http://127.0.0.1:${port}/callback`), { code: 'ECONNREFUSED' })
    squatter.close()
  })

  it('finishes with the pasted redirect URL', async () => {
    await startApp()
    const { loginId, authorizationUrl } = await app.start({ provider: 'mine' })
    const url = await approve(authorizationUrl)
    const other = await app.start({ provider: 'mine' })
    const wrong: [string, string][] = [
      ['not a url', 'callback-invalid'],
      [url.replace('/callback', '/callback/'), 'callback-invalid'],
      [url.replace('127.0.0.1', 'localhost'), 'callback-invalid'],
      [url.replace('http:', 'https:'), 'callback-invalid'],
      [url.replace(/state=[^&]+/, 'state=x'), 'callback-invalid'],
      [url.replace(/iss=[^&]+/, 'iss=x'), 'issuer-mismatch'],
      [new URL(authorizationUrl).href, 'callback-invalid'],
    ]
    for (const [text, code] of wrong) {
      const answer = await app.send('POST', `/oauth/logins/${loginId}/redirect`, { url: text })
      assert.deepEqual([answer.status, answer.body.code], [400, code], text)
    }
    const stolen = await app.send('POST', `/oauth/logins/${other.loginId}/redirect`, { url })
    assert.equal(stolen.body.code, 'callback-invalid')
    const done = await app.send<Login>('POST', `/oauth/logins/${loginId}/redirect`, { url })
    assert.deepEqual([done.status, done.body.status], [200, 'authorized'])
    assert.equal(
      (await app.send<Login>('GET', `/oauth/logins/${other.loginId}`)).body.status,
      'pending',
    )
  })

  it('fails when the client secret is wrong and says what to check', async () => {
    await startApp()
    const { loginId, authorizationUrl } = await app.start({
      provider: 'mine',
      clientId: 'confidential',
      clientSecret: 'a-wrong-secret',
    })
    const page = await browse(authorizationUrl)
    assert.equal(page.status, 400)
    assert.match(page.text, /Compare both with the settings of the app/)
    const again = 'doorward oauth login mine --client-id confidential --client-secret-stdin'
    assert.ok(textOf(page.text).includes(`${again}\n`))
    const { error } = await app.ended(loginId)
    assert.equal(error?.code, 'provider-refused')
    assert.match(error?.message ?? '', /invalid_client/)
    assert.ok(error?.hint?.endsWith(`, then: ${again}`), error?.hint)
  })

  it('names in its hint a client that nothing remembers yet, and no other', async () => {
    await startApp({}, { client_id: undefined })
    const hintOf = async (client: object): Promise<string | undefined> => {
      server.answer = 'deny'
      const { loginId, authorizationUrl } = await app.start({ provider: 'mine', ...client })
      await browse(authorizationUrl)
      return (await app.ended(loginId)).error?.hint
    }
    assert.equal(
      await hintOf({ clientId: 'confidential', clientSecret: server.secret }),
      'doorward oauth login mine --client-id confidential --client-secret-stdin',
    )
    assert.equal(
      await hintOf({ clientId: 'public' }),
      'doorward oauth login mine --client-id public',
    )
    server.answer = 'consent'
    const { authorizationUrl } = await app.start({ provider: 'mine', clientId: 'public' })
    await browse(authorizationUrl)
    assert.equal(await hintOf({}), 'doorward oauth login mine')
    assert.equal(await hintOf({ clientId: 'public' }), 'doorward oauth login mine')
  })

  it('fails, and says no success, when the tokens cannot be written', async () => {
    await startApp()
    for (const folder of [app.home.tokens, app.home.clients]) {
      await rm(folder, { recursive: true })
      const { loginId, authorizationUrl } = await app.start({ provider: 'mine' })
      const page = await browse(authorizationUrl)
      assert.match(page.text, /Not logged in/)
      assert.equal((await app.ended(loginId)).error?.code, 'home-unusable')
    }
  })

  it('ends with the daemon', async () => {
    await startApp()
    const { loginId, redirectUri } = await app.start({ provider: 'mine' })
    const waiting = app.ended(loginId)
    await app.send('GET', `/oauth/logins/${loginId}`)
    await app.oauth.close()
    assert.equal((await waiting).status, 'cancelled')
    await assert.rejects(visit(redirectUri), { code: 'ECONNREFUSED' })
    const { status, body } = await app.send('POST', '/oauth/start', { provider: 'mine' })
    assert.deepEqual([status, body.code], [503, 'stopping'])
  })

  it('knows no login of another id', async () => {
    await startApp()
    for (const [method, path, sent] of [
      ['GET', '/oauth/logins/none', undefined],
      ['DELETE', '/oauth/logins/none', undefined],
      ['POST', '/oauth/logins/none/redirect', { url: 'x' }],
    ] as const) {
      const { status, body } = await app.send(method, path, sent)
      assert.deepEqual([status, body.code], [404, 'login-not-found'], path)
    }
  })
})

const hasIpv6 = Object.values(networkInterfaces()).some((addresses) =>
  addresses?.some(({ address }) => address === '::1'),
)
