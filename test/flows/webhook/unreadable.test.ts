import assert from 'node:assert/strict'
import { type Status, problemSchema } from '../../../shared/api/api.ts'
import { type RunningDaemon, startDaemon } from '../../support/daemon/daemon.ts'
import { openRaw, sendOpen } from '../../support/servers/raw.ts'

const secret = 'of nobody else'
const unfinished =
  'POST /hook HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n'

const cases: readonly [what: string, bytes: string, status: number, code: string][] = [
  ['no HTTP at all', `${secret}\r\n\r\n`, 400, 'request-invalid'],
  ['another protocol', '\x16\x03\x01\x02\x00\x01', 400, 'request-invalid'],
  [
    'a header that is none',
    `GET /health HTTP/1.1\r\nHost ${secret}\r\n\r\n`,
    400,
    'request-invalid',
  ],
  [
    'two lengths',
    'POST /hook HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
    400,
    'request-invalid',
  ],
  ['no host', 'GET /health HTTP/1.1\r\n\r\n', 400, 'request-invalid'],
  [
    'headers of 20 KB',
    `GET /health HTTP/1.1\r\nHost: x\r\nCookie: ${'x'.repeat(20_000)}\r\n\r\n`,
    431,
    'headers-too-large',
  ],
  [
    'a coding beside the chunks',
    'POST /hook HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
    400,
    'request-invalid',
  ],
  ['a chunk that is none', `${unfinished}hello\r\nzz\r\n`, 400, 'request-invalid'],
]

describe('what cannot be read as a request', () => {
  let daemon: RunningDaemon
  let publicUrl: string
  /** Takes 10 seconds, while the other tests run. */
  let slow: Promise<string>

  before(async () => {
    daemon = await startDaemon({
      gateway: 'server: { public_port: 0 }\n',
      webhooks: 'webhooks:\n  - { path: /hook, agent: echo, prompt_template: x }\n',
    })
    publicUrl = (await daemon.client.get<Status>('/status')).publicUrl ?? ''
    slow = sendOpen(daemon.url, 'GET /health HTTP/1.1\r\nHost: x\r\nX-Slow: ')
  })
  after(async () => assert.equal(await daemon.stop(), 0))

  const problemIn = (answer: string) => {
    const [head = '', body = '', ...rest] = answer.split('\r\n\r\n')
    assert.deepEqual(rest, [])
    assert.match(head, /^content-type: application\/problem\+json/im)
    assert.match(head, /^connection: close/im)
    assert.match(head, new RegExp(`^content-length: ${Buffer.byteLength(body)}$`, 'im'))
    const problem = problemSchema.parse(JSON.parse(body))
    assert.match(head, new RegExp(`^HTTP/1\\.1 ${problem.status} ${problem.title}\r\n`))
    return problem
  }

  for (const [what, bytes, status, code] of cases)
    it(`is answered by a problem document on both ports: ${what}`, async () => {
      for (const url of [daemon.url, publicUrl]) {
        const answer = await sendOpen(url, bytes)
        const problem = problemIn(answer)
        assert.deepEqual([problem.status, problem.code], [status, code])
        assert.ok(!answer.includes(secret))
      }
    })

  it('is not a request with chunks, or one that expects what nobody knows', async () => {
    for (const more of ['Transfer-Encoding: Chunked', 'Expect: a wonder\r\nContent-Length: 5']) {
      const body = more.startsWith('Expect') ? '{"a":' : '5\r\n{"a":\r\n0\r\n\r\n'
      const answer = await sendOpen(
        daemon.url,
        `POST /hook HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n${more}\r\n\r\n${body}`,
      )
      const { status, code } = problemIn(answer)
      assert.deepEqual([status, code], [400, 'payload-not-json'], more)
    }
  })

  it('has no answer mixed into the one that came before it', async () => {
    const socket = await openRaw(
      daemon.url,
      'GET /health HTTP/1.1\r\nHost: x\r\n\r\nnonsense\r\n\r\n',
    )
    let text = ''
    socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
    await new Promise((resolve) => socket.once('close', resolve))
    // Which of them are answered depends on what came in one piece; what is, is whole.
    const answers = text.split(/^(?=HTTP\/1\.1 )/m)
    assert.match(answers.map((answer) => answer.slice(9, 12)).join(' '), /^(200|400|200 400)$/)
    for (const answer of answers) {
      const [head = '', body = ''] = answer.split('\r\n\r\n')
      assert.match(head, new RegExp(`^content-length: ${Buffer.byteLength(body)}$`, 'im'))
    }
  })

  it('is answered so when its headers do not come in time', async () => {
    const { status, code } = problemIn(await slow)
    assert.deepEqual([status, code], [408, 'request-timeout'])
  })
})
