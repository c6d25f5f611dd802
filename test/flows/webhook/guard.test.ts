import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { healthSchema, problemSchema, statusSchema } from '../../../shared/api/api.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { type Reply, send } from '../../support/servers/http.ts'
import { openRaw, sendRaw } from '../../support/servers/raw.ts'

type Headers = Record<string, string | string[]>

/** Every route of the local API, and some that are none: the guard comes before the routing. */
const routes: readonly [string, string][] = [
  ['GET', '/status'],
  ['GET', '/webhooks'],
  ['GET', '/events'],
  ['GET', '/events/evt_1'],
  ['GET', '/events/stream'],
  ['POST', '/events/evt_1/retry'],
  ['POST', '/events/evt_1/cancel'],
  ['POST', '/events/evt_1/link'],
  ['POST', '/daemon/shutdown'],
  ['POST', '/daemon/reload'],
  ['POST', '/oauth/start'],
  ['GET', '/oauth/tokens'],
  ['GET', '/oauth/logins/abc'],
  ['POST', '/oauth/logins/abc/redirect'],
  ['DELETE', '/oauth/logins/abc'],
  ['DELETE', '/oauth/tokens/github'],
  ['GET', '/oauth/tokens/github/access'],
  ['GET', '/metrics'],
  ['POST', '/webhooks/explain'],
  ['POST', '/webhooks/learn'],
  ['POST', '/webhooks'],
  ['DELETE', '/webhooks?path=/hook'],
  ['POST', '/webhooks/rules'],
  ['POST', '/webhooks/sample'],
  ['GET', '/webhooks/recipes'],
  ['GET', '/checks/agents'],
  ['POST', '/checks/agents'],
  ['GET', '/webhooks/hooks'],
  ['POST', '/webhooks/hooks'],
  ['POST', '/webhooks/hooks/ping'],
  ['DELETE', '/webhooks/hooks?path=/x'],
  ['PUT', '/status'],
  ['OPTIONS', '/status'],
  ['GET', '/status/nothing'],
]

describe('the guard of the local API', () => {
  let daemon: RunningDaemon
  let port: string
  const ask = (method: string, path: string, headers: Headers): Promise<Reply> =>
    send(`${daemon.url}${path}`, { method, headers })
  const refusal = (reply: Reply): [number, string] => {
    assert.match(reply.headers['content-type'] ?? '', /^application\/problem\+json/)
    const problem = problemSchema.parse(reply.json())
    assert.equal(problem.status, reply.status)
    assert.ok(!reply.text.includes(daemon.apiToken))
    return [reply.status, problem.code]
  }

  before(async () => {
    daemon = await startDaemon({
      gateway: `
server: { body_limit: 1mb }
events: { keep: 3000 }
oauth: { callback_port: 0 }
`,
      webhooks: `
webhooks:
  - { path: /hook, agent: echo, prompt_template: x, filter: { never: x } }
  - { path: /echo, agent: echo, prompt_template: "{{event}}" }
`,
    })
    port = new URL(daemon.url).port
  })
  after(async () => assert.equal(await daemon.stop(), 0))

  for (const [method, path] of routes)
    it(`keeps everyone but a local client of this user from ${method} ${path}`, async () => {
      const bearer = `Bearer ${daemon.apiToken}`
      const host = `127.0.0.1:${port}`
      const authorization = bearer
      const cases: readonly [string, Headers, number, string][] = [
        ['no token', {}, 401, 'unauthorized'],
        ['an empty token', { authorization: 'Bearer ' }, 401, 'unauthorized'],
        ['a wrong token', { authorization: `Bearer ${'x'.repeat(43)}` }, 401, 'unauthorized'],
        ['a part of the token', { authorization: bearer.slice(0, -1) }, 401, 'unauthorized'],
        ['more than the token', { authorization: `${bearer}x` }, 401, 'unauthorized'],
        ['another scheme', { authorization: `Basic ${daemon.apiToken}` }, 401, 'unauthorized'],
        ['the token twice', { authorization: [bearer, bearer] }, 401, 'unauthorized'],
        ['a right and a wrong one', { authorization: [bearer, 'Bearer x'] }, 401, 'unauthorized'],
        ['a foreign Host', { authorization, host: 'evil.example' }, 403, 'host-forbidden'],
        [
          'a Host on our port',
          { authorization, host: `evil.example:${port}` },
          403,
          'host-forbidden',
        ],
        ['another port', { authorization, host: '127.0.0.1:1' }, 403, 'host-forbidden'],
        ['an Origin', { authorization, origin: 'https://evil.example' }, 403, 'origin-forbidden'],
        ['our own Origin', { authorization, origin: daemon.url }, 403, 'origin-forbidden'],
        ['Origin null', { authorization, origin: 'null' }, 403, 'origin-forbidden'],
        [
          'another site',
          { authorization, 'sec-fetch-site': 'cross-site' },
          403,
          'origin-forbidden',
        ],
        [
          'the same site',
          { authorization, 'sec-fetch-site': 'same-site' },
          403,
          'origin-forbidden',
        ],
      ]
      for (const [name, headers, status, code] of cases) {
        const reply = await ask(method, path, { connection: 'close', ...headers })
        assert.deepEqual([name, ...refusal(reply)], [name, status, code])
        assert.equal(reply.headers['www-authenticate'], status === 401 ? 'Bearer' : undefined)
        assert.equal(reply.headers['access-control-allow-origin'], undefined)
      }
      for (const second of [host, 'evil.example']) {
        const twice = await sendRaw(
          daemon.url,
          `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\nHost: ${second}\r\nAuthorization: ${bearer}\r\n\r\n`,
        )
        assert.match(twice, /^HTTP\/1\.1 403 /)
      }
      const old = await sendRaw(
        daemon.url,
        `${method} ${path} HTTP/1.0\r\nAuthorization: ${bearer}\r\n\r\n`,
      )
      assert.match(old, /^HTTP\/1\.1 403 /)
      assert.match(old, /"code":"host-forbidden"/)
      const proxied = await sendRaw(
        daemon.url,
        `${method} http://evil.example${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: ${bearer}\r\n\r\n`,
      )
      assert.match(proxied, /^HTTP\/1\.1 400 /)
    })

  it('leaves /health open, which tells its three fields and nothing else', async () => {
    const asked: Headers[] = [{}, { host: 'tunnel.example' }, { origin: 'https://evil.example' }]
    for (const headers of asked) {
      const reply = await ask('GET', '/health', headers)
      assert.equal(reply.status, 200)
      assert.equal(healthSchema.parse(reply.json()).name, 'doorward')
      assert.equal(reply.headers['access-control-allow-origin'], undefined)
      assert.equal(reply.headers['server'] ?? reply.headers['x-powered-by'], undefined)
    }
    const other = await ask('POST', '/health', {})
    assert.deepEqual(
      [...refusal(other), other.headers['allow']],
      [405, 'method-not-allowed', 'GET, HEAD'],
    )
    for (const path of ['/health/', '/Health', '/healthz'])
      assert.deepEqual(refusal(await ask('GET', path, {})), [404, 'webhook-not-found'])
  })

  it('is passed by the token under each name of this machine', async () => {
    const authorization = `Bearer ${daemon.apiToken}`
    for (const host of ['127.0.0.1', 'localhost', 'LOCALHOST', '[::1]', '127.0.0.9']) {
      const reply = await ask('GET', '/status', { authorization, host: `${host}:${port}` })
      assert.equal(reply.status, 200)
      assert.equal(reply.headers['cache-control'], 'no-store')
      statusSchema.parse(reply.json())
    }
    const browser = { authorization, 'sec-fetch-site': 'none' }
    assert.equal((await ask('GET', '/status', browser)).status, 200)
  })

  it('is followed by 404 for what is no route and 405 with Allow for another method', async () => {
    const authorization = `Bearer ${daemon.apiToken}`
    for (const path of ['/status/nothing', '/daemon', '/events/evt_1/nothing'])
      assert.deepEqual(refusal(await ask('GET', path, { authorization })), [404, 'not-found'])
    // Paths match exactly, case and trailing slash included.
    for (const path of [
      '/status/',
      '/events/',
      '/events/evt_1/',
      '/events/Stream/',
      '/webhooks/',
      '/metrics/',
      '/oauth/Tokens',
      '/oauth/tokens/',
      '/oauth/tokens/github/access/',
      '/oauth/tokens/github/Access',
    ])
      assert.deepEqual(refusal(await ask('GET', path, { authorization })), [404, 'not-found'], path)
    for (const [method, path, allow] of [
      ['POST', '/status', 'HEAD, GET'],
      ['DELETE', '/status', 'HEAD, GET'],
      ['GET', '/daemon/shutdown', 'POST'],
    ] as const) {
      const reply = await ask(method, path, { authorization })
      assert.deepEqual(
        [...refusal(reply), reply.headers['allow']],
        [405, 'method-not-allowed', allow],
      )
    }
    assert.deepEqual(refusal(await ask('GET', '/events/evt_1', { authorization })), [
      404,
      'event-not-found',
    ])
    for (const query of [
      'limit=0',
      'limit=x',
      'limit=1&limit=2',
      'state=nothing',
      'webhook=a&webhook=b',
    ])
      assert.deepEqual(refusal(await ask('GET', `/events?${query}`, { authorization })), [
        400,
        'request-invalid',
      ])
  })

  describe('the event stream', () => {
    const hook = (path = '/hook', body = '{}') =>
      send(`${daemon.url}${path}`, { headers: { 'content-type': 'application/json' }, body })

    /** Reads the messages of a stream until there are so many. */
    const messages = async (
      count: number,
      lastEventId?: string,
    ): Promise<Record<string, string>[]> => {
      const control = new AbortController()
      const stream = await daemon.client.open('/events/stream', {
        signal: control.signal,
        ...(lastEventId === undefined ? {} : { headers: { 'last-event-id': lastEventId } }),
      })
      assert.match(stream.headers['content-type'] ?? '', /^text\/event-stream/)
      if (lastEventId === undefined) await hook()
      let text = ''
      try {
        for await (const chunk of stream as AsyncIterable<Buffer>) {
          text += chunk.toString()
          const found = text
            .split('\n\n')
            .slice(0, -1)
            .map((block) => Object.fromEntries(block.split('\n').map(fieldOf)))
            .filter((fields) => fields['event'] !== undefined)
          if (found.length >= count) return found
        }
      } finally {
        stream.once('error', () => undefined)
        control.abort()
      }
      return assert.fail('the stream ended')
    }
    const fieldOf = (line: string): [string, string] => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon), line.slice(colon + 1).trim()]
    }

    it('sends each change as an event with an id, and resumes after it', async () => {
      const [first] = await messages(1)
      assert.equal(first?.['event'], 'event')
      assert.match(first?.['id'] ?? '', /^[0-9a-f]+-\d+$/)
      const record = JSON.parse(first?.['data'] ?? '') as { id: string; state: string }
      assert.equal(record.state, 'filtered')
      const missed = [await hook(), await hook()].map((reply) => String(reply.json()['id']))
      const resumed = await messages(2, first?.['id'])
      assert.deepEqual(
        resumed.map(({ data = '' }) => (JSON.parse(data) as { id: string }).id),
        missed,
      )
    })

    it('sends all that it knows to a client that comes back after a restart, or talks nonsense', async () => {
      const all = await messages(3, 'abc-99')
      assert.match(all[0]?.['id'] ?? '', /-1$/)
      assert.match((await messages(3, 'nonsense'))[0]?.['id'] ?? '', /-1$/)
    })

    it('lets go of a client that does not read, and does not grow', async function () {
      if (process.platform !== 'linux') return this.skip()
      this.timeout(30_000)
      const readers = await Promise.all(
        Array.from({ length: 8 }, () =>
          openRaw(
            daemon.url,
            `GET /events/stream HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${daemon.apiToken}\r\n\r\n`,
          ),
        ),
      )
      for (const reader of readers) reader.pause()
      const gone = Promise.all(
        readers.map((reader) => new Promise((resolve) => reader.once('close', resolve))),
      )
      const before = await memoryOf(daemon.process.pid ?? 0)
      // 20 MB of changes for each: each has a preview of 600 characters of three bytes, in several states.
      const body = JSON.stringify('\u20ac'.repeat(600))
      let last = ''
      for (let round = 0; round < 250; round += 1) {
        const replies = await Promise.all(Array.from({ length: 10 }, () => hook('/echo', body)))
        last = String(replies.at(-1)?.json()['id'])
      }
      assert.equal((await untilFinished(daemon, last)).state, 'done')
      const grown = (await memoryOf(daemon.process.pid ?? 0)) - before
      assert.ok(grown < 120 * 1024, `grew by ${grown} kB`)
      for (const reader of readers) reader.resume()
      await gone
      return undefined
    })
  })
})

/** Resident memory of a process in kB (proc(5), status). */
const memoryOf = async (pid: number): Promise<number> => {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1])
}
