import assert from 'node:assert/strict'
import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Login, StartedDeviceLogin } from '../../../../shared/api/api.ts'
import {
  type GitHubOptions,
  type GitHubProvider,
  startGitHubProvider,
} from '../../../support/providers/github-provider.ts'
import { type ManualTime, createManualTime } from '../../../support/manual-time.ts'
import { type OAuthApp, startOAuthApp } from '../../../support/providers/oauth-app.ts'
import { filesIn } from '../../../support/temporary.ts'

/** What GitHub answers with, with a page at this origin. */
const codeAnswer = (origin: string) => ({
  device_code: '3584d83530557fdd1f46af8289938c8ef79f9dc5',
  user_code: 'WDJB-MJHT',
  verification_uri: `${origin}/login/device`,
  expires_in: 900,
  interval: 5,
})

describe('device code at GitHub', () => {
  let github: GitHubProvider
  let app: OAuthApp
  let time: ManualTime
  let stop = async (): Promise<void> => undefined

  beforeEach(() => startAt())
  afterEach(() => stop())

  const startAt = async (options: GitHubOptions = {}, entry: object = {}) => {
    await stop()
    const [provider, clock] = [
      await startGitHubProvider({ hasDeviceFlow: true, ...options }),
      createManualTime(),
    ]
    const started = await startOAuthApp({
      wait: clock.wait,
      env: { SECRET: provider.client.secret },
      gateway: {
        providers: { github: { ...provider.gatewayEntry, scopes: ['repo', 'user'], ...entry } },
      },
    })
    ;[github, time, app] = [provider, clock, started]
    stop = async () => {
      await started.close()
      provider.close()
    }
  }
  const start = async (): Promise<StartedDeviceLogin> => {
    const { status, body } = await app.send<StartedDeviceLogin>('POST', '/oauth/start', {
      provider: 'github',
      device: true,
    })
    assert.equal(status, 201, JSON.stringify(body))
    return body
  }
  const polls = () => github.requests.filter(({ path }) => path === '/login/oauth/access_token')
  const says = (body: object, status = 200) =>
    github.fail({ path: '/login/oauth/access_token', status, body })
  const nothingIsKept = async () => {
    assert.deepEqual(await filesIn(app.home.tokens), [])
    assert.deepEqual(await readdir(app.home.clients), [])
  }
  /** Starts, lets the poll be answered with this, and gives how the login ended. */
  const endWith = async (body: object): Promise<Login> => {
    const { loginId } = await start()
    says(body)
    ;(await time.next()).pass()
    return app.ended(loginId)
  }

  it('waits as the provider asks, and ends with tokens and an account', async () => {
    const started = await start()
    assert.equal(started.verificationUrl, `${github.origin}/login/device`)
    assert.equal(started.userCode, 'WDJB-MJHT')
    const left = Date.parse(started.expiresAt) - Date.now()
    assert.ok(left > 590_000 && left <= 600_000, String(left))
    const first = await time.next()
    assert.equal(first.ms, 1000)
    first.pass()
    ;(await time.next()).pass()
    const login = await app.ended(started.loginId)
    assert.deepEqual(login.account, { id: '583231', name: 'octocat' })
    const text = await readFile(join(app.home.tokens, 'github.json'), 'utf8')
    assert.deepEqual((JSON.parse(text) as { scopes: string[] }).scopes, ['repo', 'user'])
    assert.equal(polls().length, 2)
  })

  it('sends no client secret, even where one is known', async () => {
    await startAt({ devicePolls: 0 }, { client_secret_env: 'SECRET' })
    const { loginId } = await start()
    ;(await time.next()).pass()
    assert.equal((await app.ended(loginId)).status, 'authorized')
    const sent = github.requests.filter(({ method }) => method === 'POST')
    assert.equal(sent.length, 2)
    for (const { form, headers } of sent) {
      assert.equal(form.get('client_id'), github.client.id)
      assert.deepEqual([form.has('client_secret'), headers.authorization], [false, undefined])
    }
  })

  it('slows down by 5 s each time it is asked to', async () => {
    await start()
    says({ error: 'slow_down', interval: 10 })
    ;(await time.next()).pass()
    const second = await time.next()
    assert.equal(second.ms, 6000)
    says({ error: 'slow_down' }, 400)
    second.pass()
    const third = await time.next()
    assert.equal(third.ms, 11_000)
    third.pass()
    assert.equal((await time.next()).ms, 11_000)
  })

  it('backs off while GitHub cannot be reached, and goes on when it can', async () => {
    const { loginId } = await start()
    const path = '/login/oauth/access_token'
    github.fail({ path, status: 503 })
    github.fail({ path, status: 429 })
    github.fail({ path, isAnswerLost: true })
    const waits = []
    for (let polled = 0; polled < 4; polled += 1) {
      const wait = await time.next()
      waits.push(wait.ms)
      wait.pass()
    }
    assert.deepEqual(waits, [1000, 2000, 4000, 8000])
    assert.equal((await app.ended(loginId)).status, 'authorized')
  })

  const ends: readonly (readonly [string, Login['status'], string, RegExp])[] = [
    ['access_denied', 'failed', 'login-denied', /access was not allowed at GitHub/],
    ['authorization_declined', 'failed', 'login-denied', /not allowed/],
    ['expired_token', 'expired', 'login-expired', /not entered at GitHub in time/],
    ['token_expired', 'expired', 'login-expired', /in time/],
    [
      'device_flow_disabled',
      'failed',
      'provider-refused',
      /does not allow this app to log in this way \(device_flow_disabled: …\)/,
    ],
    ['unsupported_grant_type', 'failed', 'provider-refused', /does not allow this app/],
    ['incorrect_device_code', 'failed', 'provider-refused', /does not accept the approval/],
    ['incorrect_client_credentials', 'failed', 'provider-refused', /does not know this client id/],
    ['something_new', 'failed', 'provider-refused', /something_new/],
  ]
  for (const [error, status, code, message] of ends)
    it(`ends as ${code} at ${error}`, async () => {
      const login = await endWith({ error, error_description: 'gho_secretsecret1' })
      assert.deepEqual([login.status, login.error?.code], [status, code])
      assert.match(login.error?.message ?? '', message)
      assert.deepEqual(
        app.events.map(({ what, code: told }) => [what, told]),
        [['login-failed', code]],
      )
      assert.equal(JSON.stringify([login, app.events, app.logLines]).includes('secret1'), false)
      assert.equal(time.waiting(), 0)
      await nothingIsKept()
    })

  const strange: readonly (readonly [string, unknown, number])[] = [
    ['a page', '<p>gho_secretsecret1', 200],
    ['a token of two lines', { access_token: 'gho_secretsecret1\nX', token_type: 'bearer' }, 200],
  ]
  for (const [what, body, status] of strange)
    it(`ends, and shows nothing of the answer, when it is ${what}`, async () => {
      const { loginId } = await start()
      github.fail({ path: '/login/oauth/access_token', status, body })
      ;(await time.next()).pass()
      const login = await app.ended(loginId)
      assert.deepEqual([login.status, login.error?.code], ['failed', 'provider-refused'])
      assert.equal(JSON.stringify([login, app.events, app.logLines]).includes('secret1'), false)
      await nothingIsKept()
    })

  it('revokes tokens that come after the login was cancelled, and keeps none', async () => {
    await startAt({ devicePolls: 0 })
    const { loginId } = await start()
    const held = github.hold('/login/oauth/access_token')
    ;(await time.next()).pass()
    await held.arrived
    assert.equal((await app.send('DELETE', `/oauth/logins/${loginId}`)).status, 204)
    assert.equal((await app.ended(loginId)).status, 'cancelled')
    held.release()
    // Which waits for the answer.
    await app.oauth.close()
    const last = github.requests.at(-1)
    assert.match(`${last?.method} ${last?.path}`, /^DELETE \/applications\/.*\/token$|revoke$/)
    await nothingIsKept()
    assert.deepEqual(app.events, [])
    assert.equal((await app.ended(loginId)).status, 'cancelled')
  })

  it('expires with the code where that is before the end of a login', async () => {
    github.fail({
      path: '/login/device/code',
      status: 200,
      body: { ...codeAnswer(github.origin), expires_in: 0.05 },
    })
    const { loginId } = await start()
    const login = await app.ended(loginId)
    assert.deepEqual([login.status, login.error?.code], ['expired', 'login-expired'])
    assert.equal(time.waiting(), 1)
    assert.equal(polls().length, 0)
  })

  const intervals: readonly (readonly [unknown, number])[] = [
    [undefined, 5000],
    [0, 5000],
    [-1, 5000],
    ['never', 5000],
    [0.01, 1000],
    ['7', 7000],
    [1e15, 60_000],
  ]
  for (const [interval, ms] of intervals)
    it(`waits ${ms} ms when the interval is ${String(interval)}`, async () => {
      const body = { ...codeAnswer(github.origin), interval }
      github.fail({ path: '/login/device/code', status: 200, body })
      await start()
      assert.equal((await time.next()).ms, ms)
    })

  it('is known of GitHub alone among the providers that are built in', async () => {
    for (const provider of ['google', 'slack']) {
      const request = { provider, clientId: 'me', device: true }
      const { status, body } = await app.send('POST', '/oauth/start', request)
      assert.deepEqual([status, body.code], [422, 'provider-misconfigured'], provider)
      assert.match(body.hint ?? '', /leave out --device.*device_authorization_endpoint/)
    }
  })
})
