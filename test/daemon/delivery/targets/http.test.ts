import assert from 'node:assert/strict'
import { Webhook } from 'standardwebhooks'
import { makeReply, deliverWith, resolveTargets } from '../../../support/servers/deliver.ts'
import {
  type TargetServer,
  json,
  reset,
  startTargetServer,
} from '../../../support/servers/target-server.ts'

const secret = `whsec_${Buffer.from('a secret of 24 bytes, ok').toString('base64')}`

describe('delivery to a receiver of signed requests', () => {
  let server: TargetServer
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
    const [result] = await deliverWith({ http }, { env }).deliver(
      resolveTargets(['http:archive']),
      makeReply(text),
    )
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
    assert.match(result?.detail ?? '', /^http:archive does not speak TLS \(EPROTO\) \(check/)
    assert.deepEqual(server.requests, [])
  })

  for (const [status, words] of [
    [410, /is gone/],
    [401, /same secret/],
    [404, /check url/],
    [302, /redirect, which is not followed/],
    [400, /^http:archive answered 400$/],
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
