import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { Agent, request as httpRequest } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import type { AccessToken, DaemonFile, EventDetail, Login, Status } from '../../shared/api.ts'
import { type Client, connect } from '../../shared/client.ts'
import type { Home } from '../../shared/home.ts'
import { isAlive } from '../../shared/process-state.ts'
import { type RunningDaemon, startDaemon } from '../support/daemon.ts'
import { followEvents } from '../support/events.ts'
import { fixtureAgent } from '../support/fixtures.ts'
import { send } from '../support/http.ts'
import {
  type HeldAgent,
  restart,
  startHeldAgent,
  stopHome,
  untilExit,
  untilLockMoves,
} from '../support/restart.ts'
import { startRotatingProvider, storeLogin } from '../support/rotating-provider.ts'
import { startTargetServer } from '../support/target-server.ts'
import { temporaryHome } from '../support/temporary.ts'
import { untilText } from '../support/until-text.ts'

const json = { 'content-type': 'application/json' }
const echo = 'webhooks:\n  - { path: /a, agent: echo, prompt_template: "{{event.n}}" }\n'

const deliver = async (url: string, body: object = {}, more: Record<string, string> = {}) => {
  const reply = await send(`${url}/a`, {
    headers: { ...json, ...more },
    body: JSON.stringify(body),
  })
  assert.equal(reply.status, 202, reply.text)
  return reply.json() as { id: string; status: string }
}

const daemonFile = async (home: Home) =>
  JSON.parse(await readFile(home.daemonJson, 'utf8')) as DaemonFile

/** The daemon that is in service by now, for what a test of a started one uses. */
const inService = async (old: RunningDaemon): Promise<RunningDaemon> => ({
  ...old,
  client: await connect(old.home),
})

const eventOf = async (client: Client, id: string) => client.get<EventDetail>(`/events/${id}`)

describe('a restart of the daemon', function () {
  before(function () {
    if (process.platform === 'win32') this.skip()
  })
  const agents: HeldAgent[] = []
  const homes: Home[] = []
  afterEach(async () => {
    for (const agent of agents.splice(0)) agent.close()
    for (const home of homes.splice(0)) await stopHome(home).catch(() => undefined)
  })
  const start = async (...options: Parameters<typeof startDaemon>): Promise<RunningDaemon> => {
    const daemon = await startDaemon(...options)
    homes.push(daemon.home)
    return daemon
  }
  const startWithHeldAgent = async (more = '', files: Parameters<typeof startDaemon>[0] = {}) => {
    const agent = await startHeldAgent()
    agents.push(agent)
    const daemon = await start({
      ...files,
      webhooks: `webhooks:\n  - { path: /a, agent: held, prompt_template: "{{event.n}}", dedupe: body${more} }\n`,
      agents: `agents:\n  held: { kind: http, url: "${agent.url}" }\n`,
    })
    return { agent, daemon }
  }

  it('puts another process in its place, at the same address and under the same token', async () => {
    const old = await start({ webhooks: echo })
    const answer = await restart(old.client)
    assert.notEqual(answer.pid, old.process.pid)
    assert.deepEqual(answer.previous, { pid: old.process.pid, unfinished: 0 })
    const file = await daemonFile(old.home)
    assert.deepEqual([file.pid, file.url], [answer.pid, old.url])
    assert.match(
      await readFile(join(old.home.run, 'daemon.lock'), 'utf8'),
      new RegExp(`^${answer.pid} `),
    )
    assert.equal(await untilExit(old), '0')
    const now = await inService(old)
    assert.equal((await now.client.get<Status>('/status')).startedAt, file.startedAt)
    now.client.close()
    await stopHome(old.home)
    assert.deepEqual(await readdir(old.home.run), ['api.token'])
  })

  it('keeps events, their numbers and what has been seen before', async () => {
    const old = await start({
      webhooks: echo.replace(' }', ', dedupe: body }'),
    })
    const stream = await followEvents(old)
    const { id } = await deliver(old.url, { n: 'first' })
    await stream.next((record) => record.id === id && record.state === 'done')
    stream.close()
    const before = await old.client.open('/events/stream', { headers: { 'last-event-id': 'x-0' } })
    const isEnd = (message: string) =>
      message.includes(`"id":"${id}"`) && message.includes('"state":"done"')
    const lastId = await new Promise<string>((resolve) => {
      let text = ''
      before.on('data', (chunk: Buffer) => {
        text += chunk.toString()
        const end = text.split('\n\n').slice(0, -1).find(isEnd)
        if (end) resolve(/^id: ?(.+)$/m.exec(end)?.[1] ?? '')
      })
    })
    const ended = once(before, 'close')
    await restart(old.client)
    await ended
    const now = await inService(old)
    const event = await eventOf(now.client, id)
    assert.deepEqual([event.state, event.prompt, event.result], ['done', 'first', 'first'])
    assert.equal((await deliver(now.url, { n: 'first' })).status, 'duplicate')

    const resumed = await now.client.open('/events/stream', {
      headers: { 'last-event-id': lastId },
    })
    let missed = ''
    for await (const chunk of resumed as AsyncIterable<Buffer>) {
      missed += chunk.toString()
      if (missed.includes('restarted')) break
    }
    assert.equal(missed.includes(`"id":"${id}"`), false)
    const { webhooks } = await now.client.get<Status>('/status')
    assert.deepEqual(
      [webhooks[0]?.counts.accepted, webhooks[0]?.counts.done, webhooks[0]?.counts.duplicate],
      [1, 1, 1],
    )
    now.client.close()
  })

  it('lets the old one finish what it runs, shows that, and runs no agent twice at once', async () => {
    const { agent, daemon: old } = await startWithHeldAgent()
    const one = await deliver(old.url, { n: 1 })
    const two = await deliver(old.url, { n: 2 })
    const first = await agent.next()
    assert.equal((await restart(old.client)).previous.unfinished, 2)
    const now = await inService(old)
    const three = await deliver(now.url, { n: 3 })
    const { queue } = await now.client.get<Status>('/status')
    assert.deepEqual([queue.running, queue.waiting], [1, 2])
    assert.equal((await eventOf(now.client, one.id)).state, 'running')

    const stream = await followEvents(now)
    first.answer('answer 1')
    const done = await stream.next(({ id, state }) => id === one.id && state === 'done')
    assert.equal(done.resultPreview, 'answer 1')
    assert.equal((await eventOf(now.client, one.id)).result, 'answer 1')
    const second = await agent.next()
    assert.equal(second.prompt, '2')
    second.answer('answer 2')
    const third = await agent.next()
    assert.equal(third.prompt, '3')
    await stream.next(({ id, state }) => id === two.id && state === 'done')
    assert.equal(await untilExit(old), '0')
    third.answer('answer 3')
    await stream.next(({ id, state }) => id === three.id && state === 'done')
    stream.close()
    now.client.close()
  })

  it('can be asked for again while an older one still finishes, and is stopped with all of them', async () => {
    const { agent, daemon: old } = await startWithHeldAgent()
    const { id } = await deliver(old.url, { n: 1 })
    const first = await agent.next()
    const { pid } = await restart(old.client)
    const second = await inService(old)
    assert.equal((await restart(second.client)).previous.unfinished, 1)
    const third = await inService(old)
    assert.equal((await eventOf(third.client, id)).state, 'running')
    assert.deepEqual([isAlive(old.process.pid ?? 0), isAlive(pid)], [true, true])
    const stream = await followEvents(third)
    await third.client.post('/daemon/shutdown')
    first.answer('at last')
    await stream.next((record) => record.id === id && record.state === 'done')
    third.client.close()
    assert.equal(await untilExit(old), '0')
    await stopHome(old.home).catch(() => undefined)
    assert.deepEqual(await readdir(old.home.run), ['api.token'])
  })

  it('lets an event that failed before be run again after', async () => {
    const { agent, daemon: old } = await startWithHeldAgent(
      ', deliver_to: "file:no/such/folder.md"',
    )
    await writeFile(join(old.home.root, 'no'), 'a file, no folder')
    const { id } = await deliver(old.url, { n: 'again' })
    const stream = await followEvents(old)
    ;(await agent.next()).answer('kept answer')
    await stream.next((record) => record.id === id && record.state === 'failed')
    await restart(old.client)
    const now = await inService(old)
    const failed = await eventOf(now.client, id)
    assert.deepEqual([failed.stage, failed.result], ['deliver', 'kept answer'])
    const again = await followEvents(now)
    await now.client.post(`/events/${id}/retry`)
    const ended = await again.next((record) => record.id === id && record.state === 'failed')
    assert.equal(ended.attempts, 2)
    again.close()
    now.client.close()
  })

  it('answers on connections from before, once each, for the daemon that is in service', async () => {
    const old = await start({ webhooks: echo })
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const ask = async () =>
      new Promise<{ startedAt: string; connection: string | undefined }>((resolve, reject) => {
        const headers = { authorization: `Bearer ${old.apiToken}` }
        httpRequest(`${old.url}/status`, { agent, headers }, (response) => {
          let text = ''
          response.on('data', (chunk: Buffer) => (text += chunk.toString()))
          response.once('end', () => {
            const { startedAt } = JSON.parse(text) as Status
            resolve({ startedAt, connection: response.headers.connection })
          })
        })
          .once('error', reject)
          .end()
      })
    assert.equal((await ask()).connection, 'keep-alive')
    const { startedAt } = await restart(old.client)
    assert.deepEqual(await ask(), { startedAt, connection: 'close' })
    assert.deepEqual(await ask(), { startedAt, connection: 'keep-alive' })
    agent.destroy()
    assert.equal(await untilExit(old), '0')
  })

  it('ends a login that waits, and says why', async () => {
    const old = await start({
      gateway:
        'oauth: { callback_port: 0 }\nproviders:\n  acme: { authorization_endpoint: "http://127.0.0.1:1/a", token_endpoint: "http://127.0.0.1:1/t", client_id: me }\n',
    })
    const { loginId } = await old.client.post<{ loginId: string }>('/oauth/start', {
      provider: 'acme',
    })
    const waiting = old.client.get<Login>(`/oauth/logins/${loginId}?wait=30`)
    await restart(old.client)
    const { status, error } = await waiting
    assert.deepEqual(
      [status, error?.code, error?.message],
      ['cancelled', 'login-cancelled', 'the daemon was restarted meanwhile'],
    )
  })

  it('waits for a refresh on its way, whose token is then given out by the new one', async () => {
    const provider = await startRotatingProvider(3600)
    const home = await temporaryHome({
      gateway: `oauth: { callback_port: 0 }\nproviders:\n  acme: ${provider.entry}\n`,
    })
    await storeLogin(home)
    const { arrived, release } = provider.hold()
    const old = await start({ home })
    await arrived
    const asked = restart(old.client)
    await untilText(home.logs, 'daemon.log', /"restarting"/)
    const client = await connect(home)
    const read = client.get<AccessToken>('/oauth/tokens/acme/access')
    release()
    await asked
    assert.equal((await read).accessToken, 'at-1')
    client.close()
    const now = await inService(old)
    const token = await now.client.get<AccessToken>('/oauth/tokens/acme/access')
    now.client.close()
    assert.deepEqual([token.accessToken, provider.refreshes(), provider.clashes()], ['at-1', 1, 0])
    provider.close()
  })

  it('has the new one renew a token that an agent of the old one needs', async () => {
    const provider = await startRotatingProvider(3600)
    const agent = await startHeldAgent()
    agents.push(agent)
    const command = JSON.stringify(fixtureAgent('prints-env'))
    const home = await temporaryHome({
      webhooks:
        'webhooks:\n  - { path: /a, agent: held, prompt_template: x }\n  - { path: /b, agent: env, prompt_template: x }\n',
      agents: `agents:\n  held: { kind: http, url: "${agent.url}" }\n  env: { kind: command, command: ${command}, env: { ACME: "oauth:acme" } }\n`,
      gateway: `oauth: { callback_port: 0 }\nqueue: { concurrency: 1 }\nproviders:\n  acme: ${provider.entry}\n`,
    })
    await storeLogin(home)
    const old = await start({ home })
    await old.client.get<AccessToken>('/oauth/tokens/acme/access')
    await deliver(old.url)
    const held = await agent.next()
    const reply = await send(`${old.url}/b`, { headers: json, body: '{}' })
    const { id } = reply.json() as { id: string }
    await restart(old.client)
    const now = await inService(old)
    const stream = await followEvents(now)
    const path = join(home.tokens, 'acme.json')
    const record = JSON.parse(await readFile(path, 'utf8')) as object
    const expiresAt = new Date(Date.now() - 1000).toISOString()
    await writeFile(path, JSON.stringify({ ...record, accessToken: 'ended', expiresAt }))
    held.answer('go on')
    await stream.next((changed) => changed.id === id && changed.state === 'done')
    assert.match((await eventOf(now.client, id)).result ?? '', /ACME.*at-2/)
    assert.deepEqual([provider.refreshes(), provider.clashes()], [2, 0])
    stream.close()
    now.client.close()
    provider.close()
  })

  it('listens anew where the configuration says another port, and leaves the old one', async () => {
    const taken = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as AddressInfo
    const old = await start({ webhooks: echo })
    await writeFile(
      join(old.home.config, 'gateway.yaml'),
      `server: { public_port: ${port} }\noauth: { callback_port: 0 }\n`,
    )
    await assert.rejects(restart(old.client), {
      code: 'restart-failed',
      message: new RegExp(`old one goes on: port ${port} is taken by another program`),
    })
    await old.client.post('/daemon/reload')
    const { problems } = await old.client.get<Status>('/status')
    assert.ok(problems.some(({ code }) => code === 'restart-needed'))
    await deliver(old.url)
    taken.close()
    await once(taken, 'close')
    const { publicUrl } = await restart(old.client)
    assert.equal(publicUrl, `http://127.0.0.1:${port}`)
    assert.equal((await daemonFile(old.home)).publicUrl, publicUrl)
    await deliver(`http://127.0.0.1:${port}`)
    await deliver(old.url)
  })

  it('does not happen with a configuration that cannot be used', async () => {
    const old = await start({ webhooks: echo })
    await writeFile(join(old.home.config, 'webhooks.yaml'), 'webhooks: 1\n')
    await writeFile(join(old.home.config, 'agents.yaml'), 'agents: 2\n')
    await assert.rejects(restart(old.client), (error: Error & { code?: string }) => {
      assert.equal(error.code, 'config-invalid')
      assert.match(error.message, /webhooks\.yaml:1:1[^]*agents\.yaml:1:1|agents[^]*webhooks/)
      return true
    })
    await deliver(old.url)
    assert.equal((await daemonFile(old.home)).pid, old.process.pid)
  })

  it('is refused to whoever has no token, and to a web page', async () => {
    const old = await start()
    const path = `${old.url}/daemon/restart`
    assert.equal((await send(path)).status, 401)
    const headers = { authorization: `Bearer ${old.apiToken}`, origin: 'https://evil.example' }
    assert.equal((await send(path, { headers })).status, 403)
    assert.equal((await daemonFile(old.home)).pid, old.process.pid)
  })

  it('leaves the old one in service when the new one is killed, wherever it is by then', async () => {
    const provider = await startRotatingProvider(1)
    const home = await temporaryHome({
      webhooks: echo,
      gateway: `oauth: { callback_port: 0 }\nproviders:\n  acme: ${provider.entry}\n`,
    })
    await storeLogin(home)
    const old = await start({ home })
    const pid = old.process.pid ?? 0
    const pidIn = /"successor":(\d+),"msg":"restarting"\}/
    const kills = [
      async () => Number(pidIn.exec(await untilText(home.logs, 'daemon.log', pidIn))?.[1]),
      async () => untilLockMoves(home, pid),
    ]
    for (const victim of kills) {
      const failed = assert.rejects(restart(old.client), {
        code: 'restart-failed',
        message: /old one goes on: it ended with SIGKILL/,
      })
      process.kill(await victim(), 'SIGKILL')
      await failed
      await deliver(old.url)
      assert.deepEqual((await daemonFile(home)).pid, pid)
      assert.match(await readFile(join(home.run, 'daemon.lock'), 'utf8'), new RegExp(`^${pid} `))
      const token = await old.client.get<AccessToken>('/oauth/tokens/acme/access')
      assert.ok(provider.isGood(token.accessToken))
    }
    assert.equal(provider.clashes(), 0)
    await restart(old.client)
    assert.equal(await untilExit(old), '0')
    provider.close()
  })

  it('accepts nothing in a new one that cannot come into service, of which the old one would not know', async () => {
    const gateway = 'oauth: { callback_port: 0 }\nevents: { keep: 20000 }\n'
    const old = await startDaemon({ webhooks: echo, gateway })
    // What says where the daemon is found cannot be replaced: that shows at the very end.
    await rm(old.home.daemonJson)
    await mkdir(join(old.home.daemonJson, 'in-the-way'), { recursive: true })
    const accepted: string[] = []
    const over = new AbortController()
    const keepPosting = async () => {
      while (!over.signal.aborted) {
        const body = JSON.stringify({ n: 1 })
        const reply = await send(`${old.url}/a`, { headers: json, body }).catch(() => undefined)
        if (reply?.status === 202) accepted.push(String(reply.json()['id']))
      }
    }
    const posting = Promise.all(Array.from({ length: 8 }, keepPosting))
    const started = accepted.length
    await assert.rejects(restart(old.client), { code: 'restart-failed' })
    over.abort()
    await posting
    assert.ok(accepted.length > started)
    for (const id of accepted) assert.ok(await eventOf(old.client, id), id)
    assert.equal(new Set(accepted).size, accepted.length)
    await rm(old.home.daemonJson, { recursive: true })
    assert.equal(await old.stop(), 0)
  })

  it('leaves the new one in service when the old one is killed before it has let go', async () => {
    for (const at of ['starting', 'locked'] as const) {
      const old = await start({ webhooks: echo, gateway: 'oauth: { callback_port: 0 }\n' })
      const pid = old.process.pid ?? 0
      const broken = assert.rejects(restart(old.client))
      const killed =
        at === 'locked'
          ? untilLockMoves(old.home, pid)
          : untilText(old.home.logs, 'daemon.log', /"restarting"/)
      await killed
      old.process.kill('SIGKILL')
      await broken
      const moved = await untilLockMoves(old.home, pid)
      await untilText(old.home.run, 'daemon.json', new RegExp(`"pid":${moved},`))
      const now = await inService(old)
      // Any free port was asked for, so where the socket was not passed it is another one.
      await deliver(now.client.daemon.url)
      now.client.close()
    }
  })

  it('drops what the old one had not finished when that is killed afterwards, and can run it again', async () => {
    const { agent, daemon: old } = await startWithHeldAgent()
    const { id } = await deliver(old.url, { n: 1 })
    await agent.next()
    await restart(old.client)
    const now = await inService(old)
    const stream = await followEvents(now)
    old.process.kill('SIGKILL')
    const dropped = await stream.next((record) => record.id === id && record.state === 'dropped')
    assert.equal(dropped.code, 'event-dropped')
    await now.client.post(`/events/${id}/retry`)
    ;(await agent.next()).answer('second try')
    const done = await stream.next((record) => record.id === id && record.state === 'done')
    assert.equal(done.resultPreview, 'second try')
    stream.close()
    now.client.close()
  })

  it('delivers again, and runs no agent again, what the old one was killed with on its way to a target', async () => {
    const target = await startTargetServer()
    const { agent, daemon: old } = await startWithHeldAgent(', deliver_to: "http:slow"', {
      gateway: `targets: { http: { slow: { url: "${target.origin}", secret_env: SLOW } } }\n`,
      env: `SLOW=${Buffer.alloc(32, 1).toString('base64')}\n`,
    })
    try {
      const reached = new Promise<void>((resolve) => target.next(() => resolve()))
      const { id } = await deliver(old.url, { n: 1 })
      const asked = await agent.next()
      await restart(old.client)
      const now = await inService(old)
      const stream = await followEvents(now)
      asked.answer('the only answer')
      await reached
      await stream.next((record) => record.id === id && record.state === 'delivering')
      old.process.kill('SIGKILL')
      const dropped = await stream.next((record) => record.id === id && record.state === 'dropped')
      assert.equal(dropped.stage, 'deliver')
      await now.client.post(`/events/${id}/retry`)
      await stream.next((record) => record.id === id && record.state === 'done')
      assert.match(target.requests[1]?.text ?? '', /the only answer/)
      stream.close()
      now.client.close()
    } finally {
      target.close()
    }
  })

  it('delivers again, and runs no agent again, what waited for that in the old one when it was killed', async () => {
    const { agent, daemon: old } = await startWithHeldAgent(
      ', deliver_to: "file:no/such/folder.md"',
    )
    await writeFile(join(old.home.root, 'no'), 'a file, no folder')
    const stream = await followEvents(old)
    const { id } = await deliver(old.url, { n: 1 })
    ;(await agent.next()).answer('the only answer')
    await stream.next((record) => record.id === id && record.state === 'failed')
    await deliver(old.url, { n: 2 })
    await agent.next()
    await old.client.post(`/events/${id}/retry`)
    stream.close()
    await restart(old.client)
    const now = await inService(old)
    const after = await followEvents(now)
    old.process.kill('SIGKILL')
    const dropped = await after.next((record) => record.id === id && record.state === 'dropped')
    assert.equal(dropped.stage, 'queue')
    await now.client.post(`/events/${id}/retry`)
    const ended = await after.next((record) => record.id === id && record.state === 'failed')
    assert.equal(ended.stage, 'deliver')
    after.close()
    now.client.close()
  })

  it('leaves no successor behind when the daemon is stopped meanwhile', async () => {
    const old = await start({ webhooks: echo })
    const failed = assert.rejects(restart(old.client), { code: 'stopping' })
    const log = await untilText(old.home.logs, 'daemon.log', /"restarting"/)
    old.process.kill('SIGTERM')
    await failed
    assert.equal(await untilExit(old), '0')
    assert.equal(isAlive(Number(/"successor":(\d+)/.exec(log)?.[1])), false)
    assert.deepEqual(await readdir(old.home.run), ['api.token'])
  })
})
