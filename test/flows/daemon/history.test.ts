import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { HistoryList } from '../../../daemon/history/history-search.ts'
import type { ForgottenHistory, PastEvent } from '../../../shared/api/api.ts'
import { run } from '../../cli/support/cli.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { sendJson, startScriptedProvider } from '../../support/providers/scripted-provider.ts'
import { openOnPage } from '../../support/daemon/page-by-hand.ts'
import { send } from '../../support/servers/http.ts'

describe('the history of events', () => {
  let daemon: RunningDaemon
  let provider: Awaited<ReturnType<typeof startScriptedProvider>>
  const files = {
    agents: '',
    webhooks: 'webhooks:\n  - { path: /a, agent: asks, prompt_template: "{{event.text}}" }\n',
    gateway: 'events: { history: { contents: sealed } }\n',
  }

  before(async () => {
    provider = await startScriptedProvider(() => ({
      '/ask': (response) => sendJson(response, 200, { text: 'answer-canary' }),
    }))
    files.agents = `agents:\n  asks: { kind: http, url: "${provider.origin}/ask", answer_path: text }\n`
    daemon = await startDaemon(files)
  })
  after(async () => {
    await daemon?.stop()
    provider?.close()
  })

  it('outlives a stop, is listed with what is in memory, and is forgotten', async () => {
    const deliver = async () => {
      const body = JSON.stringify({ text: 'prompt-canary' })
      const headers = { 'content-type': 'application/json' }
      const reply = await send(`${daemon.url}/a`, { headers, body })
      return (await untilFinished(daemon, String(reply.json()['id']))).id
    }
    const list = async () => {
      const listed = await run(['events', '--since', '7d', '--webhook', '/a', '--json'], {
        home: daemon.home,
      })
      return (JSON.parse(listed.stdout) as { events: PastEvent[] }).events
    }
    const first = await deliver()
    assert.deepEqual(
      (await list()).map(({ id }) => id),
      [first],
    )
    const { home } = daemon
    await daemon.stop()
    daemon = await startDaemon({ ...files, home })
    const second = await deliver()
    const events = await list()
    assert.deepEqual(
      events.map(({ id }) => id),
      [second, first],
    )
    assert.equal(events[1]?.resultPreview, 'answer-canary')
    const shown = await run(['events', 'show', first], { home })
    assert.match(shown.stdout, /past +ended/)
    assert.match(shown.stdout, /prompt-canary/)
    const found = await run(['events', '--search', 'ANSWER-CAN'], { home })
    assert.match(found.stdout, /done +past: \/a: answer-canary/)
    assert.equal(found.stdout.trim().split('\n').length, 3)
    for (const wrong of ['q=', 'cursor=x', 'since=x', 'state=x', 'q=a&q=b'])
      await assert.rejects(daemon.client.get(`/events?${wrong}`), { code: 'request-invalid' })
    const { show } = await openOnPage(daemon, '/ui/events')
    assert.match(await show(), /<bdi>\/a<\/bdi><\/a> <span class="soft">past<\/span>/)
    const page = await daemon.client.get<HistoryList>('/events?q=canary&limit=1')
    assert.deepEqual([page.events[0]?.id, page.events.length], [second, 1])
    await assert.rejects(daemon.client.post(`/events/${first}/retry`), { code: 'event-not-found' })
    const one = await run(['events', 'forget', first, '--json'], { home })
    assert.equal(one.stderr, '')
    assert.equal((JSON.parse(one.stdout) as PastEvent).result, undefined)
    assert.deepEqual(
      (await list()).map(({ id }) => id),
      [second],
    )
    const removed = await run(['events', 'forget', '--all', '--yes', '--json'], { home })
    assert.equal((JSON.parse(removed.stdout) as ForgottenHistory).files, 1)
    assert.deepEqual(await readdir(join(home.root, 'history')), [])
    assert.deepEqual(
      (await list()).map(({ id }) => id),
      [second],
    )
  })
})
