import assert from 'node:assert/strict'
import { toMrkdwn } from '../../../../daemon/delivery/targets/slack-reply.ts'
import { deliverWith, makeReply, resolveTargets } from '../../../support/servers/deliver.ts'
import {
  type TargetServer,
  json,
  reset,
  startTargetServer,
} from '../../../support/servers/target-server.ts'

const ts = '1700000001.000100'
const thread_ts = '1700000000.000100'
const channel = 'C0123'

describe('an answer to where an event of Slack came from', () => {
  let server: TargetServer
  beforeEach(async () => {
    server = await startTargetServer(json(200, { ok: true, channel, ts }))
  })
  afterEach(() => server.close())

  const run = async (payload: unknown, target = 'slack:reply', text = 'an answer') => {
    const slack = { api_url: `${server.origin}/api`, token_env: 'SLACK_TOKEN' }
    const test = deliverWith({ slack }, { env: { SLACK_TOKEN: 'xoxb-1' } })
    const [result] = await test.deliver(resolveTargets([target], payload), makeReply(text))
    return { result, logged: test.logged() }
  }
  const command = (path = '/commands/T1/2/canary') => ({
    command: '/ask',
    response_url: `${server.origin}${path}`,
  })

  for (const [where, event, sent] of [
    ['a message in a thread', { channel, ts, thread_ts }, [channel, thread_ts]],
    ['a message in no thread, which begins one', { channel, ts }, [channel, ts]],
    ['a reaction', { item: { channel, ts } }, [channel, ts]],
    ['an event without a message', { channel }, [channel, undefined]],
  ] as const)
    it(`goes to the thread of ${where}`, async () => {
      const { result } = await run({ type: 'event_callback', event })
      assert.deepEqual([result?.target, result?.state], ['slack:reply', 'done'])
      const [request] = server.requests
      assert.equal(request?.path, '/api/chat.postMessage')
      assert.deepEqual([request.fields['channel'], request.fields['thread_ts']], sent)
    })

  it('goes to a thread that deliver_to names', async () => {
    const target = 'slack:{{event.event.channel}}/{{event.event.thread_ts}}'
    const { result } = await run({ event: { channel, thread_ts } }, target)
    assert.deepEqual([result?.target, result?.state], [`slack:${channel}/${thread_ts}`, 'done'])
    assert.deepEqual(
      [server.requests[0]?.fields['channel'], server.requests[0]?.fields['thread_ts']],
      [channel, thread_ts],
    )
    const outside = await run({ event: { channel } }, target)
    assert.deepEqual([outside.result?.state, outside.result?.code], ['failed', 'target-invalid'])
    assert.equal(server.requests.filter(({ method }) => method === 'POST').length, 1)
  })

  it('goes to the response_url of a command, without a token, and only to the person', async () => {
    server.next((response) => void response.end('ok'))
    const { result } = await run(command(), 'slack:reply', '**done**, see [it](https://a.example)')
    assert.deepEqual(result, { target: 'slack:reply', state: 'done', attempts: 1 })
    const [request] = server.requests
    assert.equal(request?.path, '/commands/T1/2/canary')
    assert.equal(request.headers.authorization, undefined)
    assert.deepEqual(request.fields, {
      text: '*done*, see <https://a.example|it>',
      response_type: 'ephemeral',
      replace_original: false,
      unfurl_links: false,
      unfurl_media: false,
    })
  })

  it('goes to the response_url of a form', async () => {
    await run({ type: 'view_submission', response_urls: [command('/actions/1')] })
    assert.equal(server.requests[0]?.path, '/actions/1')
  })

  it('goes to no other host, whatever the event says', async () => {
    for (const url of [
      'https://hooks.slack.com.evil.example/x',
      'https://evil.example/hooks.slack.com',
      'https://hooks.slack.com@evil.example/x',
      'https://me:canary@hooks.slack.com/x',
      'https://hooks.slack.com:8443/x',
      'http://hooks.slack.com/x',
      'http://169.254.169.254/latest/canary',
      `${server.origin.replace('127.0.0.1', '127.0.0.2')}/x`,
    ]) {
      const { result, logged } = await run({ response_url: url })
      assert.deepEqual([result?.state, result?.code], ['failed', 'target-invalid'], url)
      assert.doesNotMatch(JSON.stringify(result) + logged, /evil|canary|169/)
    }
    assert.equal(server.requests.length, 0)
  })

  it('fails in plain words when the response_url is over, without naming it', async () => {
    server.next(json(404, { ok: false, error: 'expired_url' }))
    const { result, logged } = await run(command())
    assert.equal(
      result?.detail,
      'slack answered expired_url (Slack takes answers to a command for 30 minutes, and five at most)',
    )
    server.next(reset)
    const lost = await run(command())
    assert.match(lost.result?.detail ?? '', /outcome unknown: it may have arrived/)
    assert.doesNotMatch(JSON.stringify([result, lost]) + logged, /canary|commands/)
  })

  it('fails for an event that came from no channel', async () => {
    for (const payload of [{}, null, { event: { channel: '<!here>', ts } }, { event: { ts } }]) {
      const { result } = await run(payload)
      assert.deepEqual([result?.state, result?.code], ['failed', 'target-invalid'])
    }
    assert.equal(server.requests.length, 0)
  })
})

describe('toMrkdwn', () => {
  it('writes Markdown as Slack has it, and nothing that Slack would expand', () => {
    for (const [markdown, mrkdwn] of [
      ['# Title\n\nplain', '*Title*\n\nplain'],
      ['**a *b* c** ~~d~~', '*a _b_ c* ~d~'],
      ['`x < y`', '`x &lt; y`'],
      ['```js\nif (a && b) *x*\n```', '```\nif (a &amp;&amp; b) *x*\n```'],
      ['<!channel> <@U1> &', '&lt;!channel&gt; &lt;@\u200bU1&gt; &amp;'],
      ['[**a**](https://a.example/?x|y&z)', '<https://a.example/?x%7Cy&amp;z|*a*>'],
      ['', ''],
    ] as const)
      assert.equal(toMrkdwn(markdown), mrkdwn)
  })
})
