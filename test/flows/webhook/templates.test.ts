import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { EventRecord } from '../../../shared/api/api.ts'
import { explanationSchema } from '../../../shared/api/explain.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { send } from '../../support/servers/http.ts'
import { temporaryFolder } from '../../support/temporary.ts'
import { run } from '../../cli/support/cli.ts'

describe('what a template reads of a delivery', () => {
  let daemon: RunningDaemon

  before(async () => {
    daemon = await startDaemon({
      webhooks: `
webhooks:
  - path: /scope
    agent: echo
    prompt_template: "{{event.n}}|{{headers.X-Kind}}|{{headers.absent}}|{{webhook.path}}|{{delivery.id}}|{{delivery.received_at}}"
    deliver_to: "file:out/{{headers.x-kind}}-{{delivery.id}}.md"
  - path: /push
    agent: echo
    prompt_template: |
      {% for c in event.commits limit: 2 %}- {{ c.message | truncate: 8 }}
      {% endfor %}{% if event.commits.size > 2 %}and {{ event.commits.size | minus: 2 }} more{% endif %}
      {{ headers.X-Kind | default: "no kind" }}, {% raw %}\${{ secrets.X }}{% endraw %}
  - path: /nowhere
    agent: echo
    prompt_template: x
    deliver_to: ["file:out/{{event.number}}.md", "file:{{event.path}}"]
  - path: /rules
    agent: echo
    rules:
      - { name: good, prompt_template: "{{event.n}}" }
      - { name: bad, prompt_template: "{% for i in (1..event.n) %}{{ i }}{% endfor %}" }
  - path: /bomb
    agent: echo
    prompt_template: "{% for i in (1..event.n) %}{{ i }}{% endfor %}"
`,
    })
  })
  after(async () => daemon.stop())

  const post = async (path: string, payload: object, headers: Record<string, string> = {}) =>
    send(`${daemon.url}${path}`, {
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(payload),
    })

  it('runs no agent whose answer can go nowhere', async () => {
    const reply = await post('/nowhere', { path: '../x' })
    const event = await untilFinished(daemon, String(reply.json()['id']))
    assert.deepEqual(
      [event.state, event.stage, event.code],
      ['failed', 'deliver', 'target-invalid'],
    )
    assert.match(event.detail ?? '', /\{\{event\.path\}\} has a slash.*; the agent was not run$/)
    assert.deepEqual([event.durations.agentMs, event.result], [undefined, undefined])
    // One target that can be used is enough.
    const other = await post('/nowhere', { path: '../x', number: 7 })
    assert.equal((await untilFinished(daemon, String(other.json()['id']))).result, 'x')
  })

  it('rejects the one rule whose prompt never ends, and runs the others', async () => {
    const reply = await post('/rules', { n: 10_000_000 })
    assert.equal(reply.status, 202)
    const event = await untilFinished(daemon, String(reply.json()['id']))
    assert.deepEqual([event.state, event.rule, event.result], ['done', 'good', '10000000'])
    const { events } = await daemon.client.get<{ events: EventRecord[] }>('/events')
    const rejected = events.filter(({ webhook, state }) => webhook === '/rules' && state !== 'done')
    assert.deepEqual(
      rejected.map(({ state, rule, code }) => [state, rule, code]),
      [['rejected', 'bad', 'template-failed']],
    )
  })

  it('refuses a delivery whose prompt never ends, with the reason, and goes on', async () => {
    const started = performance.now()
    const reply = await post('/bomb', { n: 10_000_000 })
    assert.ok(performance.now() - started < 2000)
    assert.equal(reply.status, 422)
    assert.doesNotMatch(reply.text, /10|ms|line/)
    const { events } = await daemon.client.get<{ events: EventRecord[] }>('/events')
    const { state, stage, code, detail } = events.find(({ webhook }) => webhook === '/bomb') ?? {}
    assert.deepEqual(
      [state, stage, code, detail],
      [
        'rejected',
        'expand',
        'template-failed',
        'the template cannot be filled in its line 1: it copies more than 5 million characters or items',
      ],
    )
    const { prompt, promptFault } = explanationSchema.parse(
      await daemon.client.post('/webhooks/explain', { path: '/bomb', payload: { n: 10_000_000 } }),
    )
    assert.deepEqual([prompt, promptFault], ['', detail])
    const file = join(await temporaryFolder(), 'payload.json')
    await writeFile(file, '{"n":10000000}')
    const { stdout } = await run(['webhook', 'explain', '/bomb', file], { home: daemon.home })
    assert.match(stdout, /it would be refused with 422: its prompt cannot be made/)
    assert.match(stdout, /✗ the template cannot be filled in its line 1: it copies more than/)
    const next = await post('/bomb', { n: 3 })
    assert.equal((await untilFinished(daemon, String(next.json()['id']))).prompt, '123')
  })
})
