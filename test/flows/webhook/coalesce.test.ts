import assert from 'node:assert/strict'
import type { Explanation } from '../../../shared/api/explain.ts'
import type { EventDetail, EventRecord, Status } from '../../../shared/api/api.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { restart } from '../../support/daemon/restart.ts'
import {
  deliver,
  eventOf,
  inService,
  restartedDaemons,
} from '../../support/daemon/restarted-daemons.ts'
import { type Reports, startReports } from '../../support/daemon/reports.ts'
import { send } from '../../support/servers/http.ts'
import { githubHeaders } from '../../support/servers/sign.ts'

const secret = 'a secret of the tests'

describe('a webhook that coalesces its events', () => {
  let reports: Reports
  let daemon: RunningDaemon
  const post = async (path: string, payload: object) => {
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify(payload)
    const reply = await send(`${daemon.url}${path}`, { headers, body })
    return { http: reply.status, ...(reply.json() as { id: string; status: string }) }
  }
  const event = (id: string) => daemon.client.get<EventDetail>(`/events/${id}`)
  const endOf = ({ state, code, detail, attempts }: EventRecord) => [state, code, detail, attempts]

  before(async () => {
    reports = await startReports()
    daemon = await startDaemon({
      env: `HOOK_SECRET=${secret}\n`,
      gateway: 'queue: { max_events: 3 }\noauth: { callback_port: 0 }\n',
      agents: `
agents:
  echo: { kind: echo }
  slow: { kind: command, concurrency: 4, command: ${reports.command} }
`,
      webhooks: `
webhooks:
  - path: /quiet
    agent: echo
    prompt_template: '{{event.n}}'
    coalesce: { key: '{{event.repo}}#{{event.number}}', quiet: 300ms, at_most: 10s }
  - path: /bounded
    agent: echo
    prompt_template: '{{event.n}}'
    coalesce: { key: '{{event.repo}}', quiet: 1h, at_most: 1h }
  - path: /at-most
    agent: echo
    prompt_template: '{{event.n}}'
    coalesce: { key: '{{event.repo}}', quiet: 300ms, at_most: 300ms }
  - path: /finish
    agent: slow
    prompt_template: '{{event.n}}'
    coalesce: { key: '{{event.repo}}' }
  - path: /cancel
    agent: slow
    prompt_template: '{{event.n}}'
    max_runs: 2/day
    coalesce: { key: '{{event.repo}}', running: cancel }
  - path: /pulls
    signature_scheme: github
    secret_env: HOOK_SECRET
    agent: slow
    prompt_template: '{{event.pull_request.head.sha}}'
    rules:
      - name: review
        on: [pull_request.opened, pull_request.synchronize]
        coalesce: { key: '{{event.number}}', running: cancel, cancel_on: [pull_request.closed] }
      - { name: closed, on: pull_request.closed, agent: echo }
`,
    })
  })
  after(async () => {
    reports.close()
    assert.equal(await daemon.stop(), 0)
  })

  it('runs the newest of each key, once it is quiet', async () => {
    const [first, second, other] = [
      await post('/quiet', { repo: 'a', number: 1, n: 'old' }),
      await post('/quiet', { repo: 'a', number: 1, n: 'new' }),
      await post('/quiet', { repo: 'a', number: 2, n: 'other' }),
    ]
    const waiting = await event(second.id)
    assert.deepEqual(
      [waiting.state, waiting.detail],
      ['queued', 'it waits for newer events with its key: 300ms'],
    )
    assert.deepEqual(endOf(await event(first.id)), [
      'filtered',
      'superseded',
      `a newer event replaced it before its turn came: ${second.id}`,
      0,
    ])
    const ends = await Promise.all([second, other].map(async ({ id }) => untilFinished(daemon, id)))
    assert.deepEqual(
      ends.map(({ state, resultPreview, detail }) => [state, resultPreview, detail]),
      [
        ['done', 'new', undefined],
        ['done', 'other', undefined],
      ],
    )
    const { failures, lastRun } = await daemon.client.get<Status>('/status')
    assert.deepEqual(failures, [])
    assert.notEqual(lastRun?.id, first.id)
    // The owner wants the older one after all.
    await assert.rejects(daemon.client.post(`/events/${first.id}/retry`), {
      message: /a newer event replaced it/,
      hint: /events retry evt_\w+ --again$/,
    })
    await daemon.client.post(`/events/${first.id}/retry?again=true`)
    assert.equal((await untilFinished(daemon, first.id)).result, 'old')
  })

  it('runs each event where a part of the key is empty, and says so', async () => {
    const ends = await Promise.all(
      ['1', '2'].map(async (n) => {
        const { id } = await post('/quiet', { repo: 'a', number: '', n })
        return untilFinished(daemon, id)
      }),
    )
    assert.deepEqual(
      ends.map(({ state, detail }) => [state, detail]),
      ['1', '2'].map(() => [
        'done',
        'it is not coalesced: {{event.number}} of the key is empty in this event',
      ]),
    )
    const explain = async (payload: object) =>
      (await daemon.client.post<Explanation>('/webhooks/explain', { path: '/quiet', payload }))
        .coalesce
    assert.deepEqual(await explain({ repo: 'a', number: 7 }), { key: 'a#7' })
    assert.deepEqual(await explain({ repo: 'a' }), {
      detail: 'not coalesced: {{event.number}} of the key is empty in this event',
    })
  })

  it('waits for no longer than at_most', async () => {
    const ids: string[] = []
    const started = Date.now()
    let state = 'queued'
    // Until one of them runs although there is no quiet.
    while (state !== 'done' && Date.now() - started < 10_000) {
      ids.push((await post('/at-most', { repo: 'a', n: ids.length })).id)
      state = (await event(ids.at(-2) ?? ids[0] ?? '')).state
    }
    assert.equal(state, 'done')
    await untilFinished(daemon, ids.at(-1) ?? '')
  })

  it('takes what waits into the bounds of the queue', async () => {
    const keys = ['a', 'b', 'c']
    const ids = []
    for (const repo of keys) ids.push((await post('/bounded', { repo, n: repo })).id)
    const refused = await post('/bounded', { repo: 'd', n: 'd' })
    assert.equal(refused.http, 503)
    for (const id of ids) await daemon.client.post(`/events/${id}/cancel`, {})
    assert.deepEqual(endOf(await event(ids[0] ?? '')), [
      'dropped',
      'event-cancelled',
      'it was cancelled before its turn came',
      0,
    ])
    const { queue } = await daemon.client.get<Status>('/status')
    assert.equal(queue.waiting, 0)
  })

  it('lets the agent of an older event finish, and then runs only the newest', async () => {
    const first = await post('/finish', { repo: 'a', n: 'first' })
    const run = await reports.next()
    const second = await post('/finish', { repo: 'a', n: 'second' })
    const third = await post('/finish', { repo: 'a', n: 'third' })
    assert.equal((await event(second.id)).code, 'superseded')
    assert.equal((await event(third.id)).state, 'queued')
    run.release()
    assert.equal((await untilFinished(daemon, first.id)).state, 'done')
    const next = await reports.next()
    assert.equal(next.prompt, 'third')
    next.release()
    assert.equal((await untilFinished(daemon, third.id)).state, 'done')
  })

  it('stops the agent of an older event with running: cancel', async () => {
    const first = await post('/cancel', { repo: 'a', n: 'first' })
    await reports.next()
    const second = await post('/cancel', { repo: 'a', n: 'second' })
    const next = await reports.next()
    assert.deepEqual(endOf(await event(first.id)), [
      'filtered',
      'superseded',
      `a newer event replaced it while its agent ran: ${second.id}`,
      1,
    ])
    // Both have run, and what only waited does not count.
    const over = await post('/cancel', { repo: 'a', n: 'third' })
    assert.equal((await event(over.id)).code, 'over-budget')
    assert.equal(next.prompt, 'second')
    next.release()
    assert.equal((await untilFinished(daemon, second.id)).state, 'done')
  })

  const push = async (action: string, number: number, sha: string, second: number) => {
    const time = `2026-11-27T10:00:${String(second).padStart(2, '0')}Z`
    const payload = { action, number, pull_request: { head: { sha }, updated_at: time } }
    const body = JSON.stringify(payload)
    const reply = await send(`${daemon.url}/pulls`, { headers: githubHeaders(body, secret), body })
    return reply.json() as { id: string; status: string }
  }

  it('leaves out a push that arrives after a newer one', async () => {
    const newer = await push('synchronize', 1, 'newer', 10)
    const run = await reports.next()
    const late = await push('synchronize', 1, 'older', 1)
    assert.equal(late.status, 'filtered')
    assert.deepEqual(endOf(await event(late.id)), [
      'filtered',
      'superseded',
      `a newer event came before it: ${newer.id}`,
      0,
    ])
    run.release()
    assert.equal((await untilFinished(daemon, newer.id)).resultPreview, 'answer to newer')
    // Also when the newer one is done.
    assert.equal((await push('synchronize', 1, 'older', 2)).status, 'filtered')
  })

  it('ends with cancel_on what runs or waits for the key, and runs nothing older after it', async () => {
    const opened = await push('opened', 2, 'opened', 1)
    await reports.next()
    const other = await push('opened', 3, 'other', 1)
    const run = await reports.next()
    const closed = await push('closed', 2, 'opened', 5)
    assert.deepEqual(endOf(await untilFinished(daemon, opened.id)), [
      'filtered',
      'superseded',
      'pull_request.closed ended it while its agent ran',
      1,
    ])
    assert.equal((await untilFinished(daemon, closed.id)).rule, 'closed')
    const late = await event((await push('synchronize', 2, 'late', 4)).id)
    assert.deepEqual([late.state, late.detail], ['filtered', 'pull_request.closed came before it'])
    // That of another key goes on, and a pull request can be opened again.
    run.release()
    assert.equal((await untilFinished(daemon, other.id)).state, 'done')
    const again = await push('synchronize', 2, 'again', 6)
    const next = await reports.next()
    // The same closing, sent once more, is older now.
    await push('closed', 2, 'opened', 5)
    next.release()
    assert.equal((await untilFinished(daemon, again.id)).state, 'done')
  })
})

describe('events that are coalesced over a restart', () => {
  const { start, heldAgent } = restartedDaemons()

  it('still wait for the one that runs in the old process, and are replaced by newer ones', async () => {
    const agent = await heldAgent()
    const old = await start({
      agents: `agents:\n  held: { kind: http, concurrency: 4, url: "${agent.url}" }\n`,
      webhooks:
        'webhooks:\n  - { path: /a, agent: held, prompt_template: "{{event.n}}", coalesce: { key: "{{event.repo}}" } }\n',
    })
    const first = await deliver(old.url, { repo: 'a', n: 1 })
    const one = await agent.next()
    const second = await deliver(old.url, { repo: 'a', n: 2 })
    await restart(old.client)
    const now = await inService(old)
    const third = await deliver(now.url, { repo: 'a', n: 3 })
    const other = await deliver(now.url, { repo: 'b', n: 4 })
    const four = await agent.next()
    assert.equal(four.prompt, '4')
    four.answer('answer 4')
    const { code, detail = '' } = await eventOf(now.client, second.id)
    assert.deepEqual([code, detail.endsWith(third.id)], ['superseded', true])
    assert.equal((await eventOf(now.client, third.id)).state, 'queued')
    one.answer('answer 1')
    const three = await agent.next()
    assert.equal(three.prompt, '3')
    three.answer('answer 3')
    for (const [{ id }, result] of [
      [first, 'answer 1'],
      [third, 'answer 3'],
      [other, 'answer 4'],
    ] as const)
      assert.equal((await untilFinished(now, id)).resultPreview, result)
  })
})
