import assert from 'node:assert/strict'
import type { EventRecord, Status } from '../../../shared/api/api.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { restart, stopHome } from '../../support/daemon/restart.ts'
import { connect } from '../../../shared/client/client.ts'
import { run } from '../../cli/support/cli.ts'
import { send } from '../../support/servers/http.ts'
import { slackEvent, SlackServer } from '../../support/servers/slack-server.ts'
import { TelegramServer } from '../../support/servers/telegram-server.ts'

const owner = 4711

/* A whole daemon, with the stand-ins that the official clients of Slack and Telegram accept. */
describe('flow: webhooks whose events come without an address', () => {
  let daemon: RunningDaemon
  let slack: SlackServer
  let telegram: TelegramServer

  before(async () => {
    slack = await SlackServer.start()
    telegram = await TelegramServer.start()
    daemon = await startDaemon({
      env: `SLACK_APP_TOKEN=xapp-1-never-shown\nSLACK_BOT_TOKEN=xoxb-1\nBOT=${telegram.token}\n`,
      gateway: `
oauth: { callback_port: 0 }
targets:
  slack: { api_url: "${slack.url}", token_env: SLACK_BOT_TOKEN }
  telegram: { api_url: "${telegram.origin}", token_env: BOT }
`,
      webhooks: `
webhooks:
  - path: /slack
    source: { provider: slack, mode: socket, app_token_env: SLACK_APP_TOKEN }
    rules:
      - name: mention
        on: [app_mention, message.im]
        agent: echo
        prompt_template: "{{event.event.text}}"
        deliver_to: reply
  - path: /commands
    source: { provider: slack, mode: socket, app_token_env: SLACK_APP_TOKEN }
    agent: echo
    filter: { command: /ask }
    prompt_template: "{{event.text}}"
  - path: /telegram
    source: { provider: telegram, mode: poll, token_env: BOT, from: [${owner}] }
    agent: echo
    prompt_template: "{{event.message.text}}"
    deliver_to: reply
`,
    })
    await slack.untilOpen()
  })

  after(async () => {
    await stopHome(daemon.home)
    await slack.close()
    await telegram.close()
  })

  const newest = async (webhook: string): Promise<EventRecord> => {
    const client = await connect(daemon.home)
    const { events } = await client.get<{ events: EventRecord[] }>(
      `/events?webhook=${encodeURIComponent(webhook)}&limit=1`,
    )
    client.close()
    const [record] = events
    assert.ok(record)
    return record
  }

  it('answers a mention in its thread, once, however often it comes', async () => {
    const mention = slackEvent('Ev1', {
      type: 'app_mention',
      text: '<@U0BOT> hello',
      ts: '1795000001.000100',
    })
    await slack.deliver(mention)
    const { body } = await slack.untilCalled('chat.postMessage')
    assert.equal(body['thread_ts'], '1795000001.000100')
    assert.equal(body['channel'], 'C0CHANNEL')
    assert.match(String(body['markdown_text']), /hello/)
    await slack.deliver(mention)
    // An app that also gets messages hears of it twice.
    await slack.deliver(
      slackEvent('Ev2', {
        type: 'message',
        channel_type: 'channel',
        text: 'hello',
        ts: '1795000001.000100',
      }),
    )
    assert.equal(slack.countCalls('chat.postMessage'), 1)
    const { signed, source } = await newest('/slack')
    assert.deepEqual([signed, source], [false, 'slack'])
  })

  it('answers a direct message, and never a message of its own app', async () => {
    const before = slack.countCalls('chat.postMessage')
    const direct = { type: 'message', channel_type: 'im', channel: 'D0DIRECT', text: 'why?' }
    await slack.deliver(slackEvent('Ev3', { ...direct, ts: '1795000002.000100' }))
    const { body } = await slack.untilCalled('chat.postMessage', before + 1)
    assert.equal(body['channel'], 'D0DIRECT')
    // That of an earlier run of the daemon, whose name nobody here remembers.
    await slack.deliver(
      slackEvent('Ev4', { ...direct, ts: '1795000003.000100', bot_id: 'B0BOT', app_id: 'A0APP' }),
    )
    const { state, detail } = await newest('/slack')
    assert.deepEqual([state, detail], ['filtered', 'it is about a message of this app'])
  })

  it('gives one socket to both webhooks, and a command to the rule that wants it', async () => {
    assert.equal(slack.open, 1)
    await slack.deliver({
      type: 'slash_commands',
      payload: {
        command: '/ask',
        text: 'what is new?',
        trigger_id: '1.2.3',
        response_url: 'https://hooks.slack.com/commands/1',
      },
    })
    const { id, deliveryId } = await newest('/commands')
    const { result } = await untilFinished({ client: await connect(daemon.home) }, id)
    assert.match(result ?? '', /what is new\?/)
    assert.equal(deliveryId, '1.2.3')
  })

  it('answers its owner in Telegram, and nobody else', async () => {
    telegram.message(666, 'let me in')
    telegram.message(owner, '/ask why', -1001)
    const { body } = await telegram.untilCalled('sendMessage')
    assert.equal(body['chat_id'], '-1001')
    assert.match(String(body['text']), /\/ask why/)
    await telegram.untilEmpty()
    assert.equal(telegram.calls.filter(({ method }) => method === 'sendMessage').length, 1)
  })

  it('answers 404 at their paths: what is posted there is from nobody', async () => {
    for (const path of ['/slack', '/webhook/slack', '/telegram', '/commands']) {
      const { status } = await send(`${daemon.url}${path}`, {
        body: '{"event":{"type":"app_mention"}}',
      })
      assert.equal(status, 404, path)
    }
  })

  it('cannot be sent to by the command line either, which says what can be done', async () => {
    const sent = await run(['webhook', 'send', '/slack', '--sample', 'slack:app_mention'], {
      home: daemon.home,
    })
    assert.equal(sent.code, 2, sent.stderr)
    assert.match(
      sent.stderr,
      /nothing can be sent to \/slack: each of its events is read from slack by socket\n.*webhook explain \/slack/,
    )
    const explained = await run(['webhook', 'explain', '/slack', '--sample', 'slack:app_mention'], {
      home: daemon.home,
    })
    assert.equal(explained.code, 0, explained.stderr)
    assert.match(explained.stdout, /mention/)
  })

  it('shows in status what is connected since when, and no token', async () => {
    const client = await connect(daemon.home)
    const status = await client.get<Status>('/status')
    const { checks } = await client.post<{ checks: { group: string; status: string }[] }>('/checks')
    client.close()
    assert.deepEqual(
      status.sources?.map(({ kind, state, webhooks, ignored }) => [kind, state, webhooks, ignored]),
      [
        ['slack', 'connected', ['/slack', '/commands'], undefined],
        ['telegram', 'connected', ['/telegram'], 1],
      ],
    )
    assert.deepEqual(status.problems, [])
    assert.doesNotMatch(JSON.stringify(status), /never-shown/)
    const states = checks.filter(({ group }) => group === 'sources').map((check) => check.status)
    assert.deepEqual(states, ['ok', 'ok'])
  })

  it('goes on over a restart: nothing lost, nothing twice', async () => {
    const before = slack.countCalls('chat.postMessage')
    const sent = Array.from({ length: 20 }, (_, index) =>
      slackEvent(`EvR${index}`, {
        type: 'app_mention',
        text: `r${index}`,
        ts: `17950001${index + 10}.000100`,
      }),
    )
    const first = sent.slice(0, 10).map(async (event) => slack.deliver(event))
    const restarted = restart(daemon.client)
    const second = sent.slice(10).map(async (event) => slack.deliver(event))
    telegram.message(owner, 'during the restart')
    await restarted
    await Promise.all([...first, ...second])
    // One that was acknowledged and comes again, after the restart.
    await slack.deliver(sent[0] ?? { type: '', payload: {} })
    await slack.untilCalled('chat.postMessage', before + 20)
    await telegram.untilCalled('sendMessage', 2)
    await telegram.untilEmpty()
    assert.equal(slack.countCalls('chat.postMessage'), before + 20)
    assert.equal(telegram.calls.filter(({ method }) => method === 'sendMessage').length, 2)
  })
})
