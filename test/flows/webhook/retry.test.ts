import assert from 'node:assert/strict'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  type EventDetail,
  type EventRecord,
  eventSchema,
  statusSchema,
} from '../../../shared/api/api.ts'
import { run } from '../../cli/support/cli.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { followEvents } from '../../support/daemon/events.ts'
import { type Reply, send } from '../../support/servers/http.ts'
import { type Reports, startReports } from '../../support/daemon/reports.ts'
import { temporaryFolder } from '../../support/temporary.ts'

const json = { 'content-type': 'application/json' }

describe('a failed event that is retried', () => {
  let reports: Reports
  let daemon: RunningDaemon
  let missing: string
  const agents = (mended: string) => `
agents:
  echo: { kind: echo }
  slow: { kind: command, command: ${reports.command} }
  ${mended}
`
  const broken = `fails: { kind: command, command: ["${process.execPath}", -e, "process.exit(3)"] }`
  const configure = async (mended: string) => {
    await writeFile(join(daemon.home.config, 'agents.yaml'), agents(mended))
    await daemon.client.post('/daemon/reload')
  }
  const post = (path: string, name: string, id?: string): Promise<Reply> =>
    send(`${daemon.url}${path}`, {
      headers: { ...json, ...(id !== undefined && { 'x-github-delivery': id }) },
      body: JSON.stringify({ name }),
    })
  const failed = async (path: string, name: string, id?: string): Promise<EventDetail> => {
    const reply = await post(path, name, id)
    const event = await untilFinished(daemon, String(reply.json()['id']))
    assert.equal(event.state, 'failed')
    return event
  }
  const retry = (id: string) => daemon.client.post<EventRecord>(`/events/${id}/retry`)
  const refused = async (id: string, why: RegExp) =>
    assert.rejects(retry(id), (error: { code: string; message: string }) => {
      assert.equal(error.code, 'event-not-retryable')
      assert.match(error.message, why)
      return true
    })

  before(async () => {
    reports = await startReports()
    missing = join(await temporaryFolder(), 'missing')
    daemon = await startDaemon({
      agents: agents(broken),
      webhooks: `
webhooks:
  - { path: /agent, agent: fails, prompt_template: "{{event.name}}" }
  - { path: /gone, agent: fails, prompt_template: "{{event.name}}" }
  - { path: /echo, agent: echo, prompt_template: "{{event.name}}", filter: { name: a } }
  - path: /deliver
    agent: slow
    prompt_template: "{{event.name}}"
    deliver_to: ["file:first-{{event.name}}.md", "file:${missing}/second.md", notify:desktop]
`,
    })
  })
  after(async () => {
    reports.close()
    assert.equal(await daemon.stop(), 0)
  })

  it('stays in the status after later events', async () => {
    const { id } = await failed('/agent', 'x')
    for (let i = 0; i < 11; i += 1) await post('/echo', 'b')
    const { events, failures, lastRun } = statusSchema.parse(await daemon.client.get('/status'))
    assert.ok(events.every(({ state }) => state === 'filtered'))
    assert.equal(lastRun?.id, id)
    assert.deepEqual(
      failures?.map((event) => event.id),
      [id],
    )
    const { stdout } = await run(['status'], { home: daemon.home })
    assert.match(stdout, new RegExp(`Last failures\\n.*/agent at agent.*\\n.*events show ${id}`))
    assert.match(stdout, /newest event: filtered at \/echo, less than a minute ago/)
  })

  it('runs the agent as configured now with the same prompt', async () => {
    const { id, attempts } = await failed('/agent', 'canary', 'r-1')
    assert.equal(attempts, 1)
    await refused((await post('/echo', 'b')).json()['id'] as string, /filter did not match/)
    await configure('fails: { kind: echo }')
    const queued = await retry(id)
    assert.deepEqual(eventSchema.parse(queued), queued)
    assert.deepEqual([queued.state, queued.code, queued.stage], ['queued', undefined, undefined])
    const event = await untilFinished(daemon, id)
    assert.deepEqual([event.state, event.result, event.attempts], ['done', 'canary', 2])
    assert.equal('code' in event || 'detail' in event, false)
    // It is done: a redelivery of the sender is a duplicate.
    assert.equal((await post('/agent', 'canary', 'r-1')).json()['status'], 'duplicate')
    await refused(id, /it is done/)
    await configure(broken)
  })

  it('is refused when the sender has redelivered it, which must not run twice', async () => {
    await configure(broken)
    const { id } = await failed('/agent', 'again', 'r-7')
    // Failed too: no run of this delivery has finished.
    const second = await failed('/agent', 'again', 'r-7')
    await configure('fails: { kind: echo }')
    await retry(second.id)
    assert.equal((await untilFinished(daemon, second.id)).state, 'done')
    await refused(id, new RegExp(`delivered it again, as ${second.id}`))
    await configure(broken)
  })

  it('delivers only to the failed targets, without running the agent again', async () => {
    const running = post('/deliver', 'x')
    const id = String((await running).json()['id'])
    const changes = await followEvents(daemon)
    const report = await reports.next()
    await refused(id, /not finished yet/)
    report.release()
    await changes.next((record) => record.id === id && record.state === 'failed')
    changes.close()
    const before = await daemon.client.get<EventDetail>(`/events/${id}`)
    assert.deepEqual(
      before.targets.map(({ state }) => state),
      ['done', 'failed', 'done'],
    )
    await mkdir(missing)
    await retry(id)
    const event = await untilFinished(daemon, id)
    assert.deepEqual([event.state, event.attempts, event.result], ['done', 2, 'answer to x'])
    assert.deepEqual(
      event.targets.map(({ state, attempts }) => [state, attempts]),
      [
        ['done', 1],
        ['done', 2],
        ['done', 1],
      ],
    )
    assert.equal(reports.unread(), 0)
    assert.match(await readFile(join(missing, 'second.md'), 'utf8'), /answer to x/)
    const first = await readFile(join(daemon.home.root, 'first-x.md'), 'utf8')
    assert.equal(first.match(/answer to x/g)?.length, 1)
  })

  it('is refused when its agent was removed, and for an unknown event', async () => {
    const { id } = await failed('/gone', 'x')
    const webhooks = join(daemon.home.config, 'webhooks.yaml')
    const text = await readFile(webhooks, 'utf8')
    await writeFile(webhooks, 'webhooks: []\n')
    await configure('other: { kind: echo }')
    await refused(id, /no agent fails any more/)
    await writeFile(webhooks, text)
    await configure(broken)
    await assert.rejects(retry('evt_nothing'), { code: 'event-not-found' })
    const [started] = (
      await daemon.client.get<{ events: EventRecord[] }>('/events?state=done')
    ).events.filter(({ kind }) => kind === 'daemon')
    await refused(started?.id ?? '', /no event of a webhook/)
  })

  it('is refused when its agent is now a language model, for which the prompt was not fenced', async () => {
    const { id } = await failed('/agent', 'x')
    await configure('fails: { kind: openai, base_url: "http://127.0.0.1:9/v1", model: m }')
    await refused(id, /made for an agent that is no language model, and fails is one now/)
    await configure(broken)
  })

  it('can be retried from the command line, with its answer or the reason', async () => {
    const { id } = await failed('/agent', 'from the cli')
    const options = { home: daemon.home }
    const again = await run(['events', 'retry', id, '--wait'], options)
    assert.equal(again.code, 1)
    assert.match(again.stderr, /failed at agent/)
    await configure('fails: { kind: echo }')
    const mended = await run(['events', 'retry', id, '--wait'], options)
    assert.deepEqual([mended.code, mended.stdout], [0, 'from the cli\n'])
    const done = await run(['events', 'retry', id, '--json'], options)
    assert.equal(done.code, 1)
    assert.match(done.stderr, /event-not-retryable/)
    await configure(broken)
  })
})
