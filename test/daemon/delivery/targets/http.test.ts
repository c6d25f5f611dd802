import assert from 'node:assert/strict'
import { Webhook } from 'standardwebhooks'
import { makeReply, deliverWith, resolveTargets } from '../../../support/servers/deliver.ts'
import {
  type TargetServer,
  json,
  reset,
  startTargetServer,
} from '../../../support/servers/target-server.ts'

const shown = 'She said "no" \\ & <b>\nline two, é😀'
const escaped = shown.replace('&', '&amp;').replace('<', '&lt;').replace('>', '&gt;')

/** The templates of docs/targets.md, and what they make of a hostile answer. */
const recipes = [
  [
    'Slack',
    '{"text": {{ result | truncate: 30000 | replace: "&", "&amp;" | replace: "<", "&lt;" | replace: ">", "&gt;" | json }}}',
    { text: escaped },
  ],
  ['Mattermost', '{"text": {{ result | truncate: 16000 | json }}}', { text: shown }],
  [
    'Teams',
    '{"type": "message", "attachments": [{"contentType": "application/vnd.microsoft.card.adaptive", "content": {"type": "AdaptiveCard", "version": "1.4", "body": [{"type": "TextBlock", "wrap": true, "text": {{ result | truncate_bytes: 24000 | json }}}]}}]}',
    {
      type: 'message',
      attachments: [
        {
          contentType: 'application/vnd.microsoft.card.adaptive',
          content: {
            type: 'AdaptiveCard',
            version: '1.4',
            body: [{ type: 'TextBlock', wrap: true, text: shown }],
          },
        },
      ],
    },
  ],
  [
    'ntfy',
    '{"topic": "my-topic", "title": {{ webhook.path | json }}, "message": {{ result | truncate: 3000 | json }}}',
    { topic: 'my-topic', title: '/github', message: shown },
  ],
] as const

const secret = `whsec_${Buffer.from('a secret of 24 bytes, ok').toString('base64')}`

describe('delivery to a receiver of signed requests', () => {
  let server: TargetServer
  let previewed: readonly string[]
  beforeEach(async () => {
    server = await startTargetServer((response) => void response.writeHead(204).end())
  })
  afterEach(() => server.close())

  const run = async (
    env: Record<string, string> = { HOOK_SECRET: secret, KEY: 'a key' },
    text = 'an answer',
    headers: Record<string, string> = { 'x-fixed': 'yes', authorization: 'env:KEY' },
  ) => {
    const http = {
      archive: { url: `${server.origin}/take?a=1`, secret_env: 'HOOK_SECRET', headers },
    }
    const { deliver, preview } = deliverWith({ http }, { env })
    const targets = resolveTargets(['http:archive'])
    previewed = await Promise.all(targets.map(async (target) => preview(target, makeReply(text))))
    const [result] = await deliver(targets, makeReply(text))
    return result
  }
  const headersOf = (place: number) =>
    server.requests[place]?.headers as unknown as Record<string, string>

  it('posts the answer with a signature that the Standard Webhooks library accepts', async () => {
    const text = '\u001b[31m**é😀**'
    assert.deepEqual(await run(undefined, text), {
      target: 'http:archive',
      state: 'done',
      attempts: 1,
    })
    const [request] = server.requests
    assert.deepEqual([request?.method, request?.path], ['POST', '/take?a=1'])
    assert.deepEqual(previewed, [request?.text])
    const verified = new Webhook(secret).verify(request?.text ?? '', headersOf(0))
    assert.deepEqual(verified, {
      type: 'agent.answered',
      timestamp: '2026-01-01T00:00:00.000Z',
      data: {
        eventId: 'evt_0123456789abcdef01',
        webhook: '/github',
        receivedAt: '2026-01-01T00:00:00.000Z',
        result: text,
      },
    })
    assert.equal(headersOf(0)['x-fixed'], 'yes')
    assert.equal(headersOf(0)['authorization'], 'a key')
  })

  it('has one id for all attempts, and another one for another answer', async () => {
    server.next(reset, json(503, {}), json(429, {}))
    const result = await run()
    assert.deepEqual([result?.state, result?.attempts], ['done', 4])
    await run(undefined, 'another answer')
    const ids = server.requests.map(({ headers }) => headers['webhook-id'])
    assert.equal(new Set(ids.slice(0, 4)).size, 1)
    assert.notEqual(ids[4], ids[0])
    new Webhook(secret).verify(server.requests[3]?.text ?? '', headersOf(3))
  })

  it('fails immediately on a port without TLS', async () => {
    const url = `https://127.0.0.1:${new URL(server.origin).port}/`
    const http = { archive: { url, secret_env: 'HOOK_SECRET' } }
    const [result] = await deliverWith({ http }, { env: { HOOK_SECRET: secret } }).deliver(
      resolveTargets(['http:archive']),
      makeReply(),
    )
    assert.deepEqual([result?.state, result?.attempts], ['failed', 1])
    assert.match(result?.detail ?? '', /^the server does not speak TLS \(EPROTO\) \(check/)
    assert.deepEqual(server.requests, [])
  })

  for (const [status, words] of [
    [410, /was removed/],
    [401, /same secret/],
    [404, /check url/],
    [302, /redirect, which is not followed/],
    [400, /^the server answered 400$/],
  ] as const)
    it(`fails immediately for ${status}`, async () => {
      server.next(json(status, {}, { location: `${server.origin}/x` }))
      const result = await run()
      assert.deepEqual([result?.state, result?.attempts], ['failed', 1])
      assert.match(result?.detail ?? '', words)
      assert.equal(server.requests.length, 1)
    })

  it('sends nothing without a valid secret, or with a header without a value', async () => {
    for (const HOOK_SECRET of ['', 'whsec_', 'not base64!'])
      assert.match((await run({ HOOK_SECRET, KEY: 'k' }))?.detail ?? '', /^HOOK_SECRET/)
    assert.match((await run({ HOOK_SECRET: secret }))?.detail ?? '', /^KEY/)
    assert.match((await run({ HOOK_SECRET: secret, KEY: 'a\nb' }))?.detail ?? '', /^KEY/)
    assert.equal(server.requests.length, 0)
  })
})

describe('delivery to a chat by its incoming webhook', () => {
  let server: TargetServer
  beforeEach(async () => {
    server = await startTargetServer((response) => void response.writeHead(200).end('ok'))
  })
  afterEach(() => server.close())

  const env = () => ({ CHAT_URL: `${server.origin}/services/T0/B0/canary-token` })
  const run = async (entry: object, text: string, variables: Record<string, string> = env()) => {
    const http = { chat: { url_env: 'CHAT_URL', sign: false, ...entry } }
    const [result] = await deliverWith({ http }, { env: variables }).deliver(
      resolveTargets(['http:chat']),
      makeReply(text),
    )
    return result
  }
  const hostile = 'She said "no" \\ & <b>\nline\u0000\u001b[31m two, é😀'

  for (const [name, body_template, body] of recipes)
    it(`posts what ${name} takes, without a signature`, async () => {
      assert.equal((await run({ body_template }, hostile))?.state, 'done')
      const [request] = server.requests
      assert.equal(request?.path, '/services/T0/B0/canary-token')
      assert.equal(request?.headers['content-type'], 'application/json')
      const names = Object.keys(request?.headers ?? {})
      assert.ok(!names.some((name) => name.startsWith('webhook-')))
      assert.deepEqual(JSON.parse(request?.text ?? ''), body)
    })

  for (const [what, answer] of [
    ['Chinese', '报告完成'.repeat(5000)],
    ['quotes and line ends', '"\n\\'.repeat(7000)],
    ['emoji', '😀'.repeat(9000)],
  ] as const)
    it(`is within the 28 KB of Teams for an answer of ${what}`, async () => {
      const [, body_template] = recipes.find(([name]) => name === 'Teams') ?? []
      assert.equal((await run({ body_template }, answer))?.state, 'done')
      const sent = server.requests[0]?.text ?? ''
      const bytes = Buffer.byteLength(sent)
      assert.ok(bytes > 23_900 && bytes < 28 * 1024, String(bytes))
      assert.match(sent, /…"/)
      assert.doesNotMatch(sent, /\\ud/)
    })

  it('has the event, its webhook and its time', async () => {
    const names = '[{{event_id|json}},{{webhook.path|json}},{{delivery.received_at|json}}]'
    await run({ body_template: names }, 'x')
    const expected = ['evt_0123456789abcdef01', '/github', '2026-01-01T00:00:00.000Z']
    assert.deepEqual(JSON.parse(server.requests[0]?.text ?? ''), expected)
  })

  it('notifies no one, and leaves mail addresses', async () => {
    await run(
      { body_template: '{"text": {{ result | json }}}' },
      '<!channel> <@U123> @channel @all @here @ann me@example.com',
    )
    const { text } = JSON.parse(server.requests[0]?.text ?? '') as { text: string }
    assert.doesNotMatch(text, /<!|<@|(?<!\w)@\w/)
    assert.match(text, /me@example\.com/)
  })

  it('is signed as well where it is to be', async () => {
    const http = {
      archive: {
        url: `${server.origin}/take`,
        secret_env: 'HOOK_SECRET',
        body_template: '{"result": {{ result | json }}}',
      },
    }
    await deliverWith({ http }, { env: { HOOK_SECRET: secret } }).deliver(
      resolveTargets(['http:archive']),
      makeReply('x'),
    )
    const [request] = server.requests
    const headers = request?.headers as unknown as Record<string, string>
    assert.deepEqual(new Webhook(secret).verify(request?.text ?? '', headers), { result: 'x' })
  })

  it('never shows its URL, whatever fails', async () => {
    const body_template = '{"text": {{ result | json }}}'
    const elsewhere = { location: `${server.origin}/elsewhere` }
    for (const answer of [json(404, {}), json(403, {}), json(307, {}, elsewhere), json(400, {})]) {
      server.next(answer)
      const result = await run({ body_template }, 'x')
      assert.deepEqual([result?.state, result?.attempts], ['failed', 1])
      assert.doesNotMatch(JSON.stringify(result), /canary|services/)
    }
    assert.equal(server.requests.length, 4)
    for (const [CHAT_URL, words] of [
      ['', /^CHAT_URL is unset/],
      ['canary', /^CHAT_URL is not an https URL/],
      ['http://example.com/canary', /^CHAT_URL is not an https URL/],
    ] as const) {
      const result = await run({ body_template }, 'x', { CHAT_URL })
      assert.match(result?.detail ?? '', words)
      assert.doesNotMatch(JSON.stringify(result), /canary/)
    }
  })

  it('is not sent again where it may have arrived, as no one would recognise the repeat', async () => {
    server.next(reset)
    const result = await run({ body_template: '{"text": {{ result | json }}}' }, 'x')
    assert.deepEqual([result?.state, result?.attempts], ['failed', 1])
    assert.match(result?.detail ?? '', /it may have arrived/)
  })

  it('fails without a request when the body is not JSON for this answer', async () => {
    const body_template =
      '{"text": {% if result contains "odd" %}"{{ result }}"{% else %}{{ result | json }}{% endif %}}'
    const result = await run({ body_template }, 'odd "quotes"')
    assert.match(result?.detail ?? '', /^body_template does not make JSON of this answer/)
    assert.equal(server.requests.length, 0)
  })
})

describe('delivery to a receiver whose URL and body have values of the event', () => {
  let server: TargetServer
  beforeEach(async () => {
    server = await startTargetServer((response) => void response.writeHead(204).end())
  })
  afterEach(() => server.close())

  const run = async (payload: unknown) => {
    const http = {
      issue: {
        url: `${server.origin}/issue/{{event.issue.key}}/comment?a=1`,
        sign: false,
        body_template:
          '{"body": {{ result | json }}, "title": {{ event.issue.title | json }}, "first": {{ event.labels[0] | json }}, "n": {{ event.n | json }}, "all": {{ event.issue | json }}}',
      },
    }
    const targets = resolveTargets(['http:issue'], payload, http)
    // As through a restart.
    const copied = JSON.parse(JSON.stringify(targets)) as typeof targets
    const [target] = targets
    const sent = target?.kind === 'invalid' ? targets : copied
    const [result] = await deliverWith({ http }).deliver(sent, makeReply())
    return result
  }

  it('has them percent-encoded in the path, and escaped in the body', async () => {
    const title = 'a "title"\n@channel'
    const issue = { key: 'A b%2e?#é', title, secret: 'x' }
    assert.equal((await run({ issue, labels: ['one'], n: 7 }))?.state, 'done')
    const [sent] = server.requests
    assert.equal(sent?.path, '/issue/A%20b%252e%3F%23%C3%A9/comment?a=1')
    assert.deepEqual(sent.fields, {
      body: 'an answer',
      title: 'a "title"\n@\u200bchannel',
      first: 'one',
      n: 7,
      // Only what the template names of it.
      all: { title: 'a "title"\n@\u200bchannel' },
    })
  })

  it('has null for what is no single value, and cuts a long one', async () => {
    await run({ issue: { key: 'A', title: { a: 1 } }, labels: 'one', n: 'x'.repeat(5000) })
    const { title, first, n } = server.requests[0]?.fields ?? {}
    assert.deepEqual([title, first, String(n).length], [null, null, 4000])
  })

  for (const key of ['', '.', '..', 'a/b', 'a\\b', 'a..b', '\ud800', 'a\nb', {}, null, undefined])
    it(`sends nothing for the segment ${JSON.stringify(key)}`, async () => {
      const result = await run({ issue: { key } })
      assert.deepEqual([result?.state, result?.code], ['failed', 'target-invalid'])
      assert.match(result?.detail ?? '', /^the URL cannot be made: {{event.issue.key}} /)
      assert.equal(server.requests.length, 0)
    })

  it('sends nothing where the URL has got a value since the event came', async () => {
    const http = { issue: { url: `${server.origin}/{{event.key}}`, sign: false } }
    const before = resolveTargets(
      ['http:issue'],
      {},
      { issue: { url: server.origin, sign: false } },
    )
    const [result] = await deliverWith({ http }).deliver(before, makeReply())
    assert.deepEqual([result?.code, server.requests.length], ['target-invalid', 0])
  })
})
