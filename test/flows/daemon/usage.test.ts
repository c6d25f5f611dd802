import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Usage, type UsageReport, usageReportSchema } from '../../../shared/api/api.ts'
import { run } from '../../cli/support/cli.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { sendJson, startScriptedProvider } from '../../support/providers/scripted-provider.ts'
import { send } from '../../support/servers/http.ts'

type Provider = Awaited<ReturnType<typeof startScriptedProvider>>

describe('what runs used', () => {
  let daemon: RunningDaemon
  let provider: Provider
  let usage: Usage = { inputTokens: 1200, outputTokens: 34, costUsd: 0.42, model: 'a-model' }

  before(async () => {
    provider = await startScriptedProvider(() => ({
      '/ask': (response) => sendJson(response, 200, { text: 'answer-canary', usage }),
    }))
    daemon = await startDaemon({
      agents: `agents:\n  asks: { kind: http, url: "${provider.origin}/ask", answer_path: text, usage_path: usage }\n`,
      webhooks: 'webhooks:\n  - { path: /a, agent: asks, prompt_template: "{{event.text}}" }\n',
    })
  })
  after(async () => {
    await daemon?.stop()
    provider?.close()
  })

  const deliver = async (text: string) => {
    const body = JSON.stringify({ text })
    const headers = { 'content-type': 'application/json' }
    const reply = await send(`${daemon.url}/a`, { headers, body })
    return untilFinished(daemon, String(reply.json()['id']))
  }
  const report = async (query = '') => {
    const answer = await daemon.client.get<UsageReport>(`/usage${query}`)
    return usageReportSchema.parse(answer)
  }

  it('stands in the event, and sums up in the API, the command and the metrics', async () => {
    const event = await deliver('prompt-canary')
    assert.deepEqual(event.usage, usage)
    usage = { inputTokens: 800, outputTokens: 66 }
    await deliver('prompt-canary')
    const sum = { runs: 2, inputTokens: 2000, outputTokens: 100, cachedTokens: 0, costUsd: 0.42 }
    const { since, rows, total } = await report()
    assert.deepEqual([rows, total], [[{ key: '/a', ...sum }], sum])
    assert.ok(Math.abs(Date.now() - Date.parse(since) - 30 * 86_400_000) < 60_000)
    assert.deepEqual((await report('?by=model')).rows.length, 2)
    const command = await run(['usage', '--by', 'agent'], { home: daemon.home })
    assert.match(
      command.stdout,
      /^AGENT +RUNS +INPUT +CACHED +OUTPUT +COST\nasks +2 +2k +0 +100 +\$0\.42\ntotal/,
    )
    const json = await run(['usage', '--since', '1d', '--json'], { home: daemon.home })
    assert.deepEqual((JSON.parse(json.stdout) as UsageReport).total, sum)
    const events = await run(['events'], { home: daemon.home })
    assert.match(events.stdout, /COST\n.* 866 tokens\n.* \$0\.42\n/)
    const show = await run(['events', 'show', event.id], { home: daemon.home })
    assert.match(show.stdout, /^used +\$0\.42, 1200 tokens in, 34 out, a-model$/m)
    const status = await run(['status'], { home: daemon.home })
    assert.match(status.stdout, /^used +\$0\.42 today, 2 runs, 2\.1k tokens$/m)
    const headers = { authorization: `Bearer ${daemon.apiToken}` }
    const { text } = await send(`${daemon.url}/metrics`, { method: 'GET', headers })
    assert.match(text, /^doorward_agent_tokens_total\{agent="asks",kind="input"\} 2000$/m)
    assert.match(text, /^doorward_agent_cost_usd_total\{agent="asks"\} 0\.42$/m)
  })

  it('refuses a time and a group that there are not', async () => {
    for (const query of ['?by=prompt', '?since=yesterday', '?since=9999999d', '?by=day&by=rule'])
      await assert.rejects(report(query), { code: 'request-invalid' }, query)
  })

  it('has no text of an event on the disk, and is there after a stop', async () => {
    const names = await readdir(daemon.home.state)
    assert.match(names.join(), /^usage-\d{4}-\d{2}\.jsonl$/)
    const text = await readFile(join(daemon.home.state, names[0] ?? ''), 'utf8')
    assert.doesNotMatch(text, /canary/)
    const { home } = daemon
    const before = await report()
    await daemon.stop()
    daemon = await startDaemon({ home })
    assert.deepEqual((await report()).total, before.total)
  })
})
