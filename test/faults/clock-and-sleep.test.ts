import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { AccessToken, EventRecord, Login, StartedLogin, Status } from '../../shared/api/api.ts'
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '../support/providers/authorization-server.ts'
import { untilFinished } from '../support/daemon/daemon.ts'
import { isLong } from '../support/daemon/fault-run.ts'
import { send } from '../support/servers/http.ts'
import { type ProbedDaemon, startProbedDaemon } from '../support/daemon/probed-daemon.ts'
import { githubHeaders } from '../support/servers/sign.ts'
import { storeLogin } from '../support/providers/stored-login.ts'
import { temporaryHome } from '../support/temporary.ts'

const dayMs = 24 * 60 * 60_000
const secret = 'a-secret-of-the-sender'

describe('a daemon whose machine', function () {
  this.timeout(isLong ? 15 * 60_000 : 60_000)
  let server: AuthorizationServer
  let daemon: ProbedDaemon

  beforeEach(async () => {
    server = await startAuthorizationServer()
    const home = await temporaryHome({
      gateway: `oauth: { callback_port: 0 }\nproviders: { ada: { issuer: '${server.issuer}', client_id: public } }\n`,
      agents: `agents:\n  echo: { kind: echo }\n  waits: { kind: command, command: [sh, -c, 'sleep 1; cat'], timeout: 1h }\n`,
      webhooks: `webhooks:
  - { path: /a, agent: echo, prompt_template: x, secret_env: SENDER, rate_limit: 1000/min }
  - { path: /waits, agent: waits, prompt_template: x, secret_env: SENDER }
`,
      env: `SENDER=${secret}\n`,
    })
    await storeLogin(home, 'ada', await server.mint(), 1000)
    // Its clock is looked at more often than a person could wait for.
    daemon = await startProbedDaemon({ home, pace: 30 })
  })
  afterEach(async () => {
    daemon?.process.kill('SIGCONT')
    await daemon?.stop()
    await server?.close()
  })

  const post = async (path: string, delivery: string) => {
    const headers = githubHeaders('{}', secret, { 'x-github-delivery': delivery })
    const { status, json } = await send(`${daemon.url}${path}`, { headers, body: '{}' })
    assert.equal(status, 202)
    return json() as { readonly id: string; readonly status: string }
  }
  const stored = async () =>
    JSON.parse(await readFile(join(daemon.home.tokens, 'ada.json'), 'utf8')) as Record<
      string,
      string | undefined
    >
  /** Waits until the token is another one, without asking for it. */
  const renewedFrom = async (before: string | undefined): Promise<string> => {
    for (;;) {
      const { accessToken, ended } = await stored()
      assert.equal(ended, undefined)
      if (accessToken !== undefined && accessToken !== before) return accessToken
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  const checkWell = async (accessToken: string): Promise<void> => {
    assert.equal(await server.isAccessTokenAlive(accessToken), true)
    const given = await daemon.client.get<AccessToken>('/oauth/tokens/ada/access')
    assert.equal(await server.isAccessTokenAlive(given.accessToken), true)
    const { problems, tokens } = await daemon.client.get<Status>('/status')
    assert.deepEqual([problems, tokens.map(({ status }) => status)], [[], ['ok']])
  }

  for (const [what, byMs] of [
    ['on by a day', dayMs],
    ['back by a day', -dayMs],
  ] as const)
    it(`sets its clock ${what} refreshes its tokens, and recognises duplicates`, async () => {
      const { accessToken } = await stored()
      const waiting = await post('/waits', 'waits')
      const first = await post('/a', 'one')
      const login = await daemon.client.post<StartedLogin>('/oauth/start', { provider: 'ada' })
      await daemon.shiftClock(byMs)

      await checkWell(await renewedFrom(accessToken))
      assert.deepEqual(await post('/a', 'one').then(({ status }) => status), 'duplicate')
      const next = await post('/a', 'two')
      assert.equal((await untilFinished(daemon, next.id)).state, 'done')
      assert.equal((await untilFinished(daemon, first.id)).state, 'done')
      // An agent's time is no time of the clock.
      assert.equal((await untilFinished(daemon, waiting.id)).state, 'done')
      const { status } = await daemon.client.get<Login>(`/oauth/logins/${login.loginId}`)
      assert.match(status, byMs > 0 ? /^(pending|expired)$/ : /^pending$/)
      const { events } = await daemon.client.get<{ events: EventRecord[] }>('/events')
      assert.deepEqual(
        events.filter(({ state }) => state === 'failed' || state === 'dropped'),
        [],
      )

      // Set right again, as a clock is that was wrong.
      const { accessToken: now } = await stored()
      await daemon.shiftClock(-byMs)
      if (byMs > 0) await renewedFrom(now)
      const given = await daemon.client.get<AccessToken>('/oauth/tokens/ada/access')
      assert.equal(await server.isAccessTokenAlive(given.accessToken), true)
    })

  it('sleeps runs what arrived during that, and refreshes what expired', async () => {
    const { accessToken } = await stored()
    const running = await post('/waits', 'waits')
    const kept = await daemon.client.open('/events/stream')
    daemon.process.kill('SIGSTOP')
    // Senders wait, or give up; a sleeping machine would not even take their connection.
    const waiting = Array.from({ length: 20 }, (_, index) => post('/a', `asleep-${index}`))
    const start = () => daemon.client.post<StartedLogin>('/oauth/start', { provider: 'ada' })
    // Programs of this machine sleep with it; here they do not, and give up after a while.
    const login = start().catch(() => undefined)
    await new Promise((resolve) => setTimeout(resolve, isLong ? 3 * 60_000 : 2500))
    daemon.process.kill('SIGCONT')
    await daemon.shiftClock(dayMs)

    for (const { id } of await Promise.all(waiting))
      assert.equal((await untilFinished(daemon, id)).state, 'done')
    assert.equal((await untilFinished(daemon, running.id)).state, 'done')
    assert.equal(((await login) ?? (await start())).provider, 'ada')
    await checkWell(await renewedFrom(accessToken))
    assert.equal(kept.destroyed, false)
    kept.destroy()
  })
})
