import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { type Socket, connect as connectSocket } from 'node:net'
import { join } from 'node:path'
import type { AccessToken } from '../../shared/api/api.ts'
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '../support/providers/authorization-server.ts'
import { type RunningDaemon, startDaemon } from '../support/daemon/daemon.ts'
import { type Followed, startFollowing } from '../support/daemon/followed.ts'
import { type Reply, send } from '../support/servers/http.ts'
import { storeLogin } from '../support/providers/stored-login.ts'
import { temporaryHome } from '../support/temporary.ts'

/* More connections than the daemon may open files, from somebody who asks nothing. */

const files = 256
/** What is left for connections of that many files: see `connectionLimit`. */
const allowed = 128

const describeOnLinux = process.platform === 'linux' ? describe : describe.skip

describeOnLinux('a daemon with more callers than it may open files', function () {
  this.timeout(60_000)
  let server: AuthorizationServer
  let daemon: RunningDaemon
  let followed: Followed

  before(async () => {
    server = await startAuthorizationServer()
    const home = await temporaryHome({
      gateway: `oauth: { callback_port: 0 }\nproviders: { ada: { issuer: '${server.issuer}', client_id: public } }\n`,
      agents: 'agents:\n  cat: { kind: command, command: [cat] }\n',
      webhooks:
        "webhooks: [{ path: /cat, agent: cat, prompt_template: x, deliver_to: 'file:answers.md' }]\n",
    })
    await storeLogin(home, 'ada', await server.mint())
    daemon = await startDaemon({ home, under: ['prlimit', `--nofile=${files}`] })
    followed = startFollowing(home)
    await followed.untilHeard('up')
  })
  after(async () => {
    await followed?.stop()
    assert.equal(await daemon?.stop(), 0)
    await server?.close()
  })

  const post = () =>
    send(`${daemon.url}/cat`, { headers: { 'content-type': 'application/json' }, body: '{}' })
  const untilDone = (id: unknown) =>
    followed.until(() => followed.events.some((one) => one.id === id && one.state === 'done'))
  /** Resolves once those over the limit have been closed; the rest stay. */
  const takeAllConnections = async (): Promise<Socket[]> => {
    const { hostname, port } = new URL(daemon.url)
    const sockets = Array.from({ length: files + 50 }, () => connectSocket(Number(port), hostname))
    let closed = 0
    await new Promise<void>((resolve) => {
      for (const socket of sockets)
        socket
          .on('error', () => undefined)
          .resume()
          .once('close', () => {
            closed += 1
            if (closed === sockets.length - allowed) resolve()
          })
    })
    return sockets.filter(({ destroyed }) => !destroyed)
  }

  it('closes connections over its limit, and has files left for its own work', async () => {
    // Over a connection of its own, which it keeps.
    await daemon.client.get('/status')
    const early = connectSocket(Number(new URL(daemon.url).port), '127.0.0.1')
    await once(early, 'connect')
    const taken = await takeAllConnections()

    early.setEncoding('utf8')
    early.write(
      'POST /cat HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}',
    )
    const answered = once(early, 'data')
    await daemon.client.post('/daemon/reload')
    const access = await daemon.client.get<AccessToken>(
      '/oauth/tokens/ada/access?min_validity=3500',
    )
    assert.equal(await server.isAccessTokenAlive(access.accessToken), true)
    const [answer] = (await answered) as [string]
    assert.match(answer, /^HTTP\/1\.1 202 /)
    await untilDone(/"id":"([^"]+)"/.exec(answer)?.[1])
    assert.match(await readFile(join(daemon.home.root, 'answers.md'), 'utf8'), /\/cat/)

    const log = await readFile(join(daemon.home.logs, 'daemon.log'), 'utf8')
    const said = log.split('\n').filter((line) => line.includes('too many connections'))
    assert.equal(said.length, 1)
    for (const socket of [...taken, early]) socket.destroy()
  })

  it('accepts new connections once others are closed', async () => {
    let reply: Reply | undefined
    // As a sender would: it may not have seen the end of the others yet.
    while (!reply) reply = await post().catch(() => undefined)
    assert.equal(reply.status, 202)
    const { id } = reply.json()
    await untilDone(id)
  })
})
