import assert from 'node:assert/strict'
import type { EventDetail, EventRecord, Status, StatusProblem } from '../../../shared/api/api.ts'
import { run } from '../../cli/support/cli.ts'
import { type RunningDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { examined } from '../../support/daemon/doctor.ts'
import { followEvents } from '../../support/daemon/events.ts'
import { newQueueKey, startMachine } from '../../support/daemon/machines.ts'
import { type Reports, startReports } from '../../support/daemon/reports.ts'
import { storeLogin } from '../../support/providers/stored-login.ts'
import { type GitServer, startGitServer } from '../../support/servers/git-server.ts'
import { send } from '../../support/servers/http.ts'
import { type Broker, startBroker } from '../../support/servers/nats.ts'
import { githubHeaders } from '../../support/servers/sign.ts'

const secret = 'a secret of the tests'
const key = newQueueKey()

describe('rules whose agents run on another machine', () => {
  let broker: Broker
  let reports: Reports
  let git: GitServer
  let base: string
  let receiver: RunningDaemon
  let worker: RunningDaemon
  const others: RunningDaemon[] = []

  const agents = (command: string, tools: string) => `
agents:
  echo: { kind: echo }
  single: { kind: command, command: ${command} }
  review: { kind: claude, tools: ${tools} }
`
  const shared = () => ({ servers: broker.url, key, lostAfter: '3s' })
  const gateway = () => `providers: { github: { token_endpoint: "${git.origin}/token" } }\n`
  before(async () => {
    broker = await startBroker()
    reports = await startReports()
    git = await startGitServer('of-before', 'acme/app')
    base = (await git.git('rev-parse', 'HEAD')).trim()
    receiver = await startMachine({
      ...shared(),
      role: 'receiver',
      env: `HOOK_SECRET=${secret}\n`,
      gateway: gateway(),
      agents: `${agents('["false"]', 'none')}  slow: { kind: echo }\n`,
      webhooks: `
webhooks:
  - { path: /slow, agent: slow, prompt_template: "{{event.name}}" }
  - { path: /review, agent: review, prompt_template: "{{event.name}}" }
  - path: /code
    agent: echo
    prompt_template: ran
    paths: [services/api/**]
    workspace: { repo: acme/app, ref: '{{event.head}}', base: '{{event.base}}' }
  - path: /pulls
    signature_scheme: github
    secret_env: HOOK_SECRET
    agent: single
    prompt_template: '{{event.name}}'
    rules:
      - name: review
        on: [pull_request.opened]
        coalesce: { key: '{{event.number}}', cancel_on: [pull_request.closed] }
      - { name: closed, on: pull_request.closed, agent: echo }
`,
    })
    worker = await startMachine({
      ...shared(),
      role: 'worker',
      gateway: gateway(),
      agents: agents(reports.command, 'read'),
    })
  })
  after(async () => {
    reports.close()
    for (const daemon of [receiver, worker, ...others]) assert.equal(await daemon.stop(), 0)
    git.close()
    await broker.stop()
  })

  const post = async (path: string, payload: object, event = 'any') => {
    const body = JSON.stringify(payload)
    const headers = githubHeaders(body, secret, { 'x-github-event': event })
    const reply = await send(`${receiver.url}${path}`, { headers, body })
    assert.equal(reply.status, 202, reply.text)
    return String(reply.json()['id'])
  }
  const ran = async (path: string, payload: object): Promise<EventDetail> =>
    untilFinished(receiver, await post(path, payload))
  const status = (daemon: RunningDaemon) => daemon.client.get<Status>('/status')
  const workerName = async () =>
    (await status(receiver)).machines?.find(({ agents: all }) =>
      all.some(({ name }) => name === 'review'),
    )?.name ?? ''
  /** The problem of that code, once both machines tell it. */
  const untilTold = async (code: string): Promise<StatusProblem[]> => {
    for (;;) {
      const found = await Promise.all(
        [receiver, worker].map(async (daemon) =>
          (await status(daemon)).problems.find((problem) => problem.code === code),
        ),
      )
      const told = found.flatMap((problem) => problem ?? [])
      if (told.length === 2) return told
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
  const inDoctor = async (daemon: RunningDaemon) => {
    const { of } = await examined(daemon.home, { NATS_URL: broker.url, DOORWARD_QUEUE_KEY: key })
    return of('machines')
      .filter(({ name }) => name === 'agents')
      .map(({ detail }) => detail)
      .toSorted()
  }

  it('say of an agent that no machine has: in its events, status and doctor', async () => {
    const id = await post('/slow', { name: 'waits' })
    const followed = await followEvents(receiver)
    const words = 'no machine that is heard of runs the agent slow'
    const now = await receiver.client.get<EventRecord>(`/events/${id}`)
    const told =
      now.detail === words
        ? now
        : await followed.next((record) => record.id === id && record.detail !== undefined)
    assert.deepEqual([told.state, told.detail], ['queued', words])
    for (const { detail, about } of await untilTold('queue-agent-missing')) {
      assert.equal(detail, `queue: ${words}, which a rule names: its events wait`)
      assert.deepEqual(about, { agent: 'slow' })
    }
    for (const daemon of [receiver, worker])
      assert.match((await inDoctor(daemon)).join('\n'), new RegExp(words))
    // Once a worker has it, it runs.
    others.push(
      await startMachine({
        ...shared(),
        role: 'worker',
        agents: 'agents:\n  slow: { kind: echo }\n',
      }),
    )
    const { state, result, detail } = await untilFinished(receiver, id)
    assert.deepEqual([state, result, detail], ['done', 'waits', undefined])
    followed.close()
    const codes = (await status(receiver)).problems.map(({ code }) => code)
    assert.ok(!codes.includes('queue-agent-missing'))
  })

  it('say of an agent that is set up in another way on a worker', async () => {
    const words = `queue: the agent review on ${await workerName()} differs from that of the receiver in tools`
    for (const { detail, about } of await untilTold('queue-agent-differs')) {
      assert.equal(detail, words)
      assert.deepEqual(about, { agent: 'review' })
    }
    for (const daemon of [receiver, worker])
      assert.ok((await inDoctor(daemon)).some((detail) => detail === words))
  })

  it('name the worker that fails, and the login that it lacks', async () => {
    const head = await git.push({ 'services/api/a.ts': 'a' })
    const failed = await ran('/code', { base, head })
    const name = await workerName()
    assert.deepEqual(
      [failed.state, failed.code, failed.machine],
      ['failed', 'workspace-refused', name],
    )
    const host = new URL(git.origin).host
    assert.equal(
      failed.detail,
      `on ${name}: no login for ${host} opens acme/app: it is private, or does not exist; on that machine: doorward oauth login github`,
    )
    const shown = await run(['events', 'show', failed.id], { home: receiver.home })
    assert.match(
      shown.stdout.replaceAll(/\s+/g, ' '),
      /on that machine: doorward oauth login github/,
    )
    await storeLogin(worker.home, 'github', 'a refresh token')
    await receiver.client.post(`/events/${failed.id}/retry`)
    const { state, result } = await untilFinished(receiver, failed.id)
    assert.deepEqual([state, result], ['done', 'ran'])
  })

  it('ask for the changed files of paths on the worker', async () => {
    const before = await git.push({ 'services/api/b.ts': 'b' })
    const head = await git.push({ 'services/web/a.ts': 'a' })
    const { state, code, detail, result } = await ran('/code', { base: before, head })
    assert.deepEqual([state, code, result], ['filtered', 'paths-unmatched', undefined])
    assert.match(
      detail ?? '',
      /^(the changed file is not|none of \d+ changed files is) one of paths$/,
    )
  })

  it('end by cancel_on what waits at the broker, and what runs on a worker', async () => {
    const pull = (action: string, number: number) =>
      post(
        '/pulls',
        { action, number, name: `${action} ${number}`, pull_request: { number } },
        'pull_request',
      )
    const runs = await pull('opened', 1)
    assert.equal((await reports.next()).prompt, 'opened 1')
    // The worker runs one at a time.
    const waits = await pull('opened', 2)
    for (const number of [2, 1]) {
      const closed = await untilFinished(receiver, await pull('closed', number))
      assert.deepEqual([closed.state, closed.result], ['done', `closed ${number}`])
    }
    const end = async (id: string) => {
      const { state, code, detail } = await untilFinished(receiver, id)
      return [state, code, detail]
    }
    assert.deepEqual(await end(waits), [
      'filtered',
      'superseded',
      'pull_request.closed ended it before its turn came',
    ])
    assert.deepEqual(await end(runs), [
      'filtered',
      'superseded',
      'pull_request.closed ended it while its agent ran',
    ])
    assert.equal(reports.unread(), 0)
  })
})
