import assert from 'node:assert/strict'
import { statusSchema } from '../../../shared/api/api.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { send } from '../../support/servers/http.ts'
import { githubBody, githubHeaders } from '../../support/servers/sign.ts'
import { storeLogin } from '../../support/providers/stored-login.ts'
import { temporaryHome } from '../../support/temporary.ts'

const secret = 'a secret of the metrics test'

describe('metrics', () => {
  let daemon: RunningDaemon
  const post = async (body: string, headers = githubHeaders(body, secret)) =>
    (await send(`${daemon.url}/webhook/github`, { headers, body })).json()
  const metrics = async () => {
    const headers = { authorization: `Bearer ${daemon.apiToken}` }
    return send(`${daemon.url}/metrics`, { method: 'GET', headers })
  }
  /** The value of a line of the text format, by its name and labels. */
  const getValue = (text: string, name: string): number => {
    const line = text.split('\n').find((one) => one.startsWith(`${name} `))
    assert.ok(line, `there is no ${name} in:\n${text}`)
    return Number(line.slice(name.length + 1))
  }

  before(async () => {
    daemon = await startDaemon({
      env: `HOOK_SECRET=${secret}\n`,
      webhooks: `
webhooks:
  - path: /webhook/github
    agent: echo
    signature_scheme: github
    secret_env: HOOK_SECRET
    prompt_template: "{{event.title}}"
    filter: { action: opened }
    deliver_to: "file:answers.md"
`,
    })
    const { id } = await post(
      githubBody('pull_request', { action: 'opened', title: 'a title of a payload' }),
    )
    await untilFinished(daemon, String(id))
    await post(githubBody('pull_request', { action: 'closed' }))
    const unsigned = githubHeaders('{}', 'another secret')
    await post('{"action":"opened"}', unsigned)
  })
  after(async () => assert.equal(await daemon.stop(), 0))

  it('count deliveries by result, and events by final state', async () => {
    const { text } = await metrics()
    const labels = (result: string) => `{webhook="/webhook/github",result="${result}"}`
    assert.equal(getValue(text, `doorward_deliveries_total${labels('accepted')}`), 1)
    assert.equal(getValue(text, `doorward_deliveries_total${labels('filtered')}`), 1)
    assert.equal(getValue(text, `doorward_deliveries_total${labels('rejected')}`), 1)
    const done = '{webhook="/webhook/github",state="done"}'
    assert.equal(getValue(text, `doorward_events_total${done}`), 1)
  })

  it('measure every answer, and each run once', async () => {
    const { text } = await metrics()
    assert.equal(getValue(text, 'doorward_answer_duration_seconds_count'), 3)
    assert.equal(getValue(text, 'doorward_answer_duration_seconds_bucket{le="+Inf"}'), 3)
    assert.ok(getValue(text, 'doorward_answer_duration_seconds_sum') > 0)
    assert.equal(getValue(text, 'doorward_agent_duration_seconds_count{agent="echo"}'), 1)
    assert.equal(getValue(text, 'doorward_delivery_duration_seconds_count'), 1)
    assert.equal(getValue(text, 'doorward_queue_wait_duration_seconds_count'), 1)
  })

  it('start at 0 for an existing login, so that the first failure is an increase', async () => {
    const home = await temporaryHome()
    await storeLogin(home, 'github', 'a refresh token', 0)
    const other = await startDaemon({ home })
    const headers = { authorization: `Bearer ${other.apiToken}` }
    const { text } = await send(`${other.url}/metrics`, { method: 'GET', headers })
    for (const result of ['done', 'failed'])
      assert.equal(
        getValue(text, `doorward_token_renewals_total{provider="github",result="${result}"}`),
        0,
      )
    for (const result of ['given', 'refused'])
      assert.equal(
        getValue(text, `doorward_token_requests_total{provider="github",result="${result}"}`),
        0,
      )
    await other.stop()
  })

  it('are percentiles in the status', async () => {
    const { timings } = statusSchema.parse(await daemon.client.get('/status'))
    assert.deepEqual(
      [timings?.answer.count, timings?.queue.count, timings?.agent.count, timings?.deliver.count],
      [3, 1, 1, 1],
    )
    assert.ok(timings && timings.answer.p50Ms > 0 && timings.answer.p50Ms <= timings.answer.p99Ms)
  })

  it('contain nothing from a sender', async () => {
    const { text } = await metrics()
    assert.doesNotMatch(text, /a title of a payload|opened|closed/)
  })
})
