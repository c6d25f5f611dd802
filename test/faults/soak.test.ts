import assert from 'node:assert/strict'
import { appendFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { EventRecord, StartedLogin, Status } from '../../shared/api/api.ts'
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '../support/providers/authorization-server.ts'
import { faultSeed, isLong, randomMoments } from '../support/daemon/fault-run.ts'
import { send } from '../support/servers/http.ts'
import {
  type Census,
  type ProbedDaemon,
  startProbedDaemon,
} from '../support/daemon/probed-daemon.ts'
import { githubHeaders } from '../support/servers/sign.ts'
import { storeLogin } from '../support/providers/stored-login.ts'
import { type TargetServer, startTargetServer } from '../support/servers/target-server.ts'
import { temporaryHome } from '../support/temporary.ts'

/*
 * What happens on a day, again and again, with the daemon's time running faster: events of all sorts, tokens
 * that end, logins that are given up, configurations that change, clients that come and go. After a warm-up a
 * second half of it must cost no more memory than the first.
 */

const pace = isLong ? 360 : 60
/** What is done in a half: in the long form as much as fits into 12 hours of its time. */
const halfMs = isLong ? (12 * 60 * 60_000) / pace : 0
const stepsOfHalf = isLong ? Number.POSITIVE_INFINITY : 80
const secret = 'a-secret-of-the-sender'

describe('a daemon that runs for a long time', function () {
  this.timeout(isLong ? 30 * 60_000 : 120_000)
  const { below } = randomMoments()
  let server: AuthorizationServer
  let elsewhere: TargetServer
  let daemon: ProbedDaemon
  let idle: Census

  before(async () => {
    server = await startAuthorizationServer()
    elsewhere = await startTargetServer()
    const home = await temporaryHome({
      gateway: `oauth: { callback_port: 0 }
events: { keep: 50 }
providers: { ada: { issuer: '${server.issuer}', client_id: public } }
targets: { http: { there: { url: '${elsewhere.origin}/t', secret_env: TARGET } } }
`,
      agents: `agents:
  echo: { kind: echo }
  cat: { kind: command, command: [cat], concurrency: 2 }
  remote: { kind: http, url: '${elsewhere.origin}/a', concurrency: 4 }
`,
      webhooks: ['echo', 'cat', 'remote']
        .map(
          (name) =>
            `  - { path: /${name}, agent: ${name}, prompt_template: '{{event}}', secret_env: SENDER, deliver_to: ['http:there', 'file:answers.md'], filter: { kind: wanted } }\n`,
        )
        .join('')
        .replace(/^/, 'webhooks:\n'),
      env: `SENDER=${secret}\nTARGET=whsec_${Buffer.alloc(32, 7).toString('base64')}\n`,
    })
    await storeLogin(home, 'ada', await server.mint())
    daemon = await startProbedDaemon({ home, pace })
  })
  after(async () => {
    await daemon?.stop()
    elsewhere?.close()
    await server?.close()
  })

  const post = async (path: string, key: string, kind: string): Promise<void> => {
    const body = JSON.stringify({ kind, text: 'x'.repeat(below(20_000)) })
    await send(`${daemon.url}${path}`, { headers: githubHeaders(body, key), body })
  }
  const get = (path: string) => daemon.client.get(path).catch(() => undefined)
  const follow = async (): Promise<void> => {
    const control = new AbortController()
    const stream = await daemon.client.open('/events/stream', {
      signal: control.signal,
      headers: below(2) === 0 ? { 'last-event-id': '0-1' } : {},
    })
    stream.once('error', () => undefined)
    stream.resume()
    await post('/echo', secret, 'wanted')
    control.abort()
  }
  const login = async (): Promise<void> => {
    const { loginId } = await daemon.client.post<StartedLogin>('/oauth/start', { provider: 'ada' })
    if (below(2) === 0) await daemon.client.delete(`/oauth/logins/${loginId}`)
  }
  const configure = async (): Promise<void> => {
    await appendFile(join(daemon.home.config, 'gateway.yaml'), `# ${below(1000)}\n`)
    await daemon.client.post('/daemon/reload')
  }
  const retry = async (): Promise<void> => {
    const { events } = await daemon.client.get<{ events: EventRecord[] }>('/events?limit=5')
    for (const { id } of events) await daemon.client.post(`/events/${id}/retry`).catch(() => 0)
  }
  const acts: readonly (() => Promise<unknown>)[] = [
    async () => {
      for (let more = 0; more < 10; more += 1) await post('/echo', secret, 'wanted')
    },
    ...['/echo', '/cat', '/remote', '/remote'].map((path) => () => post(path, secret, 'wanted')),
    () => post('/echo', 'another secret', 'wanted'),
    () => post('/echo', secret, 'unwanted'),
    () => get('/oauth/tokens/ada/access'),
    () => get('/oauth/tokens/ada/access?min_validity=3590'),
    () => get('/status'),
    () => get('/metrics'),
    follow,
    login,
    configure,
    retry,
  ]
  /** One half of what happens; then what it has begun is waited for. */
  const half = async (): Promise<Census> => {
    const end = performance.now() + halfMs
    let steps = 0
    let failed = 0
    const worker = async (): Promise<void> => {
      for (steps += 1; steps < stepsOfHalf; steps += 1) {
        if (isLong && performance.now() > end) return
        // On a machine that is busy, time that runs faster ends a request now and then.
        await acts[below(acts.length)]?.().catch(() => (failed += 1))
      }
    }
    await Promise.all([worker(), worker(), worker(), worker()])
    assert.ok(failed < steps / 4, `${failed} of ${steps} requests failed`)
    for (;;) {
      const { queue } = await daemon.client.get<Status>('/status')
      if (queue.running + queue.waiting === 0) break
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    // Logins that were given up are over, and connections that nobody uses closed.
    const patience = performance.now() + (isLong ? 15_000 : 4000)
    for (;;) {
      const census = await daemon.census()
      const { servers, sockets } = census
      const isQuiet = servers <= idle.servers && sockets <= idle.sockets + 10
      if (isQuiet || performance.now() > patience) return census
      await new Promise((resolve) => setTimeout(resolve, 250))
    }
  }

  it(`needs no more memory for the second half than for the first (seed ${faultSeed})`, async () => {
    idle = await daemon.census()
    const warm = await half()
    const first = await half()
    const second = await half()
    const shown = [warm, first, second].map(
      ({ heapUsed, rss, sockets, timers, signals, servers, incoming, responses }) =>
        `heap ${(heapUsed / 2 ** 20).toFixed(1)} MB, rss ${(rss / 2 ** 20).toFixed(0)} MB, ${JSON.stringify({ sockets, timers, signals, servers, incoming, responses })}`,
    )
    if (isLong) console.log(shown.join('\n'))
    const grown = second.heapUsed - first.heapUsed
    assert.ok(grown < 2.5 * 2 ** 20, shown.join('\n'))
    // Connections that are kept for a while, with what belongs to them, come and go.
    for (const name of ['sockets', 'servers', 'signals', 'timers'] as const)
      assert.ok(second[name] <= first[name] + 80, `${name}: ${shown.join('\n')}`)
  })
})
