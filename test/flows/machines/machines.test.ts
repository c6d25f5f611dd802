import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { type EventRecord, type Machine, statusSchema } from '../../../shared/api/api.ts'
import { run } from '../../cli/support/cli.ts'
import { makeClaudeStandIn } from '../../support/claude-stand-in.ts'
import { type RunningDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { examined } from '../../support/daemon/doctor.ts'
import { newQueueKey, startMachine, textsInMemory } from '../../support/daemon/machines.ts'
import { type Reports, startReports } from '../../support/daemon/reports.ts'
import { type GitServer, startGitServer } from '../../support/servers/git-server.ts'
import { send } from '../../support/servers/http.ts'
import { type Broker, startBroker } from '../../support/servers/nats.ts'
import { githubBody, githubHeaders } from '../../support/servers/sign.ts'
import { temporaryFolder } from '../../support/temporary.ts'
import { json, startTargetServer, type TargetServer } from '../../support/servers/target-server.ts'

const secret = 'the-secret-of-the-webhook'
const token = 'xoxb-the-token-of-the-target'
const channel = '#the-channel-of-the-answer'
const key = newQueueKey()
const canary = 'a-canary-in-prompt-and-answer'

describe('a receiver and two workers', () => {
  let broker: Broker
  let slack: TargetServer
  let reports: Reports
  let git: GitServer
  let receiver: RunningDaemon
  const workers: RunningDaemon[] = []

  let startWorker: (name: string) => Promise<RunningDaemon>

  const agents = (command: string) => `
agents:
  echo: { kind: echo }
  slow: { kind: command, command: ${command}, concurrency: 2 }
  single: { kind: command, command: ${command} }
  claude: { kind: claude, sandbox: 'off' }
`
  before(async () => {
    broker = await startBroker()
    git = await startGitServer(undefined, 'acme/app')
    const base = await git.git('rev-parse', 'HEAD')
    await git.push({ 'src/a.ts': 'one\n' })
    slack = await startTargetServer(json(200, { ok: true, ts: '1.1' }))
    reports = await startReports()
    const shared = { servers: broker.url, key }
    receiver = await startMachine({
      ...shared,
      role: 'receiver',
      queue: 'max_events: 5',
      env: `HOOK_SECRET=${secret}\nSLACK_TOKEN=${token}\n`,
      gateway: `targets: { slack: { api_url: "${slack.origin}", token_env: SLACK_TOKEN } }\n`,
      agents: agents('["false"]'),
      webhooks: `
webhooks:
  - { path: /echo, agent: echo, prompt_template: "{{event.name}}" }
  - { path: /slow, agent: slow, prompt_template: "{{event.name}}" }
  - path: /code
    agent: echo
    workspace: { repo: '${git.url}', ref: main, base: '${base}' }
    context: [files]
    prompt_template: "{{event.name}} {{context.files}}"
  - { path: /single, agent: single, prompt_template: "{{event.name}}" }
  - { path: /talk, agent: claude, prompt_template: "{{event.name}}", session: '{{webhook.path}}' }
  - path: /signed
    agent: single
    prompt_template: "{{event.name}}"
    signature_scheme: github
    secret_env: HOOK_SECRET
    deliver_to: "slack:${channel}"
  - path: /newest
    agent: slow
    prompt_template: "{{event.name}}"
    coalesce: { key: all, running: cancel }
`,
    })
    const claude = await makeClaudeStandIn(join(await temporaryFolder(), 'none'))
    startWorker = async (name) =>
      startMachine({
        ...shared,
        role: 'worker',
        agents: agents(reports.named(name)),
        variables: {
          HOME: await temporaryFolder(),
          PATH: [claude.folder, process.env['PATH']].join(delimiter),
        },
      })
    for (const name of ['first', 'second']) workers.push(await startWorker(name))
  })
  after(async () => {
    slack.close()
    git.close()
    reports.close()
    for (const daemon of [receiver, ...workers]) assert.equal(await daemon.stop(), 0)
    await broker.stop()
  })

  const post = async (path: string, name: string, more: Record<string, string> = {}) => {
    const headers = {
      'content-type': 'application/json',
      'x-github-delivery': name,
      ...more,
    }
    return send(`${receiver.url}${path}`, {
      headers,
      body: JSON.stringify({ name }),
    })
  }
  const accepted = async (path: string, name: string): Promise<string> => {
    const reply = await post(path, name)
    assert.equal(reply.status, 202, reply.text)
    return String(reply.json()['id'])
  }
  const event = (id: string) => receiver.client.get<EventRecord>(`/events/${id}`)
  const cancel = (id: string) => receiver.client.post(`/events/${id}/cancel`)

  it('run an event on a worker, and the receiver has its answer', async () => {
    const { state, result, machine, promptSize, sandbox } = await untilFinished(
      receiver,
      await accepted('/echo', 'hello'),
    )
    assert.deepEqual([state, result, promptSize, sandbox], ['done', 'hello', 5, undefined])
    assert.ok(machine)
  })

  it('have a history each: of what a machine received or ran, and forgets on its own', async () => {
    const id = await accepted('/echo', 'history')
    await untilFinished(receiver, id)
    const isKept = async ({ client, home }: RunningDaemon) => {
      // A list writes what waits.
      await client.get('/events?since=1h')
      const folder = join(home.root, 'history')
      const names = await readdir(folder).catch(() => [])
      const texts = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')))
      return texts.join('').includes(id)
    }
    const kept = async () => Promise.all([receiver, ...workers].map(isKept))
    // A worker may learn a moment later that its answer has arrived.
    while ((await kept()).filter(Boolean).length < 2)
      await new Promise((resolve) => setTimeout(resolve, 20))
    await receiver.client.delete(`/events/${id}`)
    const [atReceiver, ...atWorkers] = await kept()
    assert.equal(atReceiver, false)
    assert.equal(atWorkers.filter(Boolean).length, 1)
  })

  it('are shown by status, metrics, events and doctor', async () => {
    const getStatus = async () => statusSchema.parse(await receiver.client.get('/status'))
    let status = await getStatus()
    // A worker listens before it is connected, and tells of a run that has ended with its next sign of life.
    while (
      status.machines?.length !== 3 ||
      status.machines.some(({ agents }) => agents.some(({ running }) => running > 0))
    ) {
      await new Promise((resolve) => setTimeout(resolve, 50))
      status = await getStatus()
    }
    const { broker: found, machines } = status
    assert.deepEqual(
      [found?.connected, found?.server, found?.problem, found?.redelivered],
      [true, `127.0.0.1:${broker.port}`, undefined, 0],
    )
    assert.deepEqual(machines.map(({ role }) => role).toSorted(), ['receiver', 'worker', 'worker'])
    const names = ({ agents: all }: Machine) => all.map(({ name, free }) => `${name} ${free}`)
    const worker = machines.find(({ role }) => role === 'worker')
    assert.deepEqual(worker && names(worker), ['echo 1', 'slow 2', 'single 1', 'claude 1'])
    const headers = { authorization: `Bearer ${receiver.apiToken}` }
    const { text } = await send(`${receiver.url}/metrics`, { method: 'GET', headers })
    for (const line of [
      'doorward_broker_connected 1',
      'doorward_broker_waiting 0',
      'doorward_broker_redeliveries_total 0',
      'doorward_machines{role="worker"} 2',
      `doorward_machine_agents_free{machine="${worker?.name}",agent="slow"} 2`,
    ])
      assert.ok(text.split('\n').includes(line), `${line} is not in ${text}`)
    const { of } = await examined(receiver.home, { NATS_URL: broker.url, DOORWARD_QUEUE_KEY: key })
    assert.deepEqual(
      of('machines').map(({ name, status: of }) => [name, of]),
      [
        ['broker', 'ok'],
        ['machines', 'ok'],
      ],
    )
    assert.match(of('machines', 'broker')[0]?.detail ?? '', /nats-server 2\.\d+.*, in memory/)
    const [event] = (await receiver.client.get<{ events: EventRecord[] }>('/events')).events
    const { stdout } = await run(['events', 'show', event?.id ?? ''], { home: receiver.home })
    assert.match(stdout, new RegExp(`machine +${event?.machine}`))
  })

  it('recognize a repeated delivery', async () => {
    const id = await accepted('/echo', 'twice')
    const again = await post('/echo', 'twice')
    assert.deepEqual([again.json()['id'] === id, again.json()['status']], [false, 'duplicate'])
  })

  it('run no more of an agent at once than its concurrency, over all machines', async () => {
    const ids = [await accepted('/single', 'one'), await accepted('/single', 'two')]
    const first = await reports.next()
    // Both workers are free, and a run of another agent passes it.
    assert.equal((await untilFinished(receiver, await accepted('/echo', 'passes'))).state, 'done')
    assert.equal(reports.unread(), 0)
    assert.deepEqual(
      (await Promise.all(ids.map(event))).map(({ state }) => state),
      ['running', 'queued'],
    )
    first.release()
    ;(await reports.next()).release()
    for (const id of ids) {
      const { state, sandbox } = await untilFinished(receiver, id)
      assert.deepEqual([state, sandbox], ['done', null])
    }
  })

  it('answer 503 with Retry-After when the queue is full, and run everything that was accepted', async () => {
    const started = [await accepted('/single', 'runs')]
    const runs = await reports.next()
    let full = await post('/single', 'waits')
    for (let n = 0; full.status === 202; n += 1) {
      started.push(String(full.json()['id']))
      assert.ok(n < 10)
      full = await post('/single', `waits ${n}`)
    }
    assert.deepEqual([full.status, full.json()['code']], [503, 'queue-full'])
    assert.ok(Number(full.headers['retry-after']) > 0)
    runs.release()
    for (const _ of started.slice(1)) (await reports.next()).release()
    for (const id of started) assert.equal((await untilFinished(receiver, id)).state, 'done')
  })

  it('cancel an event that waits, and one that runs', async () => {
    const running = await accepted('/single', 'is cancelled')
    await reports.next()
    const waiting = await accepted('/single', 'is cancelled before')
    await cancel(waiting)
    assert.deepEqual(toEnd(await untilFinished(receiver, waiting)), [
      'dropped',
      'queue',
      'event-cancelled',
    ])
    await cancel(running)
    assert.deepEqual(toEnd(await untilFinished(receiver, running)), [
      'failed',
      'agent',
      'event-cancelled',
    ])
    const next = await accepted('/single', 'next')
    const report = await reports.next()
    assert.equal(report.prompt, 'next')
    report.release()
    assert.equal((await untilFinished(receiver, next)).state, 'done')
  })

  it('cancel the run of an event that a newer one of its key replaces', async () => {
    const older = await accepted('/newest', 'older')
    assert.equal((await reports.next()).prompt, 'older')
    const newer = await accepted('/newest', 'newer')
    const { state, code } = await untilFinished(receiver, older)
    assert.deepEqual([state, code], ['filtered', 'superseded'])
    const report = await reports.next()
    assert.equal(report.prompt, 'newer')
    report.release()
    assert.equal((await untilFinished(receiver, newer)).state, 'done')
  })

  it('keep targets and secrets at the receiver, and texts from the broker', async () => {
    const body = githubBody('pull_request', { name: canary })
    const headers = githubHeaders(body, secret)
    const reply = await send(`${receiver.url}/signed`, { headers, body })
    assert.equal(reply.status, 202, reply.text)
    const report = await reports.next()
    const worker = workers[report.name === 'first' ? 0 : 1]
    const kept = [secret, token, channel]
    // The worker has what it runs, so a text in its memory is found.
    assert.deepEqual(await textsInMemory(worker?.process.pid, [canary, ...kept]), [canary])
    report.release()
    assert.equal((await untilFinished(receiver, String(reply.json()['id']))).state, 'done')
    assert.deepEqual(
      slack.requests.map(({ fields }) => fields['channel']),
      [channel],
    )
    assert.match(slack.requests[0]?.text ?? '', new RegExp(canary))
    assert.match(broker.log(), /doorward\.run\.single/)
    for (const text of [canary, ...kept]) {
      assert.ok(!broker.log().includes(text), text)
      assert.equal(await broker.hasOnDisk(text), false)
    }
    for (const { home, stdout, stderr } of [receiver, ...workers])
      for (const text of [canary, ...kept])
        assert.ok(!`${stdout()}${stderr()}${await readFile(home.log, 'utf8')}`.includes(text), text)
  })

  it('say what an agent really had, and keep its whole prompt where it ran', async () => {
    const reply = await post('/code', 'see')
    const done = await untilFinished(receiver, String(reply.json()['id']))
    assert.equal(done.state, 'done', done.detail)
    const { id, result = '', promptSize, context, machine } = done
    assert.match(result, /^see added src\/a\.ts/)
    const bytes = result.length - 'see '.length
    assert.deepEqual(
      [promptSize, context],
      [result.length, [{ name: 'files', bytes, leftOut: null }]],
    )
    const ask = (daemon: RunningDaemon) => daemon.client.get(`/events/${id}/prompt`)
    await assert.rejects(ask(receiver), {
      code: 'prompt-not-found',
      hint: `it was made on the machine ${machine}, which may still have it`,
    })
    const answers = await Promise.allSettled(workers.map(ask))
    const there = answers.flatMap((one) => (one.status === 'fulfilled' ? one.value : []))
    assert.deepEqual(there, [{ prompt: result }])
  })

  it('take no more on a worker that stops, which finishes what it runs', async () => {
    const id = await accepted('/slow', 'runs on')
    const report = await reports.next()
    const stopped = workers.splice(report.name === 'first' ? 0 : 1, 1)[0]
    const stop = stopped?.stop()
    const others = [await accepted('/slow', 'elsewhere'), await accepted('/slow', 'there too')]
    const next = await reports.next()
    assert.notEqual(next.name, report.name)
    next.release()
    report.release()
    const last = await reports.next()
    assert.equal(last.name, next.name)
    last.release()
    for (const each of [id, ...others])
      assert.equal((await untilFinished(receiver, each)).state, 'done')
    assert.equal(await stop, 0)
  })

  it('say whose a conversation was that another one begins anew', async () => {
    const talk = async (words: string) => untilFinished(receiver, await accepted('/talk', words))
    const first = await talk('say:one')
    assert.deepEqual(first.session, { key: '/talk', turn: 1, state: 'new' }, first.detail)
    const again = await talk('say:two')
    assert.deepEqual([again.session?.state, again.result], ['resumed', 'one,two'])
    const [old] = workers.splice(0, 1, await startWorker('third'))
    assert.equal(await old?.stop(), 0)
    const elsewhere = await talk('say:three')
    const why = `the earlier one is on the machine ${first.machine}`
    assert.deepEqual(elsewhere.session, { key: '/talk', turn: 1, state: 'anew', why })
    assert.equal(elsewhere.result, 'three')
    assert.match(elsewhere.detail ?? '', new RegExp(`a new conversation was started: ${why}`))
  })
})

const toEnd = ({ state, stage, code }: EventRecord) => [state, stage, code]
