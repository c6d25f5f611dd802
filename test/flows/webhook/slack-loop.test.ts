import assert from 'node:assert/strict'
import type { EventRecord } from '../../../shared/api/api.ts'
import { connect } from '../../../shared/client/client.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { send } from '../../support/servers/http.ts'
import { restart, stopHome } from '../../support/daemon/restart.ts'
import { senders } from '../../support/servers/senders.ts'
import { type TargetServer, startTargetServer, json } from '../../support/servers/target-server.ts'

const slack = senders.find(({ scheme }) => scheme === 'slack')
assert.ok(slack)
const channel = 'C0123ABCD'
const makeEvent = (ts: string, event: object) =>
  JSON.stringify({
    type: 'event_callback',
    event_id: `Ev${ts}`,
    event: { type: 'message', channel, ts, ...event },
  })

describe('a webhook that answers into the Slack channel that triggers it', () => {
  let daemon: RunningDaemon
  let api: TargetServer
  /** Called with the event for a message of the daemon. */
  let told: (id: string) => void = () => undefined
  /** Whether Slack sends the event before the response to the post. */
  let isQuick = false

  let lastOwn = ''

  const post = async (ts: string, text: string) => postEvent(ts, { text, user: 'U1' })
  const postEvent = async (ts: string, event: object) => {
    const body = makeEvent(ts, event)
    const headers = await slack.sign(body, Date.now())
    return String((await send(`${daemon.url}/slack`, { headers, body })).json()['id'])
  }

  const posts = () => api.requests.filter(({ method }) => method === 'POST').length
  before(async () => {
    let count = 0
    api = await startTargetServer(async (response, recorded, request) => {
      if (recorded.method === 'GET') return json(200, { ok: false })(response, recorded, request)
      count += 1
      const ts = `1700000000.${String(count).padStart(6, '0')}`
      lastOwn = ts
      const tell = () => void post(ts, String(recorded.fields['markdown_text'])).then(told)
      if (isQuick) {
        tell()
        // The daemon has the event once it has answered a later request.
        for (let turn = 0; turn < 20; turn += 1)
          await send(`${daemon.url}/health`, { method: 'GET' })
      }
      await json(200, { ok: true, channel, ts })(response, recorded, request)
      if (!isQuick) response.once('close', tell)
    })
    daemon = await startDaemon({
      env: 'SLACK_TOKEN=xoxb-1\n',
      variables: { SLACK_SECRET: slack.secret },
      gateway: `
oauth: { callback_port: 0 }
targets:
  slack: { api_url: "${api.origin}", token_env: SLACK_TOKEN }
`,
      webhooks: `
webhooks:
  - path: /slack
    agent: echo
    signature_scheme: slack
    secret_env: SLACK_SECRET
    prompt_template: "you said: {{event.event.text}}"
    deliver_to: "slack:{{event.event.channel}}"
`,
    })
  })
  after(async () => {
    api.close()
    await stopHome(daemon.home)
  })

  for (const [when, quick] of [
    ['after the answer to its post', false],
    ['before the answer to its post', true],
  ] as const)
    it(`is not triggered by its own answer, which comes ${when}`, async () => {
      isQuick = quick
      const before = posts()
      const echoed = new Promise<string>((resolve) => (told = resolve))
      const event = await untilFinished(daemon, await post(`1.${Number(quick)}`, 'hello'))
      assert.equal(event.state, 'done')
      const echo = await daemon.client.get<EventRecord>(`/events/${await echoed}`)
      assert.deepEqual([echo.state, echo.detail], ['filtered', 'it is about our own message'])
      assert.equal(posts(), before + 1)
    })

  it('is triggered by someone else who writes the same', async () => {
    isQuick = false
    const event = await untilFinished(daemon, await post('2.1', 'you said: hello'))
    assert.equal(event.state, 'done')
  })

  it('recognises its own answers after a restart too', async () => {
    await restart(daemon.client)
    const changed = { subtype: 'message_changed', message: { ts: lastOwn, text: 'with a preview' } }
    const id = await postEvent('3.1', changed)
    const client = await connect(daemon.home)
    const { state, detail } = await client.get<EventRecord>(`/events/${id}`)
    client.close()
    assert.deepEqual([state, detail], ['filtered', 'it is about our own message'])
  })
})
