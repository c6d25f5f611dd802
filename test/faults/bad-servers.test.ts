import assert from 'node:assert/strict'
import { join } from 'node:path'
import type { EventDetail } from '../../shared/api/api.ts'
import type { Home } from '../../shared/home/home.ts'
import { writeFileAtomic } from '../../shared/home/files.ts'
import {
  type BadServers,
  type Misdeed,
  misdeeds,
  startBadServers,
} from '../support/servers/bad-servers.ts'
import { untilFinished } from '../support/daemon/daemon.ts'
import { isLong } from '../support/daemon/fault-run.ts'
import { send } from '../support/servers/http.ts'
import {
  type Census,
  type ProbedDaemon,
  startProbedDaemon,
} from '../support/daemon/probed-daemon.ts'
import { storeLogin } from '../support/providers/stored-login.ts'
import { temporaryHome } from '../support/temporary.ts'

/*
 * Providers, agents and targets that do the worst a server can do. The daemon's time runs faster, so that its
 * limits are over soon. What it has tried must be over then, with a reason, and leave nothing in the process.
 */

const pace = 60
/** In the long form the first round warms the daemon up, so that a small leak in each shows. */
const rounds = isLong ? 10 : 1
const providerOf = (misdeed: Misdeed) => `p-${misdeed}`
const goodAnswer = JSON.stringify({
  access_token: 'access',
  token_type: 'bearer',
  expires_in: 10 ** 8,
  ok: true,
  choices: [{ message: { content: 'answer' } }],
})

const targets = ['http', 'slack', 'telegram', 'discord', 'github', 'email'] as const

describe('servers that misbehave', function () {
  this.timeout(isLong ? 20 * 60_000 : 120_000)
  let servers: BadServers
  let daemon: ProbedDaemon

  afterEach(async () => {
    await daemon?.stop()
    servers?.close()
  })

  const storeLogins = async (home: Home): Promise<void> => {
    for (const misdeed of misdeeds)
      await storeLogin(home, providerOf(misdeed), 'refresh', 2 * 60 * 60_000)
  }
  const untilEnded = async (path: string): Promise<EventDetail> => {
    const headers = { 'content-type': 'application/json' }
    const { status, json } = await send(`${daemon.url}${path}`, { headers, body: '{}' })
    assert.equal(status, 202)
    return untilFinished(daemon, String(json()['id']))
  }

  /** Asks until nothing of what was tried is left, or 20 s are over. */
  const settled = async (before: Census): Promise<Census> => {
    const last = performance.now() + 20_000
    for (;;) {
      const now = await daemon.census()
      const isSettled = counted.every((name) => now[name] <= before[name] + slack)
      if (isSettled || performance.now() > last) return now
      await new Promise((resolve) => setTimeout(resolve, 250))
    }
  }

  it('leave nothing behind as providers', async () => {
    servers = await startBadServers(1000 / pace)
    servers.mend(goodAnswer)
    const entries = misdeeds.map((misdeed) => {
      const origin = servers.originOf(misdeed)
      return `  ${providerOf(misdeed)}: { authorization_endpoint: '${origin}/a', token_endpoint: '${origin}/t', revocation_endpoint: '${origin}/r', client_id: public }\n  d-${misdeed}: { issuer: '${origin}', client_id: public }\n`
    })
    const home = await temporaryHome({
      gateway: `oauth: { callback_port: 0 }\nproviders:\n${entries.join('')}`,
    })
    await storeLogins(home)
    daemon = await startProbedDaemon({ home, pace })
    const access = (misdeed: Misdeed) =>
      daemon.client
        .get(`/oauth/tokens/${providerOf(misdeed)}/access`)
        .then(() => 'given')
        .catch((error: { readonly code?: string }) => error.code ?? String(error))
    const start = (misdeed: Misdeed) =>
      daemon.client
        .post('/oauth/start', { provider: `d-${misdeed}` })
        .then(() => 'started')
        .catch((error: { readonly code?: string }) => error.code ?? String(error))
    const allGood = async () => {
      for (const misdeed of misdeeds)
        for (let tries = 0; (await access(misdeed)) !== 'given'; tries += 1) {
          assert.ok(tries < 200, `${misdeed} is not asked again`)
          await new Promise((resolve) => setTimeout(resolve, 50))
        }
    }
    await allGood()
    let before = isLong ? undefined : await daemon.census()
    for (let round = 0; round < rounds; round += 1) {
      servers.spoil()
      await storeLogins(home)
      for (const [misdeed, code] of await Promise.all(
        misdeeds.map(async (misdeed) => [misdeed, await access(misdeed)] as const),
      ))
        assert.match(code, /^provider-(unavailable|refused)$/, misdeed)
      for (const [misdeed, code] of await Promise.all(
        misdeeds.map(async (misdeed) => [misdeed, await start(misdeed)] as const),
      ))
        assert.match(code, /^provider-(unavailable|refused|misconfigured)$/, misdeed)
      servers.mend(goodAnswer)
      // By itself, whatever went wrong.
      await allGood()
      before ??= await settled(await daemon.census())
    }
    assert.ok(before)
    checkNothingLeft(before, await settled(before))
    assert.equal(servers.followed(), 0)
  })

  it('leave nothing behind as agents', async () => {
    servers = await startBadServers(1000 / pace)
    const origins = misdeeds.map((misdeed) => [misdeed, servers.originOf(misdeed)] as const)
    daemon = await startProbedDaemon({
      pace,
      gateway: 'oauth: { callback_port: 0 }\nqueue: { concurrency: 64 }\n',
      agents: `agents:\n${origins.map(([name, origin]) => `  h-${name}: { kind: http, url: '${origin}/', timeout: 60s }\n  o-${name}: { kind: openai, base_url: '${origin}', model: m, timeout: 60s }\n`).join('')}`,
      webhooks: `webhooks:\n${misdeeds.map((name) => `  - { path: /h-${name}, agent: h-${name}, prompt_template: x }\n  - { path: /o-${name}, agent: o-${name}, prompt_template: x }\n`).join('')}`,
    })
    const paths = misdeeds.flatMap((name) => [`/h-${name}`, `/o-${name}`])
    let before = isLong ? undefined : await daemon.census()
    for (let round = 0; round < rounds; round += 1) {
      const ends = await Promise.all(
        paths.map(async (path) => [path, await untilEnded(path)] as const),
      )
      for (const [path, { state, code }] of ends) {
        // All that the first `output_limit` bytes hold, marked as cut.
        if (path === '/h-ten-megabytes') assert.equal(state, 'done')
        else assert.match(`${path} ${state} ${code}`, / failed agent-(failed|timeout)$/)
      }
      before ??= await settled(await daemon.census())
    }
    assert.ok(before)
    checkNothingLeft(before, await settled(before))
    assert.equal(servers.followed(), 0)
  })

  it('leave nothing behind as targets', async () => {
    servers = await startBadServers(1000 / pace)
    // One daemon for each misdeed would be slow: of most targets there is one address only.
    const addresses: Record<(typeof targets)[number], (misdeed: Misdeed) => string> = {
      http: (misdeed) => `http:${misdeed}`,
      discord: (misdeed) => `discord:${misdeed}`,
      slack: () => 'slack:#general',
      telegram: () => 'telegram:1',
      github: () => 'github:a/b#1',
      email: () => 'email:ada@example.com',
    }
    const gatewayFor = (misdeed: Misdeed) => {
      const origin = servers.originOf(misdeed)
      return `oauth: { callback_port: 0 }
queue: { concurrency: 64 }
targets:
  http: { ${misdeeds.map((name) => `${name}: { url: '${servers.originOf(name)}/', secret_env: HTTP_SECRET }`).join(', ')} }
  discord: { ${misdeeds.map((name) => `${name}: { url_env: DISCORD_${name.replaceAll('-', '_').toUpperCase()} }`).join(', ')} }
  slack: { token_env: TOKEN, api_url: '${origin}' }
  telegram: { token_env: TOKEN, api_url: '${origin}' }
  github: { token_env: TOKEN, api_url: '${origin}' }
  email: { smtp_url_env: SMTP_URL, from: doorward@example.com }
`
    }
    const pathFor = (target: string, misdeed: Misdeed) => `/${target}-${misdeed}`
    const envFor = (misdeed: Misdeed) =>
      [
        `HTTP_SECRET=whsec_${Buffer.alloc(32, 7).toString('base64')}`,
        'TOKEN=123456789:abcdefghijklmnopqrstuvwxyzABCDEFGHI',
        `SMTP_URL=smtp://127.0.0.1:${servers.portOf(misdeed)}`,
        ...misdeeds.map(
          (name) =>
            `DISCORD_${name.replaceAll('-', '_').toUpperCase()}=${servers.originOf(name)}/api/webhooks/123456789012345678/abcdefghijklmnopqrstuvwxyz0123456789`,
        ),
        '',
      ].join('\n')
    const home = await temporaryHome({
      gateway: gatewayFor('hangs'),
      env: envFor('hangs'),
      agents: 'agents:\n  echo: { kind: echo, concurrency: 64 }\n',
      webhooks: `webhooks:\n${misdeeds.flatMap((misdeed) => targets.map((target) => `  - { path: '${pathFor(target, misdeed)}', agent: echo, prompt_template: x, deliver_to: '${addresses[target](misdeed)}' }\n`)).join('')}`,
    })
    daemon = await startProbedDaemon({ home, pace })
    let before = isLong ? undefined : await daemon.census()
    for (let round = 0; round < rounds; round += 1) {
      const ended: Promise<readonly [string, EventDetail]>[] = []
      // What an event is delivered under is what it came under: the next change may follow at once.
      for (const misdeed of misdeeds) {
        await writeFileAtomic(home.env, envFor(misdeed))
        await writeFileAtomic(join(home.config, 'gateway.yaml'), gatewayFor(misdeed), 0o644)
        await daemon.client.post('/daemon/reload')
        for (const target of targets) {
          const path = pathFor(target, misdeed)
          const headers = { 'content-type': 'application/json' }
          const { status, json } = await send(`${daemon.url}${path}`, { headers, body: '{}' })
          assert.equal(status, 202)
          const id = String(json()['id'])
          ended.push(untilFinished(daemon, id).then((event) => [path, event] as const))
        }
      }
      for (const [path, { state, targets }] of await Promise.all(ended)) {
        // Of these the status alone counts: it has come, whatever becomes of the rest.
        const isDone =
          /^\/(http|discord|github)-(ten-megabytes|trickles-body|closes-in-body)$/.test(path)
        assert.equal(`${path} ${state}`, `${path} ${isDone ? 'done' : 'failed'}`)
        if (!isDone) assert.equal(targets[0]?.code, 'delivery-failed', path)
      }
      before ??= await settled(await daemon.census())
    }
    assert.ok(before)
    checkNothingLeft(before, await settled(before))
    assert.equal(servers.followed(), 0)
  })
})

const counted = ['sockets', 'servers', 'requests', 'children', 'signals', 'timers'] as const
/** A few come and go with the clients of this test and with what the daemon looks at now and then. */
const slack = 6

const checkNothingLeft = (before: Census, now: Census): void => {
  for (const name of counted)
    assert.ok(
      now[name] <= before[name] + slack,
      `${name}: ${before[name]} before, ${now[name]} now (${now.resources.join(' ')})`,
    )
}
