import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile, readdir, writeFile } from 'node:fs/promises'
import { Agent, request as httpRequest } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import type { AccessToken, Login, Status } from '../../../shared/api/api.ts'
import { connect } from '../../../shared/client/client.ts'
import { isAlive } from '../../../shared/home/lock.ts'
import { followEvents } from '../../support/daemon/events.ts'
import { fixtureAgent } from '../../support/fixtures.ts'
import { send } from '../../support/servers/http.ts'
import { restart, stopHome, untilExit } from '../../support/daemon/restart.ts'
import {
  daemonFile,
  deliver,
  echoWebhook,
  eventOf,
  inService,
  restartedDaemons,
} from '../../support/daemon/restarted-daemons.ts'
import { startRotatingProvider, storeLogin } from '../../support/providers/rotating-provider.ts'
import { temporaryHome } from '../../support/temporary.ts'
import { untilText } from '../../support/until-text.ts'

describe('a restart of the daemon', () => {
  const { start, heldAgent, startWithHeldAgent } = restartedDaemons()

  it('starts another process at the same address and with the same API token', async () => {
    const old = await start({ webhooks: echoWebhook })
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

  it('keeps events, their numbers and the deliveries seen before', async () => {
    const old = await start({
      webhooks: echoWebhook.replace(' }', ', dedupe: body }'),
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

  it('lets the old daemon finish what it runs, shows how it ended, and keeps to the concurrency of the agent', async () => {
    const { agent, daemon: old } = await startWithHeldAgent()
    const one = await deliver(old.url, { n: 1 })
    const two = await deliver(old.url, { n: 2 })
    const first = await agent.next()
    assert.equal((await restart(old.client)).previous.unfinished, 1)
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
    // A list writes what waits: each event is in the history once, whichever process ran it.
    await now.client.get('/events?since=1d')
    const folder = join(old.home.root, 'history')
    const files = (await readdir(folder)).map((name) => readFile(join(folder, name), 'utf8'))
    const lines = (await Promise.all(files)).join('').split('\n').filter(Boolean)
    assert.deepEqual(
      lines.map((line) => line.slice(7, 29)),
      [one.id, two.id, three.id],
    )
    now.client.close()
  })

  it('can happen again while an older daemon still finishes, and a stop stops all of them', async () => {
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
    assert.deepEqual(await readdir(old.home.run), ['api.token', 'last-day'])
  })

  it('allows a retry of an event that failed before it', async () => {
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

  it('closes connections from before, on which it still accepts deliveries and runs them', async () => {
    const old = await start({ webhooks: echoWebhook })
    type Reply = { status: number; connection: string | undefined; body: Record<string, unknown> }
    /** One connection, which is kept. */
    const connection = () => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      const ask = async (method: string, path: string, text = '') =>
        new Promise<Reply>((resolve, reject) => {
          const headers = {
            authorization: `Bearer ${old.apiToken}`,
            'content-type': 'application/json',
          }
          httpRequest(`${old.url}${path}`, { agent, method, headers }, (response) => {
            let body = ''
            response.on('data', (chunk: Buffer) => (body += chunk.toString()))
            response.once('end', () => {
              const { statusCode: status = 0, headers } = response
              const { connection } = headers
              resolve({ status, connection, body: JSON.parse(body) as Reply['body'] })
            })
          })
            .once('error', reject)
            .end(text)
        })
      return { ask, end: () => agent.destroy() }
    }
    const [reader, writer, sender] = [connection(), connection(), connection()]
    const all = [reader, writer, sender]
    for (const { ask } of all) assert.equal((await ask('GET', '/status')).connection, 'keep-alive')
    const { startedAt } = await restart(old.client)

    await assert.rejects(reader.ask('GET', '/status'), { code: 'ECONNRESET' })
    const refused = await writer.ask('POST', '/daemon/reload')
    assert.deepEqual(
      [refused.status, refused.connection, refused.body['code']],
      [503, 'close', 'stopping'],
    )
    for (const { ask } of [reader, writer])
      assert.equal((await ask('GET', '/status')).body['startedAt'], startedAt)

    const now = await inService(old)
    const stream = await followEvents(now)
    const accepted = await sender.ask('POST', '/a', '{"n":"late"}')
    assert.deepEqual([accepted.status, accepted.connection], [202, 'close'])
    const late = String(accepted.body['id'])
    // The old daemon tells the new one of it a moment after its sender.
    await stream.next(({ id, state }) => id === late && state === 'done')
    stream.close()
    assert.equal((await eventOf(now.client, late)).result, 'late')
    const { webhooks } = await now.client.get<Status>('/status')
    assert.deepEqual([webhooks[0]?.counts.accepted, webhooks[0]?.counts.done], [1, 1])
    for (const { end } of all) end()
    now.client.close()
    assert.equal(await untilExit(old), '0')
  })

  it('cancels a login that waits, and says why', async () => {
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
      ['cancelled', 'login-cancelled', 'the daemon was restarted'],
    )
  })

  it('waits for a running refresh, whose token the new daemon then returns', async () => {
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

  it('refreshes in the new daemon a token that a waiting event needs', async () => {
    const provider = await startRotatingProvider(3600)
    const agent = await heldAgent()
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
    const reply = await send(`${old.url}/b`, {
      headers: { 'content-type': 'application/json' },
      body: '{}',
    })
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

  it('listens on a port that was added to the configuration', async () => {
    const taken = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as AddressInfo
    const old = await start({ webhooks: echoWebhook })
    await writeFile(
      join(old.home.config, 'gateway.yaml'),
      `server: { public_port: ${port} }\noauth: { callback_port: 0 }\n`,
    )
    await assert.rejects(restart(old.client), {
      code: 'restart-failed',
      message: new RegExp(`old one goes on: port ${port} is taken by `),
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
})
