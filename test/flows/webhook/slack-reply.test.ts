import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { connect } from '../../../shared/client/client.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { type HeldAgent, restart, startHeldAgent, stopHome } from '../../support/daemon/restart.ts'
import { send } from '../../support/servers/http.ts'
import { senders } from '../../support/servers/senders.ts'
import { type TargetServer, json, startTargetServer } from '../../support/servers/target-server.ts'

const slack = senders.find(({ scheme }) => scheme === 'slack')
assert.ok(slack)

describe('a webhook that delivers to slack:reply', () => {
  let daemon: RunningDaemon
  let api: TargetServer
  let agent: HeldAgent

  before(async () => {
    api = await startTargetServer(
      json(200, { ok: true, channel: 'C0123', ts: '1700000009.000100' }),
    )
    agent = await startHeldAgent()
    daemon = await startDaemon({
      env: 'SLACK_TOKEN=xoxb-1\n',
      variables: { SLACK_SECRET: slack.secret },
      gateway: `
oauth: { callback_port: 0 }
targets:
  slack: { api_url: "${api.origin}/api", token_env: SLACK_TOKEN }
`,
      agents: `
agents:
  held: { kind: http, url: "${agent.url}", concurrency: 1 }
`,
      webhooks: `
webhooks:
  - path: /slack
    agent: held
    signature_scheme: slack
    secret_env: SLACK_SECRET
    prompt_template: "{{event.text}}{{event.event.text}}"
    deliver_to: slack:reply
`,
    })
  })
  after(async () => {
    agent.close()
    api.close()
    await stopHome(daemon.home)
  })

  const post = async (body: string, more: Readonly<Record<string, string>> = {}) => {
    const headers = { ...(await slack.sign(body, Date.now())), ...more }
    const reply = await send(`${daemon.url}/slack`, { headers, body })
    assert.ok([200, 202].includes(reply.status), reply.text)
    const [id] = String(reply.headers['doorward-event'] ?? reply.json()['id']).split(' ')
    return id ?? ''
  }
  const form = { 'content-type': 'application/x-www-form-urlencoded' }

  it('answers a mention in its thread', async () => {
    const id = await post(
      JSON.stringify({
        type: 'event_callback',
        event_id: 'Ev1',
        event: {
          type: 'app_mention',
          channel: 'C0123',
          text: 'hello',
          ts: '1700000001.000100',
          thread_ts: '1700000000.000100',
        },
      }),
    )
    const { answer } = await agent.next()
    answer('an answer')
    assert.equal((await untilFinished(daemon, id)).state, 'done')
    const { fields } = api.requests.findLast(({ method }) => method === 'POST') ?? {}
    assert.deepEqual(
      [fields?.['channel'], fields?.['thread_ts'], fields?.['markdown_text']],
      ['C0123', '1700000000.000100', 'an answer'],
    )
  })

  it('answers a mention once, which comes as app_mention and as message', async () => {
    const event = { channel: 'C0123', text: 'hello', ts: '1700000002.000100' }
    const deliver = (id: string, type: string, more = {}) =>
      post(
        JSON.stringify({
          type: 'event_callback',
          event_id: id,
          event: { ...event, type, ...more },
        }),
      )
    const first = await deliver('Ev2', 'message')
    const second = await deliver('Ev3', 'app_mention')
    const { answer } = await agent.next()
    answer('an answer')
    assert.equal((await untilFinished(daemon, first)).state, 'done')
    const { state, detail } = await untilFinished(daemon, second)
    assert.deepEqual([state, detail], ['duplicate', `the same delivery as ${first}`])
    // Another message of that moment, elsewhere, and a reaction to this one.
    for (const [id, type, more] of [
      ['Ev4', 'message', { channel: 'C0124' }],
      ['Ev5', 'reaction_added', {}],
    ] as const) {
      const other = await deliver(id, type, more)
      const asked = await agent.next()
      asked.answer('another')
      assert.equal((await untilFinished(daemon, other)).state, 'done')
    }
  })

  it('answers a command that waited over a restart, and shows its response_url nowhere', async () => {
    const url = (name: string) => `${api.origin}/commands/T1/${name}`
    const command = (name: string) =>
      new URLSearchParams({ command: '/ask', text: name, response_url: url(name) }).toString()
    const first = await post(command('canary-first'), form)
    const held = await agent.next()
    const second = await post(command('canary-second'), form)
    await restart(daemon.client)
    held.answer('one')
    ;(await agent.next()).answer('two')
    const client = await connect(daemon.home)
    const events = await Promise.all(
      [first, second].map(async (id) => untilFinished({ client }, id)),
    )
    assert.deepEqual(
      events.map(({ state, target }) => [state, target]),
      [
        ['done', 'slack:reply'],
        ['done', 'slack:reply'],
      ],
    )
    const answered = api.requests.filter(({ path }) => path.startsWith('/commands/'))
    assert.deepEqual(
      answered.map(({ path, fields }) => `${path} ${String(fields['text'])}`).toSorted(),
      ['/commands/T1/canary-first one', '/commands/T1/canary-second two'],
    )
    const log = await readFile(daemon.home.log, 'utf8')
    assert.doesNotMatch(JSON.stringify(events) + log, /commands\/T1/)
    client.close()
  })
})
