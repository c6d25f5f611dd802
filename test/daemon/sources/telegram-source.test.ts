import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Bot } from 'grammy'
import { DoorwardError } from '../../../shared/errors.ts'
import { Offsets } from '../../../daemon/sources/telegram/offsets.ts'
import type { TelegramPress } from '../../../daemon/sources/telegram/press.ts'
import { TelegramSource } from '../../../daemon/sources/telegram/telegram-source.ts'
import { TelegramServer } from '../../support/servers/telegram-server.ts'
import { Taker, untilState } from '../../support/servers/watched-source.ts'
import { temporaryFolder } from '../../support/temporary.ts'

const owner = 4711
const stranger = 666

describe('the updates of a bot of Telegram', () => {
  let telegram: TelegramServer
  let taker: Taker
  let source: TelegramSource
  let file: string
  let presses: TelegramPress[]

  const start = (token = telegram.token): TelegramSource => {
    source = new TelegramSource({
      ...taker.services,
      apiUrl: telegram.origin,
      token: { token, name: 'TELEGRAM_BOT_TOKEN' },
      offsets: new Offsets(file),
      pressed: async (press) => void presses.push(press),
    })
    source.start()
    return source
  }

  beforeEach(async () => {
    telegram = await TelegramServer.start()
    taker = new Taker()
    const feed = { kind: 'telegram', tokenEnv: 'TELEGRAM_BOT_TOKEN', from: [owner] } as const
    taker.webhook = { ...taker.webhook, feed }
    file = join(await temporaryFolder(), 'telegram.json')
    presses = []
  })

  afterEach(async () => {
    await source.stop()
    await telegram.close()
  })

  it('is a server that grammY reads its updates from', async () => {
    start().status()
    await source.stop()
    const bot = new Bot(telegram.token, { client: { apiRoot: telegram.origin } })
    const seen = new Promise<string>((resolve) =>
      bot.on('message:text', ({ msg }) => resolve(msg.text)),
    )
    telegram.message(owner, '/ask why')
    const running = bot.start({ timeout: 1 })
    assert.equal(await seen, '/ask why')
    await bot.stop()
    await running
  })

  it('brings messages of those who may, in order, and confirms them after the queue has them', async () => {
    const first = telegram.message(owner, '/ask@a_bot one')
    telegram.message(owner, 'two')
    start()
    await telegram.untilEmpty()
    const texts = taker.payloads().map(({ message }) => (message as { text: string }).text)
    assert.deepEqual(texts, ['/ask@a_bot one', 'two'])
    assert.equal(taker.taken[0]?.source, 'telegram')
    assert.equal(taker.payloads()[0]?.['update_id'], first)
    assert.deepEqual(telegram.calls[0]?.body['allowed_updates'], ['message', 'callback_query'])
    await source.stop()
    assert.deepEqual(JSON.parse(await readFile(file, 'utf8')), { 123456: first + 2 })
  })

  it('ignores everyone else, also in a group and with the name of the owner', async () => {
    telegram.message(stranger, 'run this')
    telegram.add({
      message: { message_id: 1, chat: { id: -1001 }, sender_chat: { id: owner }, text: 'x' },
    })
    telegram.add({
      message: { message_id: 2, from: { id: String(owner) }, chat: { id: 1 }, text: 'x' },
    })
    telegram.press(stranger, 'x', { channel: '1', id: '1' })
    start()
    await telegram.untilEmpty()
    assert.equal(taker.taken.length, 0)
    assert.equal(source.status().ignored, 4)
  })

  it('goes on where it was after a restart, and asks for nothing twice', async () => {
    const id = telegram.message(owner, 'one')
    start()
    await telegram.untilEmpty()
    await source.stop()
    telegram.message(owner, 'two')
    start()
    await taker.untilTaken(2)
    const offsets = telegram.calls.map(({ body }) => body['offset'])
    assert.deepEqual([offsets[0], offsets.at(-1)], [undefined, id + 1])
    assert.equal(taker.taken.length, 2)
  })

  it('reads all that waits where its file is damaged', async () => {
    await writeFile(file, '{"123456": "x"')
    telegram.message(owner, 'one')
    start()
    await taker.untilTaken(1)
  })

  it('keeps the order, and reads an update again that the full queue refuses', async () => {
    taker.refusals.push(new DoorwardError('queue-full', 'the queue is full'))
    telegram.message(owner, 'one')
    telegram.message(owner, 'two')
    start()
    await taker.untilTaken(2)
    const texts = taker.payloads().map(({ message }) => (message as { text: string }).text)
    assert.deepEqual(texts, ['one', 'two'])
  })

  it('leaves all to the daemon that takes over', async () => {
    taker.serving = false
    telegram.message(owner, 'one')
    start()
    await untilState(source, 'connected')
    await source.stop()
    assert.equal(taker.taken.length, 0)
    assert.equal(telegram.updates.length, 1)
  })

  it('reads 10,000 updates after a week, and its memory stays level', async function () {
    this.timeout(60_000)
    for (let each = 0; each < 10_000; each += 1)
      telegram.message(each % 10 === 0 ? owner : stranger, `message ${each} ${'x'.repeat(1000)}`)
    const before = process.memoryUsage().heapUsed
    start()
    await telegram.untilEmpty()
    assert.equal(taker.taken.length, 1000)
    assert.equal(source.status().ignored, 9000)
    taker.taken.length = 0
    globalThis.gc?.()
    assert.ok(process.memoryUsage().heapUsed - before < 64 * 1024 * 1024)
  })

  it('gives a press to the approval, and ours alone', async () => {
    telegram.press(stranger, `doorward:${'x'.repeat(22)}`, { channel: '-1001', id: '42' })
    telegram.press(owner, 'of a rule', { channel: '4711', id: '43' })
    start()
    await telegram.untilEmpty()
    // Who may press, the approval decides; that of a rule is answered, as the app would spin.
    assert.deepEqual(
      presses.map(({ buttonId, userId, message }) => ({ buttonId, userId, message })),
      [
        { buttonId: 'x'.repeat(22), userId: stranger, message: { channel: '-1001', id: '42' } },
        { buttonId: undefined, userId: owner, message: { channel: '4711', id: '43' } },
      ],
    )
    assert.equal(taker.taken.length, 1)
  })

  it('says that another program reads, and goes on when that ends', async () => {
    telegram.conflict = 'Conflict: terminated by other getUpdates request'
    start()
    while (!source.status().problem) await new Promise((resolve) => setTimeout(resolve, 5))
    assert.match(source.status().problem?.detail ?? '', /another program reads/)
    telegram.conflict = undefined
    await untilState(source, 'connected')
    assert.equal(source.status().problem, undefined)
  })

  it('says that a webhook is set', async () => {
    telegram.conflict =
      "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook"
    start()
    while (!source.status().problem) await new Promise((resolve) => setTimeout(resolve, 5))
    assert.match(source.status().problem?.hint ?? '', /deleteWebhook/)
  })

  it('ends with a token that Telegram refuses, and shows no part of it', async () => {
    start('99:wrong-never-shown')
    const fault = await taker.untilTold()
    assert.equal(fault.message, 'telegram refused the token in TELEGRAM_BOT_TOKEN')
    assert.doesNotMatch(JSON.stringify([source.status(), fault]), /never-shown/)
  })

  it('ends with a token that is none, and sends it nowhere', async () => {
    start('../../evil never-shown')
    await taker.untilTold()
    assert.equal(telegram.calls.length, 0)
  })
})
