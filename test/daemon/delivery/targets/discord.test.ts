import assert from 'node:assert/strict'
import { makeReply, deliverWith, resolveTargets } from '../../../support/servers/deliver.ts'
import {
  type TargetServer,
  json,
  reset,
  startTargetServer,
} from '../../../support/servers/target-server.ts'

describe('delivery to Discord', () => {
  let server: TargetServer
  beforeEach(async () => {
    server = await startTargetServer(json(200, { id: '1' }))
  })
  afterEach(() => server.close())

  const run = async (
    target = 'discord:ops',
    text = 'an answer',
    env: Record<string, string> = {
      OPS_URL: `${server.origin}/api/webhooks/123/canary-token?thread_id=7`,
    },
    payload: unknown = {},
  ) => {
    const { deliver } = deliverWith({ discord: { ops: { url_env: 'OPS_URL' } } }, { env })
    const [result] = await deliver(resolveTargets([target], payload), makeReply(text))
    return result
  }

  it('posts to the webhook, waits until it is stored, and notifies no one', async () => {
    const result = await run('discord:ops', '**done** @everyone')
    assert.deepEqual(result, { target: 'discord:ops', state: 'done', attempts: 1 })
    const [request] = server.requests
    assert.equal(request?.path, '/api/webhooks/123/canary-token?thread_id=7&wait=true')
    assert.deepEqual(request.fields, {
      content: '**done** @everyone',
      allowed_mentions: { parse: [] },
      flags: 4,
    })
  })

  it('shows a table as aligned code, as Discord has none, and the rest as it is', async () => {
    const text = [
      'Found **two**:',
      '',
      '| file | lines |',
      '|:--|--:|',
      '| `a.ts` | 7 |',
      '| longer.ts | 12 |',
      '',
      '```ts',
      '| no | table |',
      '|---|---|',
      '```',
      'a | b',
    ]
    await run('discord:ops', text.join('\n'))
    assert.deepEqual(String(server.requests[0]?.fields['content']).split('\n'), [
      ...text.slice(0, 2),
      '```',
      'file      | lines',
      '----------|------',
      'a.ts      |     7',
      'longer.ts |    12',
      '```',
      ...text.slice(6),
    ])
    const rows = Array.from({ length: 200 }, (_, row) => `| row ${row} | x |`)
    await run('discord:ops', ['| a | b |', '|---|---|', ...rows].join('\n'))
    const parts = server.requests.slice(1).map(({ fields }) => String(fields['content']))
    assert.ok(parts.length > 1 && parts.every((part) => part.length <= 2000))
    const hostile = '| a | b |\n|---|---|\n| ``` | @everyone |'
    await run('discord:ops', hostile)
    assert.equal(String(server.requests.at(-1)?.fields['content']).split('```').length, 3)
  })

  it('waits as long as the body says, which is more precise than the header', async () => {
    server.next(json(429, { retry_after: 0.15, global: false }, { 'retry-after': '60' }))
    const started = performance.now()
    const result = await run()
    assert.deepEqual([result?.state, result?.attempts], ['done', 2])
    assert.ok(performance.now() - started >= 145)
  })

  for (const [status, words] of [
    [404, /was deleted/],
    [401, /copy it again/],
    [403, /may not write/],
    [400, /thread_id/],
    [302, /redirect, which is not followed/],
  ] as const)
    it(`fails immediately for ${status}, without the URL`, async () => {
      server.next(json(status, { code: 10_015 }, { location: `${server.origin}/x` }))
      const result = await run()
      assert.deepEqual([result?.state, result?.attempts], ['failed', 1])
      assert.match(result?.detail ?? '', words)
      assert.doesNotMatch(result?.detail ?? '', /canary|127\.0/)
      assert.equal(server.requests.length, 1)
    })

  it('is not sent again when it may have arrived', async () => {
    server.next(reset)
    assert.match((await run())?.detail ?? '', /outcome unknown/)
    assert.equal(server.requests.length, 1)
  })

  it('sends nothing without the URL of a webhook in its variable', async () => {
    for (const OPS_URL of ['', 'hello', 'http://example.com/api/webhooks/1/x', 'ftp://127.0.0.1/'])
      assert.match((await run('discord:ops', 'x', { OPS_URL }))?.detail ?? '', /^OPS_URL/)
  })

  it('lets an event choose only among the configured entries', async () => {
    const target = 'discord:{{event.team}}'
    assert.equal((await run(target, 'x', undefined, { team: 'ops' }))?.state, 'done')
    for (const team of ['constructor', 'other', 'a/b', '']) {
      const result = await run(target, 'x', undefined, { team })
      assert.deepEqual([result?.state, result?.code], ['failed', 'target-invalid'])
    }
    assert.equal(server.requests.length, 1)
  })
})
