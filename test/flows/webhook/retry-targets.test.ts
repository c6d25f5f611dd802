import assert from 'node:assert/strict'
import type { EventRecord } from '../../../shared/api/api.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { send } from '../../support/servers/http.ts'
import { type TargetServer, json, startTargetServer } from '../../support/servers/target-server.ts'

const headers = { 'content-type': 'application/json' }

describe('a failed delivery that is retried', () => {
  let daemon: RunningDaemon
  let api: TargetServer

  before(async () => {
    api = await startTargetServer(json(200, { ok: true, id: '1' }))
    daemon = await startDaemon({
      env: `OPS_URL=${api.origin}/discord/webhooks/1/a-token\nSLACK_TOKEN=xoxb-1\n`,
      gateway: `
oauth: { callback_port: 0 }
targets:
  slack: { api_url: "${api.origin}/slack", token_env: SLACK_TOKEN }
  discord: { ops: { url_env: OPS_URL } }
`,
      webhooks: `
webhooks:
  - path: /hook
    agent: echo
    prompt_template: "{{event.text}}"
    deliver_to: [slack:#general, discord:ops]
`,
    })
  })
  after(async () => {
    api.close()
    assert.equal(await daemon.stop(), 0)
  })

  const sentTo = (path: string) => api.requests.filter((request) => request.path.startsWith(path))
  const post = async (text: string) => {
    const body = JSON.stringify({ text })
    const reply = await send(`${daemon.url}/hook`, { headers, body })
    return untilFinished(daemon, String(reply.json()['id']))
  }
  const retry = async (id: string) => {
    const queued = await daemon.client.post<EventRecord>(`/events/${id}/retry`)
    return { queued, event: await untilFinished(daemon, id) }
  }

  it('resumes at the message that failed, also after a reload', async () => {
    const before = sentTo('/discord').length
    api.next(json(200, { ok: true, id: '1' }), json(200, { ok: true, id: '1' }), json(404, {}))
    const { id, state } = await post('word '.repeat(1000))
    assert.equal(state, 'failed')
    const sent = sentTo('/discord').slice(before)
    await daemon.client.post('/daemon/reload')
    const { event } = await retry(id)
    assert.equal(event.state, 'done')
    const again = sentTo('/discord').slice(before + sent.length)
    assert.deepEqual(again[0]?.fields['content'], sent.at(-1)?.fields['content'])
    const contents = [...sent.slice(0, -1), ...again].map(({ fields }) => fields['content'])
    assert.equal(new Set(contents).size, contents.length)
  })
})
