import assert from 'node:assert/strict'
import { readFile, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { after, afterEach, before, describe, it } from 'mocha'
import {
  type Login,
  type StartedDeviceLogin,
  loginSchema,
  startedDeviceLoginSchema,
} from '../../../../shared/api/api.ts'
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '../../../support/providers/authorization-server.ts'
import { enterCode } from '../../../support/providers/enter-code.ts'
import { type ManualTime, createManualTime } from '../../../support/manual-time.ts'
import { type OAuthApp, startOAuthApp } from '../../../support/providers/oauth-app.ts'

describe('login by device code', () => {
  let server: AuthorizationServer
  let app: OAuthApp
  let time: ManualTime

  before(async () => {
    server = await startAuthorizationServer({ deviceFlow: true })
  })
  afterEach(async () => {
    server.answer = 'consent'
    await app.close()
  })
  after(() => server.close())

  const startApp = async (oauth: object = {}, more: object = {}) => {
    time = createManualTime()
    app = await startOAuthApp({
      ...more,
      wait: time.wait,
      gateway: {
        oauth: { callback_port: 0, ...oauth },
        providers: {
          mine: {
            issuer: server.issuer,
            scopes: ['openid', 'email', 'repo'],
            client_id: 'public',
          },
        },
      },
    })
  }
  const start = async (body: object = {}): Promise<StartedDeviceLogin> => {
    const answer = await app.send('POST', '/oauth/start', {
      provider: 'mine',
      device: true,
      ...body,
    })
    assert.equal(answer.status, 201, JSON.stringify(answer.body))
    return startedDeviceLoginSchema.parse(answer.body)
  }

  it('goes from a code typed at a real provider to tokens on the disk', async () => {
    await startApp()
    const before = server.tokenRequests.length
    const started = await start()
    assert.equal(started.verificationUrl, `${server.issuer}/device`)
    assert.match(started.userCode, /^[A-Z]{4}-[A-Z]{4}$/)
    assert.deepEqual(started.scopes, ['openid', 'email', 'repo'])

    const first = await time.next()
    assert.equal(first.ms, 5000)
    first.pass()
    const second = await time.next()
    assert.equal(second.ms, 5000)
    const pending = await app.send<Login>('GET', `/oauth/logins/${started.loginId}`)
    assert.equal(pending.body.status, 'pending')

    assert.match(await enterCode(started.verificationUrl, started.userCode), /close this page/)
    second.pass()
    assert.deepEqual(loginSchema.parse(await app.ended(started.loginId)), {
      loginId: started.loginId,
      provider: 'mine',
      status: 'authorized',
      account: { id: 'person-1', name: 'ada@example.com' },
    })
    const path = join(app.home.tokens, 'mine.json')
    assert.equal((await stat(path)).mode & 0o777, 0o600)
    const record = JSON.parse(await readFile(path, 'utf8')) as Record<string, string>
    assert.equal(await server.isAccessTokenAlive(record['accessToken'] ?? ''), true)
    assert.equal(await server.isRefreshTokenAlive(record['refreshToken'] ?? ''), true)
    assert.deepEqual(record['scopes'], ['openid', 'email', 'repo'])
    assert.deepEqual(await readdir(app.home.clients), ['mine.json'])
    assert.deepEqual(app.events, [
      { provider: 'mine', what: 'login', state: 'done', detail: 'logged in as ada@example.com' },
    ])

    const polls = server.tokenRequests.slice(before)
    assert.equal(polls.length, 2)
    const secrets = [record['accessToken'], polls[0]?.get('device_code'), started.userCode]
    for (const secret of secrets) {
      assert.ok(secret)
      assert.equal(
        app.logLines.some((line) => line.includes(secret)),
        false,
      )
    }
  })

  it('proves a confidential client with its secret', async () => {
    await startApp()
    const started = await start({ clientId: 'confidential', clientSecret: server.secret })
    await enterCode(started.verificationUrl, started.userCode)
    ;(await time.next()).pass()
    assert.equal((await app.ended(started.loginId)).status, 'authorized')
    assert.equal(server.tokenRequests.at(-1)?.get('client_secret'), server.secret)
  })

  it('starts none with a wrong secret, and says what to check', async () => {
    await startApp()
    const { status, body } = await app.send('POST', '/oauth/start', {
      provider: 'mine',
      device: true,
      clientId: 'confidential',
      clientSecret: 'a-wrong-secret',
    })
    assert.deepEqual([status, body.code], [502, 'provider-refused'])
    assert.match(
      `${body.detail} ${body.hint}`,
      /client id and secret \(invalid_client: client authentication failed\)/,
    )
  })

  it('takes no pasted address and opens no callback port', async () => {
    await startApp({ callback_port: 1 })
    const { loginId } = await start()
    const { status, body } = await app.send('POST', `/oauth/logins/${loginId}/redirect`, {
      url: 'http://127.0.0.1:1/callback?code=x&state=y',
    })
    assert.deepEqual([status, body.code], [400, 'callback-invalid'])
    assert.match(body.hint ?? '', /enter the code/)
    assert.equal((await app.send<Login>('GET', `/oauth/logins/${loginId}`)).body.status, 'pending')
  })

  it('runs together with a login in the browser', async () => {
    await startApp()
    const started = await start()
    const other = await app.start({ provider: 'mine' })
    await app.send('DELETE', `/oauth/logins/${other.loginId}`)
    await enterCode(started.verificationUrl, started.userCode)
    ;(await time.next()).pass()
    assert.equal((await app.ended(started.loginId)).status, 'authorized')
  })
})
