import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import {
  type EventRecord,
  type Status,
  eventSchema,
  problemSchema,
  statusSchema,
} from '../../../shared/api/api.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { followEvents } from '../../support/daemon/events.ts'
import { type Reply, send } from '../../support/servers/http.ts'
import { randomFrom } from '../../support/fuzz/random.ts'
import { openRaw, sendRaw } from '../../support/servers/raw.ts'
import { githubHeaders } from '../../support/servers/sign.ts'

const secret = 'canary of the secret'
const limit = 1024 * 1024
const json = { 'content-type': 'application/json' }
const mac = (body: string | Buffer) => createHmac('sha256', secret).update(body).digest('hex')

describe('bad input to a webhook', () => {
  let daemon: RunningDaemon
  const headersFor = (body: string | Buffer, more: Record<string, string> = {}) =>
    githubHeaders(body, secret, more)
  const post = (
    path: string,
    body: string | Buffer | Buffer[],
    headers: Readonly<Record<string, string | string[]>>,
  ): Promise<Reply> => send(`${daemon.url}${path}`, { headers, body })
  const status = () => daemon.client.get<Status>('/status')
  const lastRejected = async (): Promise<EventRecord> => {
    const { events } = await daemon.client.get<{ events: EventRecord[] }>(
      '/events?state=rejected&limit=1',
    )
    const [event] = events
    assert.ok(event)
    return event
  }

  /** Checks all that every refusal has in common; gives what only the owner is told. */
  const refused = async (
    reply: Reply,
    expected: { status: number; code: string; stage: string },
  ): Promise<string> => {
    assert.equal(reply.status, expected.status, reply.text)
    assert.match(reply.headers['content-type'] ?? '', /^application\/problem\+json/)
    const problem = problemSchema.parse(reply.json())
    assert.deepEqual([problem.status, problem.code], [expected.status, expected.code])
    assert.doesNotMatch(reply.text, /canary|HOOK_SECRET|secret/i)
    const event = await lastRejected()
    assert.deepEqual([event.code, event.stage], [expected.code, expected.stage])
    assert.ok(event.detail)
    assert.doesNotMatch(JSON.stringify(event), /canary/)
    assert.equal((await status()).queue.bytes, 0)
    return event.detail
  }

  before(async () => {
    daemon = await startDaemon({
      env: `HOOK_SECRET=${secret}\nBLANK_SECRET="  \t "\nEMPTY_SECRET=\n`,
      gateway: 'server: { body_limit: 1mb }\noauth: { callback_port: 0 }\nevents: { keep: 5000 }\n',
      webhooks: `
webhooks:
  - { path: /signed, agent: echo, secret_env: HOOK_SECRET, prompt_template: "{{event}}", dedupe: off }
  - { path: /open, agent: echo, prompt_template: "{{event}}" }
  - { path: /blank, agent: echo, secret_env: BLANK_SECRET, prompt_template: x }
  - { path: /empty, agent: echo, secret_env: [EMPTY_SECRET, BLANK_SECRET], prompt_template: x }
`,
    })
  })
  after(async () => assert.equal(await daemon.stop(), 0))

  const unsigned = { status: 401, code: 'signature-invalid', stage: 'verify' }
  const tooLarge = { status: 413, code: 'body-too-large', stage: 'receive' }

  it('is 413 by its length, before it is read', async () => {
    for (const length of [String(limit + 1), '18446744073709551615']) {
      const socket = await openRaw(
        daemon.url,
        `POST /signed HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n`,
      )
      const [chunk] = (await new Promise((resolve) => {
        socket.once('data', (data: Buffer) => resolve([data]))
      })) as [Buffer]
      socket.destroy()
      assert.match(chunk.toString(), /^HTTP\/1\.1 413 /)
      const { size } = eventSchema.parse(await lastRejected())
      assert.equal(size, Math.min(Number(length), Number.MAX_SAFE_INTEGER))
    }
    statusSchema.parse(await status())
  })

  for (const connection of ['close', 'keep-alive'])
    it(`is 413 for a sender that is still sending, by length and chunked (${connection})`, async () => {
      const pieces = Array.from({ length: 320 }, () => Buffer.alloc(65_536, 120))
      const size = String(320 * 65_536)
      const chunked = await post('/signed', pieces, { ...json, connection })
      await refused(chunked, tooLarge)
      const sized = await post('/signed', pieces, { ...json, connection, 'content-length': size })
      await refused(sized, tooLarge)
    })

  it('takes no more memory for a body that comes in chunks of one byte', async function () {
    if (process.platform !== 'linux') return this.skip()
    const memory = () => {
      const file = readFileSync(`/proc/${daemon.process.pid}/status`, 'utf8')
      return Number(/VmRSS:\s+(\d+)/.exec(file)?.[1]) * 1024
    }
    const before = memory()
    const socket = await openRaw(
      daemon.url,
      'POST /signed HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n',
    )
    const chunks = limit / 2
    await new Promise((resolve) => socket.write('1\r\n[\r\n'.repeat(chunks), resolve))
    while ((await status()).queue.bytes < chunks);
    const taken = memory() - before
    socket.destroy()
    assert.equal(taken < 100 * 1024 * 1024, true, `${taken} bytes for a body of ${chunks}`)
    while ((await status()).queue.bytes > 0);
  })

  it('is 403 for what a web page sends to a webhook without a secret', async () => {
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    const body = 'payload=%7B%7D'
    const marks: Record<string, string>[] = [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { 'sec-fetch-site': 'cross-site' },
    ]
    for (const mark of marks) {
      const reply = await post('/open', body, { ...form, ...mark })
      assert.equal(reply.status, 403)
      assert.equal(reply.json()['code'], 'origin-forbidden')
      const { stage, code } = await lastRejected()
      assert.deepEqual([stage, code], ['verify', 'origin-forbidden'])
      const signed = await post('/signed', body, { ...headersFor(body), ...form, ...mark })
      assert.equal(signed.status, 202)
    }
    assert.equal((await post('/open', body, form)).status, 202)
  })

  it('takes a body of exactly the limit', async () => {
    const body = JSON.stringify('x'.repeat(limit - 2))
    assert.equal(body.length, limit)
    const reply = await post('/signed', body, headersFor(body))
    assert.equal(reply.status, 202)
    await untilFinished(daemon, String(reply.json()['id']))
  })

  const depth = 100_000
  const bad: readonly [string, string | Buffer, Record<string, string>, number, string, string][] =
    [
      ['text', '{}', { 'content-type': 'text/plain' }, 415, 'media-type-unsupported', 'parse'],
      [
        'gzip',
        gzipSync('{}'),
        { 'content-encoding': 'gzip' },
        415,
        'media-type-unsupported',
        'parse',
      ],
      [
        'a multipart form that is cut off',
        '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\ncanary',
        { 'content-type': 'multipart/form-data; boundary=x' },
        400,
        'payload-not-json',
        'parse',
      ],
      [
        'a form whose payload is no JSON',
        'payload=canary',
        { 'content-type': 'application/x-www-form-urlencoded' },
        400,
        'payload-not-json',
        'parse',
      ],
      ['invalid UTF-8', Buffer.from([0x22, 0xff, 0x22]), {}, 400, 'payload-not-json', 'parse'],
      ['broken JSON', '{"canary', {}, 400, 'payload-not-json', 'parse'],
      ['an empty body', '', {}, 400, 'payload-not-json', 'parse'],
      [
        '100,000 levels',
        '['.repeat(depth) + ']'.repeat(depth),
        {},
        400,
        'payload-not-json',
        'expand',
      ],
    ]
  for (const [name, body, more, status, code, stage] of bad)
    it(`is ${status} for ${name} that is signed, and 401 when it is not`, async () => {
      await refused(await post('/signed', body, headersFor(body, more)), { status, code, stage })
      const reply = await post('/signed', body, { ...json, ...more })
      await refused(reply, unsigned)
      const wrong = { ...headersFor('something else'), ...more }
      assert.equal((await post('/signed', body, wrong)).text, reply.text)
    })

  const body = '{"canary":1}'
  const good = `sha256=${mac(body)}`
  // test/daemon/webhook/signatures/verify.test.ts has every form of a broken signature.
  const sha1 = `sha1=${createHmac('sha1', secret).update(body).digest('hex')}`
  const signatures: readonly [string, Record<string, string | string[]>, RegExp][] = [
    ['missing', {}, /no x-hub/],
    ['of another body', { 'x-hub-signature-256': `sha256=${mac('{}')}` }, /does not match/],
    ['doubled', { 'x-hub-signature-256': [good, good] }, /more than once/],
    ['made with SHA-1 alone', { 'x-hub-signature': sha1 }, /no x-hub/],
  ]
  for (const [name, headers, why] of signatures)
    it(`is 401 for a signature that is ${name}; only the owner is told why`, async () => {
      const detail = await refused(await post('/signed', body, { ...json, ...headers }), unsigned)
      assert.match(detail, why)
      assert.doesNotMatch(JSON.stringify(await lastRejected()), new RegExp(mac(body)))
    })

  it('is 503 while a secret is empty or white space, though the body is signed with it', async () => {
    for (const [path, key] of [
      ['/blank', '  \t '],
      ['/empty', ''],
    ] as const)
      for (const headers of [json, githubHeaders(body, key)]) {
        const reply = await post(path, body, headers)
        await refused(reply, { status: 503, code: 'unavailable', stage: 'verify' })
        assert.ok(Number(reply.headers['retry-after']) > 0)
      }
  })

  it('leaves no bytes counted when senders go away in the middle', async () => {
    const followed = await followEvents(daemon)
    const part = Buffer.alloc(400_000, 120)
    const open = await Promise.all(
      ['Content-Length: 900000', 'Transfer-Encoding: chunked'].flatMap((header) =>
        [1, 2, 3].map(() =>
          openRaw(
            daemon.url,
            Buffer.concat([
              Buffer.from(`POST /signed HTTP/1.1\r\nHost: x\r\n${header}\r\n\r\n61a80\r\n`),
              part,
            ]),
          ),
        ),
      ),
    )
    for (const socket of open) socket.resetAndDestroy()
    for (const _ of open) {
      const event = await followed.next(({ state }) => state === 'rejected')
      assert.deepEqual([event.code, event.stage], ['body-aborted', 'receive'])
    }
    followed.close()
    assert.equal((await status()).queue.bytes, 0)
  })

  it('does not cost a sender its connection: a refusal is followed by a delivery on the same one', async () => {
    const head = (size: number, more: string) =>
      `POST /signed HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${size}\r\n${more}\r\n`
    const text = await sendRaw(
      daemon.url,
      `GET /signed HTTP/1.1\r\nHost: x\r\n\r\n${head(2, '')}{}${head(body.length, `X-Hub-Signature-256: ${good}\r\nConnection: close\r\n`)}${body}`,
    )
    assert.deepEqual(text.match(/HTTP\/1\.1 \d+/g), [
      'HTTP/1.1 405',
      'HTTP/1.1 401',
      'HTTP/1.1 202',
    ])
  })

  it('does not leave a sender without an answer that says at once that it sends no more', async () => {
    const request = `POST /open HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    const answers = await Promise.all(
      Array.from({ length: 50 }, async () => sendRaw(daemon.url, request)),
    )
    assert.deepEqual(
      new Set(answers.map((answer) => answer.split('\r\n')[0])),
      new Set(['HTTP/1.1 202 Accepted']),
    )
  })

  it('keeps the connection of a sender whose refused request is complete', async () => {
    const ask = 'GET /signed HTTP/1.1\r\nHost: x\r\n\r\n'
    const socket = await openRaw(daemon.url, ask)
    const closed = new Promise((resolve) => socket.once('close', () => resolve('closed')))
    // A sender that goes on sending loses its connection after 2 s; nothing tells when it does not.
    const passed = new Promise((resolve) => setTimeout(() => resolve('open'), 2300))
    socket.resume()
    assert.equal(await Promise.race([closed, passed]), 'open')
    socket.write(ask)
    const answer = await new Promise((resolve) => socket.once('data', resolve))
    assert.match(String(answer), /^HTTP\/1\.1 405 /)
    socket.destroy()
  })

  it('is 400 for a target that is no path, and no fault of ours', async () => {
    for (const target of ['http://[', 'foo://host', 'http://a:b:c/', '*', `${daemon.url}/signed`]) {
      const text = await sendRaw(daemon.url, `OPTIONS ${target} HTTP/1.1\r\nHost: x\r\n\r\n`)
      assert.match(text, /^HTTP\/1\.1 400 /)
      assert.match(text, /"code":"request-invalid"/)
    }
  })

  it('is refused by the HTTP parser when a length and chunks contradict each other', async () => {
    const text = await sendRaw(
      daemon.url,
      'POST /open HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    )
    assert.match(text, /^HTTP\/1\.1 400 /)
  })

  it('accepts none of 3,000 random changes to a signed request but those that leave its body alone', async function () {
    this.timeout(60_000)
    const original = JSON.stringify({ action: 'opened', list: [1, 2, 3], text: 'é' })
    const request = Buffer.from(
      [
        'POST /signed HTTP/1.1',
        'Host: hooks.example.com',
        'Content-Type: application/json',
        `Content-Length: ${Buffer.byteLength(original)}`,
        `X-Hub-Signature-256: sha256=${mac(original)}`,
        'X-GitHub-Delivery: 72d3162e',
        'Connection: close',
        '',
        original,
      ].join('\r\n'),
    )
    const random = randomFrom(20_261_121)
    const seen = new Map<string, number>()
    const attack = async () => {
      const text = await sendRaw(daemon.url, mutate(request, random))
      const answer = /^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 'none'
      seen.set(answer, (seen.get(answer) ?? 0) + 1)
      assert.notEqual(answer, '500', text)
      if (answer !== '202') return
      const [, id] = /"id":"(evt_\w+)"/.exec(text) ?? []
      const event = await daemon.client.get<{ prompt: string }>(`/events/${id}`)
      assert.equal(event.prompt, original)
    }
    for (let round = 0; round < 300; round += 1)
      await Promise.all(Array.from({ length: 10 }, attack))
    // It did attack: some changes are harmless, most are not.
    assert.ok(
      (seen.get('202') ?? 0) > 50 && (seen.get('401') ?? 0) > 500,
      JSON.stringify([...seen]),
    )
    assert.equal((await status()).queue.bytes, 0)
  })
})

/** Changes, takes out, doubles or puts in one to three stretches of bytes. */
const mutate = (bytes: Buffer, random: () => number): Buffer => {
  let changed = Buffer.from(bytes)
  const below = (limit: number) => Math.floor(random() * limit)
  for (let times = 1 + below(3); times > 0; times -= 1) {
    const at = below(changed.length)
    const size = 1 + below(random() < 0.7 ? 2 : 40)
    const before = changed.subarray(0, at)
    const stretch = changed.subarray(at, at + size)
    const after = changed.subarray(at + size)
    const noise = Buffer.from(Array.from({ length: size }, () => below(256)))
    const pieces = [
      [before, noise, after],
      [before, Buffer.from([(stretch[0] ?? 0) ^ (1 << below(8))]), stretch.subarray(1), after],
      [before, after],
      [before, stretch, stretch, after],
      [before, noise, stretch, after],
    ][below(5)]
    changed = Buffer.concat(pieces ?? [])
  }
  return changed
}
