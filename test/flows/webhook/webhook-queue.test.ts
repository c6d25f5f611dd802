import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { EventRecord, Status } from '../../../shared/api/api.ts'
import { run } from '../../cli/support/cli.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { fixtureAgent, waitForProcessExit } from '../../support/fixtures.ts'
import { type Reply, send } from '../../support/servers/http.ts'
import { openRaw } from '../../support/servers/raw.ts'
import { untilText } from '../../support/until-text.ts'
import { type Reports, startReports } from '../../support/daemon/reports.ts'
import { temporaryFolder } from '../../support/temporary.ts'

/** Nothing listens there. */
const downTarget =
  "targets: { http: { down: { url: 'http://127.0.0.1:9/', secret_env: DOWN_SECRET } } }\n"
const downSecret = `DOWN_SECRET=whsec_${Buffer.alloc(32, 7).toString('base64')}\n`

describe('the queue of the daemon', () => {
  let reports: Reports
  let daemon: RunningDaemon
  const start = async (queue: string, more = ''): Promise<void> => {
    daemon = await startDaemon({
      gateway: `queue: ${queue}\noauth: { callback_port: 0 }\n${downTarget}`,
      env: downSecret,
      agents: `
agents:
  echo: { kind: echo }
  one: { kind: command, command: ${reports.command} }
  two: { kind: command, command: ${reports.command}, concurrency: 2 }
${more}`,
      webhooks: `
webhooks:
  - { path: /one, agent: one, prompt_template: "{{event.name}}" }
  - { path: /two, agent: two, prompt_template: "{{event.name}}" }
  - { path: /down, agent: echo, prompt_template: x, deliver_to: 'http:down' }
  - { path: /ignores, agent: ${more === '' ? 'one' : 'ignores'}, prompt_template: "x" }
`,
    })
  }
  const post = (path: string, name: string, more: Record<string, string> = {}): Promise<Reply> =>
    send(`${daemon.url}${path}`, {
      headers: { 'content-type': 'application/json', ...more },
      body: JSON.stringify({ name, padding: 'canary' }),
    })
  const accepted = async (path: string, name: string): Promise<string> => {
    const reply = await post(path, name)
    assert.equal(reply.status, 202, reply.text)
    return String(reply.json()['id'])
  }
  const full = async (path: string, name: string) => {
    const reply = await post(path, name)
    assert.deepEqual([reply.status, reply.json()['code']], [503, 'queue-full'])
    assert.ok(Number(reply.headers['retry-after']) > 0)
  }
  const counts = async () => (await daemon.client.get<Status>('/status')).queue
  const stateOf = async (id: string) =>
    (await daemon.client.get<EventRecord>(`/events/${id}`)).state
  const ended = () =>
    daemon.process.exitCode === null ? once(daemon.process, 'exit') : Promise.resolve()

  beforeEach(async () => {
    reports = await startReports()
  })
  afterEach(async () => {
    reports.close()
    await daemon.stop()
  })

  it('answers before the agent has done anything, and runs one at a time of an agent', async () => {
    await start('{ max_events: 10 }')
    const first = await accepted('/one', 'first')
    const second = await accepted('/one', 'second')
    const report = await reports.next()
    assert.equal(report.prompt, 'first')
    assert.deepEqual([await stateOf(first), await stateOf(second)], ['running', 'queued'])
    assert.equal(reports.unread(), 0)
    report.release()
    assert.equal((await untilFinished(daemon, first)).result, 'answer to first')
    ;(await reports.next()).release()
    assert.equal((await untilFinished(daemon, second)).state, 'done')
    assert.deepEqual(await counts(), { waiting: 0, running: 0, bytes: 0 })
  })

  it('keeps nobody from an agent while a target that is down is tried again', async () => {
    const webhooks = `webhooks:
  - { path: /down, agent: echo, prompt_template: x, deliver_to: 'http:down' }
  - { path: /up, agent: echo, prompt_template: x }
`
    daemon = await startDaemon({
      gateway: `queue: { concurrency: 1, drain_timeout: 1s }
oauth: { callback_port: 0 }
${downTarget}`,
      agents: 'agents: { echo: { kind: echo } }\n',
      webhooks,
      env: downSecret,
    })
    const first = await accepted('/down', 'first')
    assert.equal((await untilFinished(daemon, await accepted('/up', 'second'))).state, 'done')
    assert.equal(await stateOf(first), 'delivering')
  })

  it('runs as many at once as an agent allows, and no more over all of them', async () => {
    await start('{ concurrency: 3 }')
    const ids = []
    for (const name of ['a', 'b', 'c']) ids.push(await accepted('/two', name))
    for (const name of ['d', 'e']) ids.push(await accepted('/one', name))
    const running = [await reports.next(), await reports.next(), await reports.next()]
    assert.deepEqual(running.map(({ prompt }) => prompt).toSorted(), ['a', 'b', 'd'])
    const { waiting, running: busy } = await counts()
    assert.deepEqual([waiting, busy, reports.unread()], [2, 3, 0])
    for (const { release } of running) release()
    ;(await reports.next()).release()
    ;(await reports.next()).release()
    for (const id of ids) assert.equal((await untilFinished(daemon, id)).state, 'done')
  })

  it('is full by count: 503 with Retry-After, and room again once one starts', async () => {
    await start('{ max_events: 2 }')
    await accepted('/one', 'runs')
    const report = await reports.next()
    await accepted('/one', 'waits')
    await accepted('/two', 'starts')
    const other = await reports.next()
    await accepted('/one', 'waits too')
    await full('/one', 'no room')
    await full('/two', 'no room for another agent either')
    report.release()
    const next = await reports.next()
    await accepted('/one', 'room again')
    for (const { release } of [other, next]) release()
    ;(await reports.next()).release()
    ;(await reports.next()).release()
  })

  it('is full by bytes: what waits and what is being read count together', async () => {
    await start('{ max_bytes: 300b }')
    const name = 'x'.repeat(100)
    await accepted('/one', name)
    const report = await reports.next()
    await accepted('/one', name)
    assert.equal((await counts()).bytes, 100)
    await accepted('/one', name)
    // Two prompts of 100 bytes wait: a body of 100 and more does not fit any more.
    await full('/one', name)
    assert.equal((await counts()).bytes, 200)
    report.release()
    for (let left = 2; left > 0; left -= 1) (await reports.next()).release()
  })

  it('finishes what it has accepted when it is told to stop, and takes no more', async () => {
    await start('{ drain_timeout: 15s }')
    await accepted('/one', 'runs')
    await accepted('/one', 'waits')
    const report = await reports.next()
    const logged = untilText(daemon.home.logs, basename(daemon.home.log), /"stopping"/)
    daemon.process.kill('SIGTERM')
    await logged
    const refused = await post('/one', 'too late')
    assert.deepEqual([refused.status, refused.json()['code']], [503, 'stopping'])
    assert.ok(Number(refused.headers['retry-after']) > 0)
    report.release()
    const last = await reports.next()
    assert.equal(last.prompt, 'waits')
    last.release()
    await ended()
    assert.equal(daemon.process.exitCode, 0)
    assert.doesNotMatch(await readFile(daemon.home.log, 'utf8'), /dropped/)
  })

  it('ends what waits and runs when that takes too long, and logs what a person needs to send it again', async () => {
    await start('{ drain_timeout: 100ms }')
    const running = await post('/one', 'canary runs', { 'x-github-delivery': 'delivery-6' })
    await reports.next()
    const waiting = await post('/one', 'canary waits', { 'x-github-delivery': 'delivery-7' })
    const stop = await daemon.client.post('/daemon/shutdown')
    assert.ok(stop)
    await ended()
    assert.equal(daemon.process.exitCode, 0)
    const log = await readFile(daemon.home.log, 'utf8')
    const lines = log
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    const toldOf = (reply: Reply) => {
      const told = lines.filter(({ event }) => event === reply.json()['id'])
      assert.equal(told.length, 1)
      const { time, receivedAt, event: _, ...line } = told[0] ?? {}
      assert.ok(Date.parse(String(receivedAt)) < Date.parse(String(time)))
      return line
    }
    assert.deepEqual(toldOf(waiting), {
      level: 40,
      msg: 'event dropped',
      webhook: '/one',
      stage: 'queue',
      deliveryId: 'delivery-7',
      size: 42,
    })
    assert.deepEqual(toldOf(running), {
      level: 40,
      msg: 'event not finished',
      webhook: '/one',
      state: 'failed',
      stage: 'agent',
      code: 'agent-stopped',
      deliveryId: 'delivery-6',
      size: 41,
    })
    assert.doesNotMatch(log, /canary/)
  })

  it('logs a failed event with its stage and code, and nothing of what failed', async () => {
    await start('{ max_events: 10 }', '  ignores: { kind: command, command: [/no/such/agent] }\n')
    const id = await accepted('/ignores', 'canary')
    const { stage, code } = await untilFinished(daemon, id)
    assert.deepEqual([stage, code], ['agent', 'agent-not-found'])
    const log = await untilText(daemon.home.logs, basename(daemon.home.log), /"msg":"event"/)
    const line = log.split('\n').find((text) => text.includes(id)) ?? '{}'
    const { time, level, ...told } = JSON.parse(line) as Record<string, unknown>
    assert.ok(time && level)
    const event = { event: id, webhook: '/ignores', state: 'failed', stage, code, msg: 'event' }
    assert.deepEqual(told, event)
  })

  it('says on the command line what a stop ended before it was finished', async () => {
    await start('{ drain_timeout: 100ms }')
    const posted = async (path: string, deliveryId: string): Promise<string> => {
      const reply = await post(path, 'canary', { 'x-github-delivery': deliveryId })
      return String(reply.json()['id'])
    }
    const runs = await posted('/one', 'delivery-8')
    await reports.next()
    const waits = await posted('/one', 'delivery-9')
    const delivers = await posted('/down', 'delivery-10')
    while ((await stateOf(delivers)) !== 'delivering') assert.equal(daemon.process.exitCode, null)
    const { code, stderr } = await run(['daemon', 'stop'], { home: daemon.home })
    assert.equal(code, 0)
    const lineOf = (id: string): string => {
      const [line = '', ...more] = stderr.split('\n').filter((text) => text.includes(id))
      assert.deepEqual(more, [])
      return line.replace(/received \S+,/, 'received then,')
    }
    const again = 'deliver it again from the sender'
    const dropped = `dropped ${waits} of /one, received then, delivery delivery-9: ${again}`
    assert.equal(lineOf(waits), dropped)
    const stopped = `failed ${runs} of /one, received then, delivery delivery-8: its agent was stopped; ${again}`
    assert.equal(lineOf(runs), stopped)
    const failed = `failed ${delivers} of /down, received then, delivery delivery-10: the delivery of its answer failed (http:down: the server cannot be reached`
    assert.ok(lineOf(delivers).startsWith(failed), lineOf(delivers))
    assert.match(lineOf(delivers), new RegExp(`the daemon stops.*; ${again}$`))
    assert.doesNotMatch(stderr, /canary/)
    const log = await readFile(daemon.home.log, 'utf8')
    const line = log.split('\n').find((text) => text.includes(delivers)) ?? ''
    assert.match(line, /"stage":"deliver".*"deliveryId":"delivery-10",.*"msg":"event not finished"/)
  })

  it('is not kept from ending by a sender in the middle of a body', async () => {
    await start('{ drain_timeout: 15s }')
    const socket = await openRaw(
      daemon.url,
      'POST /one HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nx',
    )
    assert.equal(await daemon.stop(), 0)
    const now = Date.now()
    const last = (await readFile(daemon.home.log, 'utf8')).trim().split('\n').at(-1) ?? '{}'
    const { msg, time } = JSON.parse(last) as { msg: string; time: string }
    assert.equal(msg, 'stopped')
    assert.ok(
      now - Date.parse(time) < 1500,
      `ended ${now - Date.parse(time)} ms after its last word`,
    )
    socket.destroy()
  })

  it('says at Ctrl-C what it waits for, and ends soon at a second signal, with an agent that ignores it and all that this has started', async () => {
    const folder = await temporaryFolder()
    const command = JSON.stringify(fixtureAgent('ignores-sigterm', join(folder, 'pids')))
    await start('{ drain_timeout: 15s }', `  ignores: { kind: command, command: ${command} }\n`)
    await accepted('/ignores', 'x')
    const pids = (await untilText(folder, 'pids', /./)).split(' ').map(Number)
    const logged = untilText(daemon.home.logs, basename(daemon.home.log), /"stopping"/)
    daemon.process.kill('SIGINT')
    await logged
    const asked = performance.now()
    daemon.process.kill('SIGTERM')
    await ended()
    assert.equal(daemon.process.exitCode, 0)
    assert.match(daemon.stderr(), /^stopping when an accepted event is finished; Ctrl-C again/)
    assert.ok(performance.now() - asked < 4000, `took ${performance.now() - asked} ms`)
    assert.equal(pids.length, 3)
    for (const pid of pids) await waitForProcessExit(pid)
  })
})
