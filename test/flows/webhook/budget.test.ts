import assert from 'node:assert/strict'
import type { EventRecord, Status } from '../../../shared/api/api.ts'
import { explanationSchema } from '../../../shared/api/explain.ts'
import { run as runCli } from '../../cli/support/cli.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { sendJson, startScriptedProvider } from '../../support/providers/scripted-provider.ts'
import { send } from '../../support/servers/http.ts'

describe('a budget', () => {
  let daemon: RunningDaemon
  let provider: Awaited<ReturnType<typeof startScriptedProvider>>

  before(async () => {
    const usage = { inputTokens: 300, outputTokens: 100, costUsd: 0.3 }
    provider = await startScriptedProvider(() => ({
      '/ask': (response) => sendJson(response, 200, { text: 'yes', usage }),
    }))
    const agent = `kind: http, url: "${provider.origin}/ask", answer_path: text, usage_path: usage`
    daemon = await startDaemon({
      agents: `agents:\n  free: { ${agent} }\n  bounded: { ${agent}, budget: { month: 1k tokens } }\n`,
      webhooks: `webhooks:
  - { path: /rule, agent: free, prompt_template: x, budget: { day: 0.50 } }
  - { path: /agent, agent: bounded, prompt_template: x }
  - { path: /none, agent: free, prompt_template: x }
`,
      gateway: 'oauth: { callback_port: 0 }\nbudget: { month: 2.0 }\n',
    })
  })
  after(async () => {
    await daemon?.stop()
    provider?.close()
  })

  const deliver = async (path: string) => {
    const headers = { 'content-type': 'application/json' }
    const reply = await send(`${daemon.url}${path}`, { headers, body: '{}' })
    const { state, code, detail } = await untilFinished(daemon, String(reply.json()['id']))
    return state === 'done' ? state : [state, code, detail]
  }
  const told = async () => {
    const { events } = await daemon.client.get<{ events: EventRecord[] }>('/events')
    return events.filter(({ code }) => code === 'budget-used').map(({ detail }) => detail)
  }
  const problems = async () =>
    (await daemon.client.get<Status>('/status')).problems
      .filter(({ code }) => code === 'budget-used')
      .map(({ detail }) => detail)
  const ofRule = 'the budget of $0.50 a day of rule /rule'
  const ofAgent = 'the budget of 1k tokens a month of agent bounded'
  const ofAll = 'the budget of $2.00 a month of all runs'

  it('of a rule is told at its half and its end, and then the rule runs no more', async () => {
    assert.equal(await deliver('/rule'), 'done')
    assert.deepEqual(await told(), [`${ofRule} is used to 50 %`])
    assert.deepEqual(await problems(), [])
    assert.equal(await deliver('/rule'), 'done')
    assert.deepEqual(await told(), [`${ofRule} is used up`, `${ofRule} is used to 50 %`])
    assert.deepEqual(await problems(), [`${ofRule} is used up`])
    assert.deepEqual(await deliver('/rule'), ['filtered', 'over-budget', `${ofRule} is used up`])
    assert.equal(await deliver('/none'), 'done')
    const over = async (path: string) =>
      explanationSchema.parse(
        await daemon.client.post('/webhooks/explain', { path, payload: '{}' }),
      ).overBudget
    assert.equal(await over('/rule'), `${ofRule} is used up`)
    assert.equal(await over('/none'), undefined)
    const sample = ['webhook', 'explain', '/rule', '--sample', 'github:push']
    const { stdout } = await runCli(sample, { home: daemon.home })
    assert.match(stdout, /^outcome .*filtered out: the budget of \$0\.50 a day/m)
  })

  it('of an agent counts its tokens', async () => {
    for (let run = 1; run <= 2; run += 1) assert.equal(await deliver('/agent'), 'done')
    assert.ok((await told()).includes(`${ofAgent} is used to 80 %`))
    assert.equal(await deliver('/agent'), 'done')
    assert.deepEqual(await deliver('/agent'), ['filtered', 'over-budget', `${ofAgent} is used up`])
  })

  it('of all counts every run, and a stop forgets nothing', async () => {
    assert.ok((await problems()).includes(`${ofAll} is used to 80 %`))
    const { home } = daemon
    await daemon.stop()
    daemon = await startDaemon({ home })
    assert.deepEqual(await deliver('/rule'), ['filtered', 'over-budget', `${ofRule} is used up`])
    assert.equal(await deliver('/none'), 'done')
    assert.deepEqual(await told(), [`${ofAll} is used up`])
    assert.deepEqual(await deliver('/none'), ['filtered', 'over-budget', `${ofAll} is used up`])
  })
})
