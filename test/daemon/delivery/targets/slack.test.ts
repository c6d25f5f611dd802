import assert from 'node:assert/strict'
import { makeReply, deliverWith, resolveTargets } from '../../../support/servers/deliver.ts'
import {
  type Answer,
  type TargetServer,
  json,
  reset,
  startTargetServer,
} from '../../../support/servers/target-server.ts'

const ok = json(200, { ok: true, channel: 'C1', ts: '1.2' })
const no = (error: string, status = 200) => json(status, { ok: false, error })

describe('delivery to Slack', () => {
  let server: TargetServer
  beforeEach(async () => {
    server = await startTargetServer(ok)
  })
  afterEach(() => server.close())

  const settings = () => ({ slack: { api_url: `${server.origin}/api` } })
  const brokered = (tokens = ['xoxp-first', 'xoxp-second']) =>
    deliverWith(settings(), { tokens: { slack: tokens } })
  const run = async (target = 'slack:#alerts', text = 'an answer', test = brokered()) => {
    const [result] = await test.deliver(resolveTargets([target]), makeReply(text))
    return { result, ...test }
  }

  it('posts Markdown with the token of the login, without link previews', async () => {
    const { result, asked } = await run('slack:#alerts', '**done** <!here>')
    assert.deepEqual(result, { target: 'slack:#alerts', state: 'done', attempts: 1 })
    const [request] = server.requests
    assert.deepEqual(
      [request?.method, request?.path, request?.headers.authorization],
      ['POST', '/api/chat.postMessage', 'Bearer xoxp-first'],
    )
    assert.deepEqual(request?.fields, {
      channel: '#alerts',
      markdown_text: '**done** <\u200b!here>',
      unfurl_links: false,
      unfurl_media: false,
    })
    assert.deepEqual(asked, [{ provider: 'slack', asker: 'target slack', renewed: false }])
  })

  it('begins a message with what its event is about, as text, and none in a thread', async () => {
    const title =
      '#7 *x* _a_ snake_case `c` ~~s~~ [y](https://evil.example) <!here> <@U0123ABCD> & \\'
    const { deliver } = brokered()
    for (const target of ['slack:#alerts', 'slack:C0123ABCD/1700000000.000100'])
      await deliver(resolveTargets([target]), makeReply('an answer', { title }))
    assert.deepEqual(
      server.requests.map(({ fields }) => fields['markdown_text']),
      [
        '**#7 \\*x\\* \\_a\\_ snake_case \\`c\\` \\~\\~s\\~\\~ \\[y\\](https://evil.example) ' +
          '&lt;\u200b!here&gt; &lt;\u200b@U0123ABCD&gt; &amp; \\\\**\n\nan answer',
        'an answer',
      ],
    )
    const long = 'x'.repeat(11_990)
    await deliver(resolveTargets(['slack:#alerts']), makeReply(long, { title }))
    const parts = server.requests.slice(2).map(({ fields }) => String(fields['markdown_text']))
    assert.equal(parts.length, 2)
    assert.ok(parts.every((part) => part.length <= 12_000))
    assert.equal(parts.join('').split('**').length, 3)
  })

  it('links to its message at its own server alone, and is done without that link too', async () => {
    const posted = json(200, { ok: true, channel: 'C0123ABCD', ts: '1700000000.000100' })
    const linkFor = async (...answers: Answer[]) => {
      const links: unknown[] = []
      server.next(posted, ...answers)
      const made = (link: unknown) => void links.push(link)
      const [result] = await brokered().deliver(resolveTargets(['slack:#a']), makeReply(), { made })
      assert.deepEqual(result, { target: 'slack:#a', state: 'done', attempts: 1 })
      return links
    }
    const page = `${server.origin}/archives/C0123ABCD/p1700000000000100`
    const found = await linkFor(json(200, { ok: true, permalink: page }))
    assert.deepEqual(found, [{ target: 'slack:#a', what: 'message', url: page }])
    assert.equal(
      server.requests.at(-1)?.path,
      '/api/chat.getPermalink?channel=C0123ABCD&message_ts=1700000000.000100',
    )
    for (const permalink of [
      'https://evil.example/x',
      'javascript:alert(1)',
      7,
      `${page}\u0000 x`.repeat(99),
    ])
      assert.deepEqual(await linkFor(json(200, { ok: true, permalink })), [])
    assert.deepEqual(await linkFor(no('ratelimited', 429)), [])
    assert.deepEqual(await linkFor(reset), [])
  })

  it('writes channels, users and ids as Slack expects them', async () => {
    const { deliver } = brokered()
    const names = ['slack:#a-b_c', 'slack:@jane.doe', 'slack:C0123ABCD', 'slack:@U0123ABCD']
    await deliver(resolveTargets(names), makeReply())
    assert.deepEqual(
      server.requests.map(({ fields }) => String(fields['channel'])).toSorted(),
      ['#a-b_c', '@jane.doe', 'C0123ABCD', 'U0123ABCD'].toSorted(),
    )
  })

  it('sends a long answer as numbered messages in their order', async () => {
    const text = Array.from({ length: 3000 }, (_, line) => `line ${line}`).join('\n')
    const { result } = await run('slack:#alerts', text)
    assert.equal(result?.state, 'done')
    const sent = server.requests.map(({ fields }) => String(fields['markdown_text']))
    assert.deepEqual(
      sent.map((part) => part.slice(0, 6)),
      ['(1/3)\n', '(2/3)\n', '(3/3)\n'],
    )
    assert.equal(sent.map((part) => part.slice(6)).join('\n'), text)
  })

  it('retries after 429 and 5xx, not before the requested time', async () => {
    server.next(
      json(429, { ok: false, error: 'ratelimited' }, { 'retry-after': '0.2' }),
      no('anything', 503),
      json(200, { ok: false, error: 'ratelimited' }),
    )
    const started = performance.now()
    const { result } = await run()
    assert.deepEqual([result?.state, result?.attempts], ['done', 4])
    assert.ok(performance.now() - started >= 195)
  })

  for (const [error, words] of [
    ['not_in_channel', /invite the app to the channel: \/invite/],
    ['channel_not_found', /check its name/],
    ['is_archived', /archived/],
    ['missing_scope', /chat:write/],
    ['msg_too_long', /shorter answer/],
    ['something_new', /^slack answered something_new$/],
    ['<script>', /^slack answered an error without a name$/],
  ] as const)
    it(`fails immediately for ${error}, in plain words`, async () => {
      server.next(no(error))
      const { result } = await run()
      assert.deepEqual([result?.state, result?.attempts], ['failed', 1])
      assert.match(result?.detail ?? '', words)
    })

  it('says to use an id when a user is not found by name', async () => {
    server.next(no('channel_not_found'))
    const { result } = await run('slack:@jane')
    assert.match(result?.detail ?? '', /slack:U…/)
  })

  it('refreshes the token once when Slack refuses it', async () => {
    server.next(no('token_expired'))
    const { result, asked } = await run()
    assert.equal(result?.state, 'done')
    assert.deepEqual(
      server.requests.map(({ headers }) => headers.authorization),
      ['Bearer xoxp-first', 'Bearer xoxp-second'],
    )
    assert.deepEqual(
      asked.map(({ renewed }) => renewed),
      [false, true],
    )
  })

  it('reports that no one is logged in', async () => {
    const { result } = await run('slack:#alerts', 'x', deliverWith(settings()))
    assert.deepEqual([result?.state, result?.code], ['failed', 'not-logged-in'])
    assert.match(result?.detail ?? '', /doorward oauth login slack/)
    assert.equal(server.requests.length, 0)
  })

  it('uses the token of a variable instead, and names the variable when it is unset or refused', async () => {
    const slack = { api_url: `${server.origin}/api`, token_env: 'SLACK_TOKEN' }
    const set = deliverWith({ slack }, { env: { SLACK_TOKEN: ' xoxb-fixed\n' } })
    assert.equal((await run('slack:#a', 'x', set)).result?.state, 'done')
    assert.equal(server.requests[0]?.headers.authorization, 'Bearer xoxb-fixed')
    assert.deepEqual(set.asked, [])
    server.next(no('invalid_auth'))
    const refused = (await run('slack:#a', 'x', set)).result
    assert.match(refused?.detail ?? '', /refused the token in SLACK_TOKEN/)
    const unset = (await run('slack:#a', 'x', deliverWith({ slack }))).result
    assert.match(unset?.detail ?? '', /SLACK_TOKEN is unset/)
  })

  it('is not sent again when it may have arrived', async () => {
    for (const answer of [
      reset,
      no('internal_error'),
      no('fatal_error', 500),
      json(200, 'hello'),
    ]) {
      server.next(answer)
      const before = server.requests.length
      const { result } = await run()
      assert.deepEqual([result?.state, result?.attempts], ['failed', 1])
      assert.match(result?.detail ?? '', /outcome unknown: it may have arrived/)
      assert.equal(server.requests.length, before + 1)
    }
  })

  it('follows no redirect', async () => {
    server.next(json(307, {}, { location: `${server.origin}/elsewhere` }))
    const { result } = await run()
    assert.match(result?.detail ?? '', /with a redirect, which is not followed/)
    assert.equal(server.requests.length, 1)
  })

  it('shows neither token nor answer in what it reports and logs', async () => {
    server.next(no('not_in_channel'))
    const { result, logged } = await run('slack:#a', 'canary-answer')
    assert.doesNotMatch(`${JSON.stringify(result)} ${logged()}`, /xox|canary/)
  })
})
