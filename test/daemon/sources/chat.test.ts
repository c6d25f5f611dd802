import assert from 'node:assert/strict'
import { OwnMessages } from '../../../daemon/delivery/loop-guard.ts'
import { SlackChat } from '../../../daemon/sources/slack/chat.ts'
import { TelegramChat } from '../../../daemon/sources/telegram/chat.ts'
import type {
  ChatApprovals,
  ChatPress,
  ChatQuestion,
} from '../../../daemon/webhook/approvals/chat.ts'
import { SlackServer } from '../../support/servers/slack-server.ts'
import { TelegramServer } from '../../support/servers/telegram-server.ts'
import { check } from '../../support/daemon/config-files.ts'

const buttons = [
  { label: 'Send', style: 'primary', id: 'a'.repeat(22) },
  { label: 'Do not send', style: 'danger', id: 'b'.repeat(22) },
] as const

const question = (address: string): ChatQuestion => ({
  eventId: 'evt_1',
  address,
  text: '**Send** this comment to `acme/shop#1`?\n\nLooks good.',
  buttons,
})

/** Notes presses, and says one sentence to each. */
class Approvals implements ChatApprovals {
  readonly presses: ChatPress[] = []
  readonly connect = () => () => undefined
  readonly press = (press: ChatPress) => {
    this.presses.push(press)
    return Promise.resolve('Sent.')
  }
}

const { signal } = new AbortController()
const access = () => Promise.reject(new Error('there is no login in this test'))

describe('approvals in Slack', () => {
  let slack: SlackServer
  let approvals: Approvals
  let chat: SlackChat
  let messages: OwnMessages

  beforeEach(async () => {
    slack = await SlackServer.start()
    approvals = new Approvals()
    messages = new OwnMessages()
    const { gateway } = check({
      gateway: `targets: { slack: { api_url: "${slack.url}", token_env: SLACK_BOT_TOKEN } }`,
    })
    const env = () => ({ SLACK_BOT_TOKEN: 'xoxb-1' })
    chat = new SlackChat({ gateway: () => gateway, env, access, messages, approvals, signal })
  })

  afterEach(async () => slack.close())

  it('asks with two buttons, whose data says nothing, and takes them away afterwards', async () => {
    const message = await chat.ask(question('#ops'))
    const posted = await slack.untilCalled('chat.postMessage')
    assert.equal(posted.token, 'xoxb-1')
    const [text, actions] = posted.body['blocks'] as Record<string, unknown>[]
    assert.deepEqual(text, { type: 'markdown', text: question('').text })
    const elements = actions?.['elements'] as Record<string, unknown>[]
    assert.deepEqual(
      elements.map(({ value, style, action_id: id }) => [value, style, id]),
      [
        ['a'.repeat(22), 'primary', 'doorward-approval-0'],
        ['b'.repeat(22), 'danger', 'doorward-approval-1'],
      ],
    )
    assert.equal(message.channel, 'C0CHANNEL')
    // The app hears of its own message too.
    const own = { event: { channel: message.channel, ts: message.id } }
    assert.ok(messages.isOwnMessage(own))
    await chat.update(message, 'Sent by Ada.')
    const updated = await slack.untilCalled('chat.update')
    assert.deepEqual(updated.body['blocks'], [{ type: 'markdown', text: 'Sent by Ada.' }])
    assert.equal(updated.body['ts'], message.id)
  })

  const press = (teamId: string) => ({
    buttonId: 'a'.repeat(22),
    userId: 'U0ADA',
    teamId,
    message: { channel: 'C0CHANNEL', id: '1.2' },
    answerTo: new URL(`${slack.url.replace('/api', '')}/actions/1`),
  })

  it('gives a press to the approval by ids alone, and tells only the person who pressed', async () => {
    await chat.pressed(press('T0TEAM'))
    assert.deepEqual(approvals.presses, [
      {
        kind: 'slack',
        buttonId: 'a'.repeat(22),
        userId: 'U0ADA',
        message: { channel: 'C0CHANNEL', id: '1.2' },
      },
    ])
    const { body } = await slack.untilCalled('actions/1')
    assert.equal(body['response_type'], 'ephemeral')
    assert.equal(body['replace_original'], false)
    assert.equal(body['text'], 'Sent.')
  })

  it('refuses a press from another workspace, or from none', async () => {
    await chat.pressed(press('T0OTHER'))
    await chat.pressed(press(''))
    assert.deepEqual(approvals.presses, [])
    const { body } = await slack.untilCalled('actions/1', 2)
    assert.match(String(body['text']), /Only members of the workspace/)
  })
})

describe('approvals in Telegram', () => {
  let telegram: TelegramServer
  let approvals: Approvals
  let chat: TelegramChat

  beforeEach(async () => {
    telegram = await TelegramServer.start()
    approvals = new Approvals()
    const { gateway } = check({
      gateway: `targets: { telegram: { api_url: "${telegram.origin}", token_env: BOT, me: '4711' } }`,
    })
    chat = new TelegramChat({
      gateway: () => gateway,
      env: () => ({ BOT: telegram.token }),
      approvals,
      signal,
    })
  })

  afterEach(async () => telegram.close())

  it('asks with buttons, and takes them away', async () => {
    const message = await chat.ask(question('@me'))
    const { body } = await telegram.untilCalled('sendMessage')
    assert.equal(body['chat_id'], '4711')
    assert.deepEqual(body['reply_markup'], {
      inline_keyboard: [
        [
          { text: 'Send', callback_data: `doorward:${'a'.repeat(22)}` },
          { text: 'Do not send', callback_data: `doorward:${'b'.repeat(22)}` },
        ],
      ],
    })
    await chat.update(message, 'Sent by Ada.')
    const edited = await telegram.untilCalled('editMessageText')
    assert.equal(edited.body['message_id'], Number(message.id))
    assert.equal(edited.body['reply_markup'], undefined)
  })

  it('answers each press, as its button would spin', async () => {
    const message = { channel: '4711', id: '101' }
    const pressed = { queryId: 'q1', userId: 4711, message }
    await chat.pressed({ ...pressed, buttonId: 'a'.repeat(22) })
    await chat.pressed({ ...pressed, buttonId: undefined })
    assert.deepEqual(approvals.presses, [
      { kind: 'telegram', buttonId: 'a'.repeat(22), userId: '4711', message },
    ])
    const [first, second] = telegram.calls.map(({ body }) => body['text'])
    assert.deepEqual([first, second], ['Sent.', undefined])
  })
})
