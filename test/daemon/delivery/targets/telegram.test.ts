import assert from 'node:assert/strict'
import { makeReply, deliverWith, resolveTargets } from '../../../support/servers/deliver.ts'
import {
  type TargetServer,
  json,
  reset,
  startTargetServer,
} from '../../../support/servers/target-server.ts'

const ok = json(200, { ok: true, result: { message_id: 1 } })
const no = (code: number, description: string, parameters = {}) =>
  json(code, { ok: false, error_code: code, description, parameters })

describe('delivery to Telegram', () => {
  let server: TargetServer
  beforeEach(async () => {
    server = await startTargetServer(ok)
  })
  afterEach(() => server.close())

  const run = async (target: string, text = 'an answer', token = '123:AAE-canary_token') => {
    const { deliver } = deliverWith(
      { telegram: { api_url: server.origin, token_env: 'BOT', me: 4242 } },
      { env: { BOT: token } },
    )
    const [result] = await deliver(resolveTargets([target]), makeReply(text))
    return result
  }

  it('sends the text with entities, without link previews', async () => {
    const result = await run('telegram:-100123', '**done**: [it](https://a.b)')
    assert.deepEqual(result, { target: 'telegram:-100123', state: 'done', attempts: 1 })
    const [request] = server.requests
    assert.equal(request?.path, '/bot123:AAE-canary_token/sendMessage')
    assert.deepEqual(request?.fields, {
      chat_id: '-100123',
      text: 'done: it',
      entities: [
        { type: 'bold', offset: 0, length: 4 },
        { type: 'text_link', url: 'https://a.b', offset: 6, length: 2 },
      ],
      link_preview_options: { is_disabled: true },
    })
  })

  it('links to a message of a channel or a large group, and to no other', async () => {
    for (const [chat, page] of [
      [{ id: -1001234567890, username: 'my_channel' }, 'https://t.me/my_channel/9'],
      [{ id: -1001234567890 }, 'https://t.me/c/1234567890/9'],
      [{ id: -1001234567890, username: '../x?y' }, 'https://t.me/c/1234567890/9'],
      [{ id: 4242, username: 'a_person' }, undefined],
      [{ id: -4242 }, undefined],
      [undefined, undefined],
    ] as const) {
      const links: { url: string }[] = []
      server.next(json(200, { ok: true, result: { message_id: 9, chat } }))
      const { deliver } = deliverWith(
        { telegram: { api_url: server.origin, token_env: 'BOT' } },
        { env: { BOT: '1:A' } },
      )
      await deliver(resolveTargets(['telegram:-1001234567890']), makeReply(), {
        made: (link) => void links.push(link),
      })
      assert.deepEqual(
        links.map(({ url }) => url),
        page === undefined ? [] : [page],
      )
    }
  })

  it('sends no empty message, which Telegram rejects', async () => {
    await run('telegram:1', '```\n```')
    assert.equal(server.requests[0]?.fields['text'], '```\n```')
  })

  it("sends to the owner's own chat by @me, and to a channel by its name", async () => {
    await run('telegram:@me')
    await run('telegram:@my_channel')
    assert.deepEqual(
      server.requests.map(({ fields }) => fields['chat_id']),
      ['4242', '@my_channel'],
    )
  })

  it('sends to a topic of a group, and to General without a number', async () => {
    for (const address of ['-1001234567890/45', '@my_group/7', '-1001234567890/1'])
      assert.equal((await run(`telegram:${address}`))?.state, 'done')
    assert.deepEqual(
      server.requests.map(({ fields }) => [fields['chat_id'], fields['message_thread_id']]),
      [
        ['-1001234567890', 45],
        ['@my_group', 7],
        ['-1001234567890', undefined],
      ],
    )
  })

  it('waits as long as Telegram asks', async () => {
    server.next(no(429, 'Too Many Requests: retry after 0.2', { retry_after: 0.2 }))
    const started = performance.now()
    const result = await run('telegram:1')
    assert.deepEqual([result?.state, result?.attempts], ['done', 2])
    assert.ok(performance.now() - started >= 195)
  })

  it('follows a group to its new id, and reports it', async () => {
    server.next(
      no(400, 'Bad Request: group chat was upgraded to a supergroup chat', {
        migrate_to_chat_id: -1001234,
      }),
    )
    const result = await run('telegram:-5')
    assert.deepEqual([result?.state, result?.attempts], ['done', 1])
    assert.match(result?.detail ?? '', /use telegram:-1001234/)
    assert.equal(server.requests[1]?.fields['chat_id'], '-1001234')
  })

  it('sends without formatting when Telegram rejects it', async () => {
    server.next(no(400, "Bad Request: can't parse entities: x"))
    const result = await run('telegram:5', '**x**')
    assert.deepEqual([result?.state, result?.detail], ['done', 'sent without formatting'])
    assert.equal(server.requests[1]?.fields['entities'], undefined)
  })

  for (const [answer, words] of [
    [no(400, 'Bad Request: chat not found'), /no such chat.*write to the bot first/],
    [no(400, 'Bad Request: message thread not found'), /no such topic.*last number/],
    [no(400, 'Bad Request: TOPIC_CLOSED'), /topic is closed/],
    [no(403, 'Forbidden: bot was blocked by the user'), /blocked/],
    [no(403, "Forbidden: bot can't initiate conversation with a user"), /\/start/],
    [
      no(400, 'Bad Request: not enough rights to send text messages to the chat'),
      /write there.*allow/,
    ],
    [no(400, 'Bad Request: have no rights to send a message'), /write there.*allow/],
    [no(403, 'Forbidden: CHAT_WRITE_FORBIDDEN'), /write there.*allow/],
    [no(403, 'Forbidden: something new'), /^telegram answered 403$/],
    [no(401, 'Unauthorized'), /refused the token in BOT/],
    [no(404, 'Not Found'), /refused the token in BOT/],
  ] as const)
    it(`fails immediately with ${words.source}`, async () => {
      server.next(answer)
      const result = await run('telegram:5')
      assert.deepEqual([result?.state, result?.attempts], ['failed', 1])
      assert.match(result?.detail ?? '', words)
      assert.doesNotMatch(result?.detail ?? '', /canary/)
    })

  it('is not sent again when it may have arrived', async () => {
    server.next(reset)
    const result = await run('telegram:5')
    assert.match(result?.detail ?? '', /closed the connection.*outcome unknown/)
    assert.doesNotMatch(result?.detail ?? '', /canary/)
    assert.equal(server.requests.length, 1)
  })

  it('sends nothing with a malformed token', async () => {
    for (const token of ['../x', '1/2?a', 'a b']) {
      const result = await run('telegram:5', 'x', token)
      assert.match(result?.detail ?? '', /refused the token in BOT/)
    }
    assert.equal(server.requests.length, 0)
  })
})
