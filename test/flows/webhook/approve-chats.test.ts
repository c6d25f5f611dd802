import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { EventDetail } from '../../../shared/api/api.ts'
import { connect } from '../../../shared/client/client.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { restart, stopHome } from '../../support/daemon/restart.ts'
import { inService } from '../../support/daemon/restarted-daemons.ts'
import { send } from '../../support/servers/http.ts'
import { SlackServer } from '../../support/servers/slack-server.ts'
import { TelegramServer } from '../../support/servers/telegram-server.ts'

const ada = 'U024BE7LH'
const adaAtTelegram = 4711

const approve = (timeout: string) =>
  `approve: { when: [file], by: ["slack:#ops", "telegram:@me"], who: { slack: [${ada}], telegram: [${adaAtTelegram}] }, timeout: ${timeout} }`

type Message = { readonly channel: string; readonly id: string }
type Question = Message & { readonly send: string; readonly decline: string }

/*
 * Buttons of one daemon, end to end. No webhook reads Telegram: its presses are heard because a rule asks there.
 */
describe('flow: an answer that is approved in Slack and Telegram', () => {
  let daemon: RunningDaemon
  let slack: SlackServer
  let telegram: TelegramServer
  let asked = 0
  let presses = 0

  before(async () => {
    slack = await SlackServer.start()
    telegram = await TelegramServer.start()
    daemon = await startDaemon({
      env: `SLACK_APP_TOKEN=xapp-1-A\nSLACK_BOT_TOKEN=xoxb-1\nBOT=${telegram.token}\n`,
      gateway: `
oauth: { callback_port: 0 }
targets:
  slack: { api_url: "${slack.url}", token_env: SLACK_BOT_TOKEN }
  telegram: { api_url: "${telegram.origin}", token_env: BOT, me: "${adaAtTelegram}" }
`,
      webhooks: `
webhooks:
  - path: /slack
    source: { provider: slack, mode: socket, app_token_env: SLACK_APP_TOKEN }
    agent: echo
    prompt_template: x
  - path: /a
    agent: echo
    prompt_template: "{{event.text}}"
    deliver_to: "file:answers.md"
    ${approve('1h')}
  - path: /short
    agent: echo
    prompt_template: "{{event.text}}"
    deliver_to: "file:answers.md"
    ${approve('1s')}
`,
    })
    await slack.untilOpen()
  })

  after(async () => {
    await stopHome(daemon.home)
    await slack.close()
    await telegram.close()
  })

  /** Resolves with the newest question in both chats. */
  const nextQuestion = async (): Promise<{ inSlack: Question; inTelegram: Question }> => {
    asked += 1
    const posted = await slack.untilCalled('chat.postMessage', asked)
    const sent = await telegram.untilCalled('sendMessage', asked)
    const [, actions] = posted.body['blocks'] as { elements: { value: string }[] }[]
    const [yes, no] = actions?.elements ?? []
    const { channel, ts } = posted.answer as { channel: string; ts: string }
    const markup = sent.body['reply_markup'] as { inline_keyboard: { callback_data: string }[][] }
    const [yesHere, noHere] = markup.inline_keyboard[0] ?? []
    const result = sent.result as { message_id: number; chat: { id: number } }
    return {
      inSlack: { channel, id: ts, send: yes?.value ?? '', decline: no?.value ?? '' },
      inTelegram: {
        channel: String(result.chat.id),
        id: String(result.message_id),
        send: yesHere?.callback_data ?? '',
        decline: noHere?.callback_data ?? '',
      },
    }
  }

  const ask = async (text: string, path = '/a') => {
    const reply = await send(`${daemon.url}${path}`, {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ text }),
    })
    const id = String(reply.json()['id'])
    return { id, ...(await nextQuestion()) }
  }

  /** Resolves with what the person who presses is told. */
  const pressInSlack = async (
    { channel, id }: Message,
    button: string,
    { user = ada, team = 'T0TEAM' } = {},
  ): Promise<string> => {
    const path = `actions/${(presses += 1)}`
    await slack.deliver({
      type: 'interactive',
      payload: {
        type: 'block_actions',
        user: { id: user, name: ada },
        team: { id: team },
        channel: { id: channel },
        message: { ts: id },
        response_url: `${slack.url.replace('/api', '')}/${path}`,
        actions: [{ action_id: 'doorward-approval-0', value: button }],
      },
    })
    return String((await slack.untilCalled(path)).body['text'])
  }

  const pressInTelegram = async (
    message: Message,
    button: string,
    from = adaAtTelegram,
  ): Promise<string> => {
    const update = telegram.press(from, button, message)
    for (let count = 1; ; count += 1) {
      const { body } = await telegram.untilCalled('answerCallbackQuery', count)
      if (body['callback_query_id'] === `query-${update}`) return String(body['text'])
    }
  }

  const stateOf = async (id: string) => {
    const client = await connect(daemon.home)
    const { state } = await client.get<EventDetail>(`/events/${id}`)
    client.close()
    return state
  }
  const answers = async () => readFile(join(daemon.home.root, 'answers.md'), 'utf8').catch(() => '')
  /** The text of a message in Telegram after it was edited. */
  const untilEdited = async ({ id }: Message): Promise<string> => {
    for (let count = 1; ; count += 1) {
      const { body } = await telegram.untilCalled('editMessageText', count)
      if (String(body['message_id']) !== id) continue
      assert.equal(body['reply_markup'], undefined)
      return String(body['text'])
    }
  }

  it('is sent by the press of a person who may, once, and both messages lose their buttons', async () => {
    const { id, inSlack, inTelegram } = await ask('first')
    assert.match(await pressInSlack(inSlack, inSlack.send), /^Done: approved by U024BE7LH/)
    assert.equal((await untilFinished(daemon, id)).state, 'done')
    assert.match(await untilEdited(inTelegram), /approved by U024BE7LH \(slack:#ops\)/)
    const edited = await slack.untilCalled('chat.update')
    assert.equal(edited.body['ts'], inSlack.id)
    assert.equal((edited.body['blocks'] as unknown[]).length, 1)
    const late = [
      await pressInSlack(inSlack, inSlack.send),
      await pressInTelegram(inTelegram, inTelegram.decline),
    ]
    for (const said of late) assert.match(said, /^Nothing changed: approved by U024BE7LH/)
    assert.equal((await answers()).match(/^first$/gm)?.length, 1)
  })

  it('is refused to all others: by person, workspace, chat and message', async () => {
    const { id, inSlack, inTelegram } = await ask('second')
    const { send: yes } = inSlack
    const mayNot = /^You may not answer/
    assert.match(await pressInSlack(inSlack, yes, { user: 'U0STRANGER' }), mayNot)
    assert.match(await pressInSlack(inSlack, yes, { team: 'T0OTHER' }), /^Only members/)
    assert.match(await pressInSlack({ ...inSlack, channel: 'C0OTHER' }, yes), mayNot)
    assert.match(await pressInSlack({ ...inSlack, id: '1795000000.999999' }, yes), mayNot)
    // The button of one chat is worth nothing in the other.
    assert.match(await pressInTelegram(inTelegram, `doorward:${yes}`), mayNot)
    assert.match(await pressInTelegram(inTelegram, inTelegram.send, 666), mayNot)
    const elsewhere = { ...inTelegram, channel: '-1001' }
    assert.match(await pressInTelegram(elsewhere, inTelegram.send), mayNot)
    assert.equal(await stateOf(id), 'waiting')
    assert.match(await pressInTelegram(inTelegram, inTelegram.decline), /^Done: declined by 4711/)
    assert.equal(await stateOf(id), 'declined')
    assert.doesNotMatch(await answers(), /second/)
  })

  it('takes one of many presses of one millisecond', async () => {
    const { id, inSlack, inTelegram } = await ask('third')
    const said = await Promise.all([
      pressInSlack(inSlack, inSlack.send),
      pressInTelegram(inTelegram, inTelegram.decline),
      pressInSlack(inSlack, inSlack.decline),
      pressInSlack(inSlack, inSlack.send),
    ])
    assert.equal(said.filter((text) => text.startsWith('Done')).length, 1, said.join('\n'))
    assert.equal(said.filter((text) => text.startsWith('Nothing changed')).length, 3)
    const { state, approval } = await untilFinished(daemon, id)
    assert.equal(state, approval?.state === 'approved' ? 'done' : 'declined')
    assert.equal((await answers()).match(/^third$/gm)?.length ?? 0, state === 'done' ? 1 : 0)
  })

  it('says that a question has expired, in its message and to a later press', async () => {
    const { id, inSlack, inTelegram } = await ask('fourth', '/short')
    assert.match(await untilEdited(inTelegram), /expired/)
    assert.match(await pressInSlack(inSlack, inSlack.send), /^Nothing changed: expired/)
    assert.match(await pressInTelegram(inTelegram, inTelegram.send), /^Nothing changed: expired/)
    assert.equal(await stateOf(id), 'expired')
    assert.doesNotMatch(await answers(), /fourth/)
  })

  it('takes no press about an answer that another one has replaced', async () => {
    const first = await ask('fifth')
    await daemon.client.post(`/events/${first.id}/again`, { remark: 'shorter' })
    const second = await nextQuestion()
    assert.match(
      await pressInSlack(first.inSlack, first.inSlack.send),
      /^Nothing changed: .*asked again/,
    )
    assert.match(
      await pressInTelegram(first.inTelegram, first.inTelegram.send),
      /^Nothing changed: .*asked again/,
    )
    assert.equal(await stateOf(first.id), 'waiting')
    assert.match(await pressInSlack(second.inSlack, second.inSlack.send), /^Done/)
  })

  it('takes the press of a button that was shown before a restart, in both chats, and asks nothing twice', async () => {
    const [one, two] = [await ask('sixth'), await ask('seventh')]
    await restart(daemon.client)
    daemon = await inService(daemon)
    assert.match(await pressInTelegram(one.inTelegram, one.inTelegram.send), /^Done: approved/)
    assert.match(await pressInSlack(two.inSlack, two.inSlack.send), /^Done: approved/)
    for (const { id } of [one, two]) assert.equal((await untilFinished(daemon, id)).state, 'done')
    assert.match(await answers(), /^sixth$[^]*^seventh$|^seventh$[^]*^sixth$/m)
    assert.equal(slack.countCalls('chat.postMessage'), asked)
  })

  it('says in both chats that a stop has lost it, and to an old button that it is not known', async () => {
    const { inSlack, inTelegram } = await ask('eighth')
    const updates = slack.countCalls('chat.update')
    daemon.client.close()
    await stopHome(daemon.home)
    assert.match(await untilEdited(inTelegram), /the daemon stopped/)
    const { body } = await slack.untilCalled('chat.update', updates + 1)
    assert.match(String(body['text']), /the daemon stopped/)
    daemon = await startDaemon({ home: daemon.home })
    await slack.untilOpen()
    const lost = /^Nothing changed: .*no longer known/
    assert.match(await pressInSlack(inSlack, inSlack.send), lost)
    assert.match(await pressInTelegram(inTelegram, inTelegram.send), lost)
    assert.doesNotMatch(await answers(), /eighth/)
  })
})
