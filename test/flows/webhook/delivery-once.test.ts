import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { EventDetail, EventRecord, WebhookSummary } from '../../../shared/api/api.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { type Reply, send } from '../../support/servers/http.ts'
import { type Reports, startReports } from '../../support/daemon/reports.ts'
import { githubHeaders } from '../../support/servers/sign.ts'

const secret = 'a secret of the flow test'
const json = { 'content-type': 'application/json' }

describe('a repeated delivery', () => {
  let reports: Reports
  let daemon: RunningDaemon
  const post = (path: string, name: string, headers: Record<string, string> = {}) => {
    const body = JSON.stringify({ name })
    const all = path === '/signed' ? githubHeaders(body, secret, headers) : { ...json, ...headers }
    return send(`${daemon.url}${path}`, { headers: all, body })
  }
  const named = (id: string) => ({ 'x-github-delivery': id })
  const is = (reply: Reply, status: string): string => {
    assert.deepEqual([reply.status, reply.json()['status']], [202, status], reply.text)
    return String(reply.json()['id'])
  }
  const event = (id: string) => daemon.client.get<EventDetail>(`/events/${id}`)

  before(async () => {
    reports = await startReports()
    daemon = await startDaemon({
      env: `HOOK_SECRET=${secret}\n`,
      gateway: 'queue: { max_events: 2 }\noauth: { callback_port: 0 }\n',
      agents: `
agents:
  echo: { kind: echo }
  slow: { kind: command, command: ${reports.command} }
  fails: { kind: command, command: ["${process.execPath}", -e, "process.exit(3)"] }
`,
      webhooks: `
webhooks:
  - { path: /signed, agent: echo, secret_env: HOOK_SECRET, prompt_template: "{{event.name}}" }
  - { path: /echo, agent: echo, prompt_template: "{{event.name}}" }
  - { path: /slow, agent: slow, prompt_template: "{{event.name}}" }
  - { path: /fails, agent: fails, prompt_template: "{{event.name}}" }
  - { path: /body, agent: echo, prompt_template: "{{event.name}}", dedupe: body }
  - { path: /off, agent: echo, prompt_template: "{{event.name}}", dedupe: off }
  - { path: /own, agent: echo, prompt_template: "{{event.name}}", delivery_id_header: X-My-Id }
  - { path: /some, agent: echo, prompt_template: "{{event.name}}", filter: { name: wanted } }
  - { path: /limited, agent: echo, prompt_template: "{{event.name}}", rate_limit: 2/h }
  - { path: /limited-again, agent: echo, prompt_template: x, rate_limit: 2/h }
  - { path: /limited-signed, agent: echo, secret_env: HOOK_SECRET, prompt_template: x, rate_limit: 1/h }
  - { path: /limited-linear, agent: echo, signature_scheme: linear, secret_env: HOOK_SECRET, prompt_template: x, rate_limit: 1/h }
`,
    })
  })
  after(async () => {
    reports.close()
    assert.equal(await daemon.stop(), 0)
  })

  it('is a duplicate once the first is done, names the first event, and runs nothing', async () => {
    const first = is(await post('/signed', 'a', named('d-1')), 'accepted')
    assert.equal((await untilFinished(daemon, first)).state, 'done')
    const again = is(await post('/signed', 'a', named('d-1')), 'duplicate')
    assert.notEqual(again, first)
    const { state, detail, deliveryId, prompt, attempts } = await event(again)
    assert.deepEqual(
      [state, detail, deliveryId, prompt, attempts],
      ['duplicate', `the same delivery as ${first}`, 'd-1', undefined, 0],
    )
    const { webhooks } = await daemon.client.get<{ webhooks: WebhookSummary[] }>('/webhooks')
    const { counts } = webhooks.find(({ path }) => path === '/signed') ?? {}
    assert.deepEqual([counts?.accepted, counts?.duplicate, counts?.done], [1, 1, 1])
  })

  it('is a duplicate after a stop and a crash, if its event is done', async () => {
    const done = is(await post('/signed', 'b', named('stopped')), 'accepted')
    assert.equal((await untilFinished(daemon, done)).state, 'done')
    const { home } = daemon
    assert.equal(await daemon.stop(), 0)
    daemon = await startDaemon({ home })
    const again = is(await post('/signed', 'b', named('stopped')), 'duplicate')
    assert.equal((await event(again)).detail, `the same delivery as ${done}`)
    // What a crash interrupts, the sender may deliver again.
    is(await post('/slow', 'crash', named('crash')), 'accepted')
    await reports.next()
    const ended = once(daemon.process, 'exit')
    daemon.process.kill('SIGKILL')
    await ended
    daemon.client.close()
    daemon = await startDaemon({ home })
    is(await post('/signed', 'b', named('stopped')), 'duplicate')
    const repeated = is(await post('/slow', 'crash', named('crash')), 'accepted')
    const run = await reports.next()
    run.release()
    assert.equal((await untilFinished(daemon, repeated)).state, 'done')
    const text = await readFile(join(home.run, 'last-day'), 'utf8')
    for (const word of ['stopped', 'crash', '/signed', 'pull_request'])
      assert.ok(!text.includes(word), word)
    assert.equal((await stat(join(home.run, 'last-day'))).mode & 0o777, 0o600)
  })

  it('is accepted once of many at the same time', async () => {
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => post('/signed', 'a', named('at-once'))),
    )
    const statuses = replies.map((reply) => reply.json()['status'])
    assert.equal(statuses.filter((status) => status === 'accepted').length, 1)
    assert.equal(statuses.filter((status) => status === 'duplicate').length, 19)
  })

  it('is a duplicate while the first waits or runs, unless the queue was full', async () => {
    is(await post('/slow', 's-1', named('s-1')), 'accepted')
    const running = await reports.next()
    for (const id of ['s-2', 's-3']) is(await post('/slow', id, named(id)), 'accepted')
    is(await post('/slow', 's-1', named('s-1')), 'duplicate')
    is(await post('/slow', 's-3', named('s-3')), 'duplicate')
    const full = await post('/slow', 's-4', named('s-4'))
    assert.deepEqual([full.status, full.json()['code']], [503, 'queue-full'])
    await daemon.client.post('/daemon/reload')
    is(await post('/slow', 's-1', named('s-1')), 'duplicate')
    assert.equal(reports.unread(), 0)
    running.release()
    const second = await reports.next()
    const last = is(await post('/slow', 's-4', named('s-4')), 'accepted')
    second.release()
    for (let left = 2; left > 0; left -= 1) (await reports.next()).release()
    assert.equal((await untilFinished(daemon, last)).state, 'done')
  })

  it('runs again when it failed', async () => {
    const first = is(await post('/fails', 'a', named('f-1')), 'accepted')
    assert.equal((await untilFinished(daemon, first)).state, 'failed')
    const again = is(await post('/fails', 'a', named('f-1')), 'accepted')
    assert.equal((await untilFinished(daemon, again)).state, 'failed')
  })

  it('is not remembered when it was filtered or refused', async () => {
    is(await post('/some', 'other', named('n-1')), 'filtered')
    is(await post('/some', 'wanted', named('n-1')), 'accepted')
    const forged = { ...named('n-2'), 'x-hub-signature-256': `sha256=${'0'.repeat(64)}` }
    assert.equal((await post('/signed', 'a', forged)).status, 401)
    is(await post('/signed', 'a', named('n-2')), 'accepted')
  })

  it('is answered 429 with Retry-After over the rate limit, and has an event', async () => {
    is(await post('/limited', 'a'), 'accepted')
    is(await post('/limited', 'a'), 'accepted')
    const reply = await post('/limited', 'a')
    assert.deepEqual([reply.status, reply.json()['code']], [429, 'rate-limited'])
    const seconds = Number(reply.headers['retry-after'])
    assert.ok(seconds > 1790 && seconds <= 1800, String(seconds))
    const { events } = await daemon.client.get<{ events: EventRecord[] }>(
      '/events?state=rejected&webhook=/limited',
    )
    assert.deepEqual(
      events.map(({ code, stage, detail }) => [code, stage, detail]),
      [['rate-limited', 'filter', 'more than rate_limit allows (2 in 3600 s)']],
    )
  })

  it('counts only verified deliveries', async () => {
    const body = '{}'
    const url = `${daemon.url}/limited-signed`
    for (let times = 0; times < 3; times += 1)
      assert.equal((await send(url, { headers: githubHeaders(body, 'wrong'), body })).status, 401)
    is(await send(url, { headers: githubHeaders(body, secret), body }), 'accepted')
    assert.equal((await send(url, { headers: githubHeaders(body, secret), body })).status, 429)
  })

  it('does not count repeated deliveries', async () => {
    is(await post('/limited-again', 'a', named('r-1')), 'accepted')
    for (let times = 0; times < 3; times += 1)
      is(await post('/limited-again', 'a', named('r-1')), 'duplicate')
    is(await post('/limited-again', 'a', named('r-2')), 'accepted')
    assert.equal((await post('/limited-again', 'a', named('r-3'))).status, 429)
    is(await post('/limited-again', 'a', named('r-1')), 'duplicate')
  })

  it('does not count replays of old deliveries, where the body has a timestamp', async () => {
    const sendLinear = async (webhookTimestamp: number) => {
      const body = JSON.stringify({ webhookTimestamp })
      const signature = createHmac('sha256', secret).update(body).digest('hex')
      const headers = { 'content-type': 'application/json', 'linear-signature': signature }
      return send(`${daemon.url}/limited-linear`, { headers, body })
    }
    const now = Date.now()
    for (let times = 0; times < 3; times += 1)
      assert.equal((await sendLinear(now - 600_000)).status, 401)
    assert.equal((await sendLinear(now)).status, 200)
    assert.equal((await sendLinear(now)).status, 429)
  })
})
