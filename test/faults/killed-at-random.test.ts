import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { EventRecord, TokenSummary } from '../../shared/api/api.ts'
import { type Client, connect } from '../../shared/client/client.ts'
import type { Home } from '../../shared/home/home.ts'
import { parseRecord } from '../../daemon/oauth/tokens/token-store.ts'
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '../support/providers/authorization-server.ts'
import { spawnDaemon } from '../support/daemon/daemon.ts'
import { faultSeed, isLong, randomMoments } from '../support/daemon/fault-run.ts'
import { waitForProcessExit } from '../support/fixtures.ts'
import { send } from '../support/servers/http.ts'
import { githubHeaders } from '../support/servers/sign.ts'
import { storeLogin } from '../support/providers/stored-login.ts'
import { filesIn, temporaryHome } from '../support/temporary.ts'

/*
 * The provider rotates refresh tokens and ends the whole grant when an old one comes again. The daemon is
 * killed at any moment, while it starts too, under readers that make it renew tokens and senders whose
 * events run agents; the next one takes up what was left, and is killed in turn.
 */

const kills = isLong ? 500 : 10
const providers = ['ada', 'bob', 'cyd', 'dee', 'eve', 'fay']
const secret = 'a-secret-of-the-sender'

describe('a daemon that is killed at random moments', function () {
  this.timeout(isLong ? 60 * 60_000 : 5 * 60_000)
  const { chance, below, wait } = randomMoments()
  let server: AuthorizationServer
  let home: Home
  let round = 0
  /** How often each refresh token was sent. */
  const sent = new Map<string, number>()

  before(async () => {
    server = await startAuthorizationServer({
      // So that there is time to be killed in.
      onStep: async (step) => (step === 'answered' ? undefined : wait(20)),
    })
    const entry = `{ issuer: "${server.issuer}", client_id: public }`
    home = await temporaryHome({
      gateway: `oauth: { callback_port: 0 }\nproviders:\n${providers.map((name) => `  ${name}: ${entry}\n`).join('')}`,
      agents: `agents:
  echo: { kind: echo }
  slow: { kind: command, command: [sleep, '60'], concurrency: 2 }
`,
      webhooks: `webhooks:
  - { path: /echo, agent: echo, prompt_template: '{{event.n}}', secret_env: SENDER, deliver_to: 'file:answers.md' }
  - { path: /slow, agent: slow, prompt_template: '{{event.n}}', secret_env: SENDER }
`,
      env: `SENDER=${secret}\n`,
    })
    for (const provider of providers) await store(provider, await server.mint())
  })
  after(() => server.close())

  const pathOf = (provider: string) => join(home.tokens, `${provider}.json`)
  /** The record of a provider; fails when its file is no whole one. */
  const stored = async (provider: string) => {
    const record = parseRecord(await readFile(pathOf(provider), 'utf8'), provider)
    assert.ok(record?.refreshToken, `the file of ${provider} is no record, after ${round} kills`)
    return { ...record, refreshToken: record.refreshToken }
  }
  /** A login that is not due yet, so that a reader decides when it is renewed. */
  const store = (provider: string, refreshToken: string) => storeLogin(home, provider, refreshToken)

  const notedAgents = async (): Promise<number[]> =>
    (await filesIn(join(home.run, 'agents')).catch(() => [])).map((name) => Number.parseInt(name))

  /** Nothing of the life before is left but what is to be kept. */
  const checkLeftovers = async (client: Client, agents: readonly number[]): Promise<void> => {
    for (const pid of agents) await waitForProcessExit(pid)
    // Who asks waits for what is taken up.
    for (const provider of providers)
      await client.get(`/oauth/tokens/${provider}/access`).catch(() => undefined)
    const strange = (await filesIn(home.root)).filter((name) => !isKept.test(name))
    if (strange.length === 0) return
    // Which of the many ways it went stands in the log only.
    const log = await readFile(home.log, 'utf8')
    assert.fail(`left over after ${round} kills: ${strange.join(', ')}\n${log.slice(-4000)}`)
  }
  const isKept = new RegExp(
    `^(\\.env|answers\\.md|config/(schema/)?\\w+\\.(yaml|json)|logs/daemon\\.log|run/(api\\.token|last-day|daemon\\.(json|lock))|tokens/(${providers.join('|')})\\.json)$`,
  )

  /** A login that has ended is told: its state and cause, and the moment as an event. */
  const checkTold = async (client: Client, endedBefore: ReadonlySet<string>): Promise<string[]> => {
    const { tokens } = await client.get<{ tokens: TokenSummary[] }>('/oauth/tokens')
    const { events } = await client.get<{ events: EventRecord[] }>('/events')
    const lost: string[] = []
    for (const provider of providers) {
      const { ended, refreshToken } = await stored(provider)
      const status = tokens.find((token) => token.provider === provider)?.status
      if (!ended) {
        assert.equal(status, 'ok')
        continue
      }
      lost.push(provider)
      assert.equal(status, 'needs-login')
      assert.notEqual(await server.stateOf(refreshToken), 'alive', `${provider} was given up`)
      // The first time it was used up, and the answer did not live to be stored.
      assert.ok((sent.get(refreshToken) ?? 0) > 1, `${provider}: ${ended.cause}`)
      const isTold = events.some(
        ({ code, detail }) => code === 'needs-login' && detail?.startsWith(`${provider}: `),
      )
      assert.ok(isTold || endedBefore.has(provider), `${provider} ended and nobody was told`)
    }
    return lost
  }

  /** What a kill may leave of each login. Returns those that the file says to have ended. */
  const checkLogins = async (): Promise<Set<string>> => {
    const ended = new Set<string>()
    const names = await filesIn(home.tokens)
    for (const provider of providers) {
      const record = await stored(provider)
      if (record.ended) ended.add(provider)
      else if ((await server.stateOf(record.refreshToken)) !== 'alive')
        // The next start has to know that the answer got lost, or find it half stored.
        assert.ok(names.includes(`${provider}.json.refresh`), `${provider}: no note (${round})`)
    }
    return ended
  }

  /** Readers and senders that go on until the daemon has gone. */
  const load = ({ daemon }: Client, apiToken: string, signal: AbortSignal): void => {
    const reader = async (): Promise<void> => {
      const provider = providers[below(providers.length)] ?? ''
      const path = `/oauth/tokens/${provider}/access?min_validity=3500`
      await send(`${daemon.url}${path}`, {
        method: 'GET',
        headers: { authorization: `Bearer ${apiToken}` },
      })
    }
    const sender = async (): Promise<void> => {
      const body = JSON.stringify({ n: below(1000) })
      const path = chance(0.2) ? '/slow' : '/echo'
      await send(`${daemon.url}${path}`, { headers: githubHeaders(body, secret), body })
    }
    const goOn = async (one: () => Promise<void>): Promise<void> => {
      while (!signal.aborted) {
        await one().catch(() => undefined)
        await wait(30)
      }
    }
    for (const one of [reader, reader, sender, sender]) void goOn(one)
  }

  const spawnQuiet = (): ChildProcess => {
    const child = spawnDaemon(home)
    child.stdout?.resume()
    child.stderr?.resume()
    return child
  }
  const kill = async (child: ChildProcess): Promise<void> => {
    if (child.exitCode !== null) assert.fail(`the daemon ended by itself with ${child.exitCode}`)
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
    noteSent()
    round += 1
  }
  const noteSent = (): void => {
    for (const request of server.tokenRequests.splice(0)) {
      const token = request.get('refresh_token') ?? ''
      sent.set(token, (sent.get(token) ?? 0) + 1)
    }
  }

  it(`loses no login that the provider still accepts, in ${kills} kills (seed ${faultSeed})`, async () => {
    const texts = await readFile(join(home.config, 'webhooks.yaml'), 'utf8')
    let agents: number[] = []
    let ended = new Set<string>()
    for (const _ of Array.from({ length: kills })) {
      const child = spawnQuiet()
      // While it starts, now and then.
      if (chance(0.25)) await wait(400)
      else {
        await once(child, 'message')
        const client = await connect(home)
        await checkLeftovers(client, agents)
        agents = []
        noteSent()
        for (const provider of await checkTold(client, ended))
          await store(provider, await server.mint())
        for (const provider of providers)
          await store(provider, (await stored(provider)).refreshToken)
        const control = new AbortController()
        load(client, (await readFile(home.apiToken, 'utf8')).trim(), control.signal)
        await wait(600)
        control.abort()
        client.close()
      }
      agents = [...agents, ...(await notedAgents())]
      await kill(child)
      agents = [...agents, ...(await notedAgents())]
      ended = await checkLogins()
      assert.equal(await readFile(join(home.config, 'webhooks.yaml'), 'utf8'), texts)
    }

    const last = spawnQuiet()
    await once(last, 'message')
    const client = await connect(home)
    await checkLeftovers(client, agents)
    noteSent()
    const lost = await checkTold(client, ended)
    for (const provider of providers.filter((name) => !lost.includes(name))) {
      const { refreshToken } = await stored(provider)
      assert.equal(await server.stateOf(refreshToken), 'alive')
    }
    client.close()
    const over = once(last, 'exit')
    last.kill('SIGTERM')
    assert.deepEqual(await over, [0, null])
    // A few random kills may all come before the refresh of their start.
    assert.ok(sent.size > (isLong ? kills : 2), `only ${sent.size} refresh tokens were sent`)
    // Every answer that was written is whole.
    const answers = await readFile(join(home.root, 'answers.md'), 'utf8')
    assert.match(answers, /^(## \S+ \/echo\n\n<!-- evt_\w+ -->\n\d+\n\n)+$/)
  })
})
