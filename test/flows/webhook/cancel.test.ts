import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type EventDetail, type EventRecord, eventSchema } from '../../../shared/api/api.ts'
import { run } from '../../cli/support/cli.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { fixtureAgent, pidsIn, waitForProcessExit } from '../../support/fixtures.ts'
import { send } from '../../support/servers/http.ts'
import { type Reports, startReports } from '../../support/daemon/reports.ts'
import { restart, untilExit } from '../../support/daemon/restart.ts'
import { deliver, inService, restartedDaemons } from '../../support/daemon/restarted-daemons.ts'
import { type TargetServer, json, startTargetServer } from '../../support/servers/target-server.ts'
import { temporaryFolder } from '../../support/temporary.ts'

describe('an event that is cancelled', () => {
  let daemon: RunningDaemon
  let reports: Reports
  let slack: TargetServer
  let folder: string

  before(async () => {
    reports = await startReports()
    slack = await startTargetServer(json(200, { ok: true }))
    folder = await temporaryFolder()
    const stubborn = JSON.stringify(fixtureAgent('ignores-sigterm', join(folder, 'pids')))
    daemon = await startDaemon({
      env: 'SLACK_TOKEN=xoxb-token\n',
      gateway: `
oauth: { callback_port: 0 }
targets: { slack: { api_url: "${slack.origin}", token_env: SLACK_TOKEN } }
`,
      agents: `
agents:
  echo: { kind: echo }
  slow: { kind: command, command: ${reports.command} }
  stubborn: { kind: command, command: ${stubborn} }
`,
      webhooks: `
webhooks:
  - { path: /slow, agent: slow, prompt_template: "{{event.name}}" }
  - { path: /stubborn, agent: stubborn, prompt_template: "{{event.name}}" }
  - { path: /slack, agent: echo, prompt_template: "{{event.name}}", deliver_to: "slack:#general" }
`,
    })
  })
  after(async () => {
    reports.close()
    slack.close()
    assert.equal(await daemon.stop(), 0)
  })

  const post = async (path: string, name: string, id = name) => {
    const headers = { 'content-type': 'application/json', 'x-github-delivery': id }
    const reply = await send(`${daemon.url}${path}`, { headers, body: JSON.stringify({ name }) })
    return reply.json() as { id: string; status: string }
  }
  const cancel = async (id: string) => daemon.client.post<EventRecord>(`/events/${id}/cancel`)
  const outcome = ({ state, stage, code }: EventRecord) => [state, stage, code]

  it('is dropped when it waits, and its sender may deliver it again', async () => {
    const running = await post('/slow', 'first')
    const report = await reports.next()
    const waiting = await post('/slow', 'second')
    assert.equal((await post('/slow', 'second')).status, 'duplicate')
    const reply = await send(`${daemon.url}/events/${waiting.id}/cancel`, {
      method: 'POST',
      headers: { authorization: `Bearer ${daemon.apiToken}` },
    })
    assert.equal(reply.status, 202)
    const record = eventSchema.parse(reply.json())
    assert.deepEqual(outcome(record), ['dropped', 'queue', 'event-cancelled'])
    assert.equal(record.detail, 'it was cancelled before its turn came')
    const again = await post('/slow', 'second')
    assert.equal(again.status, 'accepted')
    report.release()
    assert.equal((await untilFinished(daemon, running.id)).state, 'done')
    const second = await reports.next()
    assert.equal(second.prompt, 'second')
    second.release()
    assert.equal((await untilFinished(daemon, again.id)).state, 'done')
    assert.equal(reports.unread(), 0)
  })

  it('ends its agent, fails, and can be run again', async () => {
    const { id } = await post('/slow', 'x')
    await reports.next()
    const asked = await cancel(id)
    assert.equal(asked.state, 'running')
    const event = await untilFinished(daemon, id)
    assert.deepEqual(outcome(event), ['failed', 'agent', 'event-cancelled'])
    assert.equal(event.detail, 'it was cancelled while its agent ran')
    await daemon.client.post(`/events/${id}/retry`)
    ;(await reports.next()).release()
    const retried = await untilFinished(daemon, id)
    assert.deepEqual([retried.state, retried.result, retried.attempts], ['done', 'answer to x', 2])
    assert.equal(retried.code, undefined)
  })

  it('kills a program that ignores SIGTERM after 5 seconds, with everything it started', async function () {
    if (process.platform === 'win32') return this.skip()
    this.timeout(30_000)
    const { id } = await post('/stubborn', 'x')
    const pids = await pidsIn(folder)
    assert.equal(pids.length, 3)
    const { code, stdout, stderr } = await run(['events', 'cancel', id], { home: daemon.home })
    assert.deepEqual([code, stdout], [0, `${id} failed\n`])
    assert.match(stderr, /stopping what runs/)
    for (const pid of pids) await waitForProcessExit(pid)
    const event = await daemon.client.get<EventDetail>(`/events/${id}`)
    assert.deepEqual(outcome(event), ['failed', 'agent', 'event-cancelled'])
    const { agentMs = 0 } = event.durations
    assert.ok(agentMs >= 5000 && agentMs < 10_000, String(agentMs))
    await rm(join(folder, 'pids'))
    return undefined
  })

  it('ends its delivery, and a retry only delivers', async () => {
    const arrived = new Promise<void>((resolve) => slack.next(() => resolve()))
    const { id } = await post('/slack', 'hello')
    await arrived
    assert.equal((await cancel(id)).state, 'delivering')
    const event = await untilFinished(daemon, id)
    assert.deepEqual(outcome(event), ['failed', 'deliver', 'event-cancelled'])
    assert.equal(event.detail, 'it was cancelled while its answer was being delivered')
    assert.deepEqual([event.result, event.targets[0]?.state], ['hello', 'failed'])
    assert.match(event.targets[0]?.detail ?? '', /slack did not respond before the event was canc/)
    await daemon.client.post(`/events/${id}/retry`)
    assert.equal((await untilFinished(daemon, id)).state, 'done')
  })

  it('is refused when it is final already, and when there is no such event', async () => {
    const { id } = await post('/slack', 'done')
    assert.equal((await untilFinished(daemon, id)).state, 'done')
    await assert.rejects(cancel(id), {
      code: 'event-not-cancellable',
      message: /it is done already/,
    })
    await assert.rejects(cancel('evt_nothing'), { code: 'event-not-found' })
    const refused = await run(['events', 'cancel', id, '--json'], { home: daemon.home })
    assert.deepEqual([refused.code, refused.stdout], [1, ''])
    assert.match(refused.stderr, /event-not-cancellable/)
  })
})

describe('an event that the daemon before a restart still runs', () => {
  const { startWithHeldAgent } = restartedDaemons()

  it('is not cancelled: the error says what ends it', async () => {
    const { agent, daemon: old } = await startWithHeldAgent()
    const { id } = await deliver(old.url, { n: 1 })
    const held = await agent.next()
    await restart(old.client)
    const now = await inService(old)
    await assert.rejects(now.client.post(`/events/${id}/cancel`), {
      code: 'event-not-cancellable',
      hint: 'wait for its end, or stop both daemons: doorward daemon stop',
    })
    held.answer('well')
    assert.equal((await untilFinished(now, id)).state, 'done')
    assert.equal(await untilExit(old), '0')
    now.client.close()
  })
})
