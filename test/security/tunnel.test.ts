import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type Server, createServer, request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type RunningDaemon, startDaemon, untilFinished } from '../support/daemon/daemon.ts'
import { send } from '../support/servers/http.ts'
import { githubHeaders } from '../support/servers/sign.ts'

/** What a tunnel that means harm makes of a request: it has all of it in hand but the secrets. */
type Change = (request: { headers: Record<string, string>; body: Buffer; path: string }) => void

/** A tunnel that looks like a program of this machine: our own Host, none of the usual headers. */
const startTunnel = async (daemonUrl: string) => {
  const change: { now: Change } = { now: () => undefined }
  const { hostname, port, host } = new URL(daemonUrl)
  const server: Server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.once('end', () => {
      const passed = {
        headers: { ...(incoming.headers as Record<string, string>), host },
        body: Buffer.concat(chunks),
        path: incoming.url ?? '/',
      }
      change.now(passed)
      const { headers, body, path } = passed
      const length = body.length > 0 ? { 'content-length': String(body.length) } : {}
      httpRequest(
        { hostname, port, path, method: incoming.method, headers: { ...headers, ...length } },
        (answer) => {
          outgoing.writeHead(answer.statusCode ?? 500, answer.headers)
          answer.pipe(outgoing)
        },
      ).end(body)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    change,
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

const secret = 'a secret of the test'
const otherSecret = 'a secret of another webhook'

describe('a tunnel that hides what it is', () => {
  let daemon: RunningDaemon
  let tunnel: Awaited<ReturnType<typeof startTunnel>>

  before(async () => {
    daemon = await startDaemon({
      env: `HOOK=${secret}\nOTHER=${otherSecret}\n`,
      webhooks: `webhooks:
  - { path: /hook, agent: echo, secret_env: HOOK, prompt_template: "{{event.a}}" }
  - { path: /other, agent: echo, secret_env: OTHER, prompt_template: "{{event.a}}" }
`,
    })
    tunnel = await startTunnel(daemon.url)
  })
  after(async () => {
    tunnel.close()
    assert.equal(await daemon.stop(), 0)
  })
  afterEach(() => {
    tunnel.change.now = () => undefined
  })

  const deliver = async (body = '{"a":"as it was sent"}', headers = githubHeaders(body, secret)) =>
    send(`${tunnel.url}/hook`, { headers, body })

  it('reaches no route of the local API without the token', async () => {
    for (const [method, path] of [
      ['GET', '/status'],
      ['GET', '/oauth/tokens/github/access'],
      ['POST', '/daemon/shutdown'],
      ['POST', '/checks?online'],
      ['POST', '/oauth/start'],
      ['GET', '/ui/link/' + 'A'.repeat(43)],
    ] as const) {
      const { status, text } = await send(`${tunnel.url}${path}`, { method })
      assert.ok([401, 403, 410].includes(status), `${path}: ${status}`)
      assert.ok(!text.includes(daemon.apiToken))
    }
  })

  it('changes no signed delivery, and brings none to another webhook', async () => {
    const changes: Change[] = [
      (passed) => (passed.body = Buffer.from('{"a":"something else"}')),
      (passed) => (passed.body = Buffer.concat([passed.body, Buffer.from(' ')])),
      (passed) => (passed.path = '/other'),
      (passed) => (passed.headers['x-hub-signature-256'] = 'sha256='),
      (passed) => delete passed.headers['x-hub-signature-256'],
      (passed) =>
        Object.assign(passed.headers, githubHeaders(passed.body, otherSecret), {
          'content-length': String(passed.body.length),
        }),
    ]
    for (const change of changes) {
      tunnel.change.now = change
      assert.equal((await deliver()).status, 401)
    }
    tunnel.change.now = () => undefined
    const reply = await deliver()
    assert.equal(reply.status, 202)
    const event = await untilFinished(daemon, String(reply.json()['id']))
    assert.equal(event.result, 'as it was sent')
  })

  it('has no delivery run twice by sending it again', async () => {
    const body = '{"a":"once"}'
    const headers = githubHeaders(body, secret)
    const first = await deliver(body, headers)
    await untilFinished(daemon, String(first.json()['id']))
    for (let times = 0; times < 3; times += 1)
      assert.equal((await deliver(body, headers)).json()['status'], 'duplicate')
  })

  it('makes no other way of reading a body than the one that was signed', async () => {
    for (const [name, value] of [
      ['content-encoding', 'gzip'],
      ['content-type', 'text/plain'],
      ['content-type', 'application/x-www-form-urlencoded'],
    ] as const) {
      tunnel.change.now = ({ headers }) => (headers[name] = value)
      const { status } = await deliver()
      assert.ok(status === 400 || status === 415, `${name}: ${value} gives ${status}`)
    }
  })
})
