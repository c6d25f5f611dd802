import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { type Socket, connect } from 'node:net'
import type { Status } from '../../shared/api/api.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../support/daemon/daemon.ts'
import { send } from '../support/servers/http.ts'
import { githubHeaders } from '../support/servers/sign.ts'

const connections = 2000
const secret = 'a secret of the test'

/** What each of them sends before it sends nothing more: in headers, in a body, between two requests. */
const beginnings = [
  '',
  'P',
  'POST /hook HTTP/1.1\r\nHost: x\r\nX-Slow: ',
  'GET /status HTTP/1.1\r\nHost: 127.0.0.1\r\n',
  'POST /hook HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 900000\r\n\r\n{"a":',
  'POST /hook HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"a":\r\n',
  'GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n',
]

describe(`${connections} senders that stop in the middle`, () => {
  let daemon: RunningDaemon

  before(async () => {
    daemon = await startDaemon({
      webhooks: `webhooks:
  - { path: /hook, agent: echo, secret_env: HOOK_SECRET, prompt_template: "{{event.a}}" }
`,
      env: `HOOK_SECRET=${secret}\n`,
    })
  })
  after(async () => assert.equal(await daemon.stop(), 0))

  it('keep nobody else out, are all let go, and leave nothing counted', async function () {
    this.timeout(90_000)
    const { hostname, port } = new URL(daemon.url)
    const open = async (place: number): Promise<Socket> => {
      const socket = connect(Number(port), hostname)
      socket.on('error', () => undefined)
      await once(socket, 'connect')
      socket.write(beginnings[place % beginnings.length] ?? '')
      socket.resume()
      return socket
    }
    const sockets: Socket[] = []
    for (let place = 0; place < connections; place += 100)
      sockets.push(
        ...(await Promise.all(Array.from({ length: 100 }, (_, more) => open(place + more)))),
      )
    const closed = sockets.map((socket) =>
      socket.closed ? Promise.resolve() : once(socket, 'close'),
    )

    const body = '{"a":"in time"}'
    const reply = await send(`${daemon.url}/hook`, { headers: githubHeaders(body, secret), body })
    assert.equal(reply.status, 202)
    const event = await untilFinished(daemon, String(reply.json()['id']))
    assert.equal(event.state, 'done')
    assert.equal((await daemon.client.get<Status>('/status')).queue.waiting, 0)

    await Promise.all(closed)
    const { queue } = await daemon.client.get<Status>('/status')
    assert.deepEqual([queue.waiting, queue.running, queue.bytes], [0, 0, 0])
    if (process.platform === 'linux') {
      const table = await readFile(`/proc/${daemon.process.pid}/net/tcp`, 'utf8')
      const inHex = `:${Number(port).toString(16).toUpperCase().padStart(4, '0')} `
      // 01 is ESTABLISHED (proc(5)): our own client's connection is one of at most a few.
      const held = table.split('\n').filter((line) => line.includes(inHex) && / 01 /.test(line))
      assert.ok(held.length < 20, `${held.length} connections are left`)
    }
  })
})
