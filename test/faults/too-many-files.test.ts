import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile, readdir } from 'node:fs/promises'
import { Agent, request as httpRequest } from 'node:http'
import { type Socket, connect as connectSocket } from 'node:net'
import { join } from 'node:path'
import type { AccessToken, EventDetail, ProblemDocument, Status } from '../../shared/api/api.ts'
import { systemCode } from '../../shared/errors.ts'
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '../support/providers/authorization-server.ts'
import { untilFinished } from '../support/daemon/daemon.ts'
import { type ProbedDaemon, startProbedDaemon } from '../support/daemon/probed-daemon.ts'
import { send } from '../support/servers/http.ts'
import { storeLogin } from '../support/providers/stored-login.ts'
import { temporaryHome } from '../support/temporary.ts'

/* The limit of open files is set low while the daemon runs, and connections take all that are left. */

/** The lowest number that no open file has, nor any that is taken next. */
const firstFree = (taken: readonly number[]): number =>
  taken.findIndex((number, index) => number !== index)

describe('a daemon that may open no more files', function () {
  this.timeout(60_000)
  let server: AuthorizationServer
  let daemon: ProbedDaemon

  before(function () {
    // Elsewhere the limit of a process cannot be changed from outside.
    if (process.platform !== 'linux') this.skip()
  })
  before(async () => {
    server = await startAuthorizationServer()
    const home = await temporaryHome({
      gateway: `oauth: { callback_port: 0 }\nproviders: { ada: { issuer: '${server.issuer}', client_id: public } }\n`,
      agents: 'agents:\n  echo: { kind: echo }\n  cat: { kind: command, command: [cat] }\n',
      webhooks: `webhooks:
  - { path: /echo, agent: echo, prompt_template: x, deliver_to: 'file:answers.md' }
  - { path: /cat, agent: cat, prompt_template: x }
`,
    })
    await storeLogin(home, 'ada', await server.mint())
    daemon = await startProbedDaemon({ home, pace: 3 })
  })
  after(async () => {
    await daemon?.stop()
    await server?.close()
  })

  const openFiles = async () =>
    (await readdir(`/proc/${daemon.process.pid}/fd`)).map(Number).toSorted((a, b) => a - b)
  const limitFiles = (limit: number) =>
    execFileSync('prlimit', ['--pid', String(daemon.process.pid), `--nofile=${limit}:`])
  const kept = new Agent({ keepAlive: true, maxSockets: 1 })
  /** Over the one connection that was there before. */
  const ask = async (method: string, path: string): Promise<{ status: number; body: unknown }> =>
    new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${daemon.apiToken}` }
      const request = httpRequest(
        `${daemon.url}${path}`,
        { method, headers, agent: kept },
        (response) => {
          let text = ''
          response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
          response.once('end', () =>
            resolve({ status: response.statusCode ?? 0, body: JSON.parse(text) as unknown }),
          )
        },
      )
      request.once('error', reject)
      request.end()
    })
  /**
   * Connections that ask nothing, as many as the daemon can take. It takes one in each turn of its loop, and a
   * file that it had open meanwhile leaves room again: it is full once it was so several times in a row.
   */
  const takeAllFiles = async (limit: number): Promise<Socket[]> => {
    const { hostname, port } = new URL(daemon.url)
    const sockets: Socket[] = []
    for (let timesFull = 0; timesFull < 5; timesFull += 1) {
      if ((await openFiles()).filter((number) => number < limit).length < limit) {
        timesFull = 0
        const socket = connectSocket(Number(port), hostname)
        socket.on('error', () => undefined)
        sockets.push(socket)
        await once(socket, 'connect')
      }
      await ask('GET', '/status')
    }
    return sockets
  }
  const post = (path: string) =>
    send(`${daemon.url}${path}`, { headers: { 'content-type': 'application/json' }, body: '{}' })
  const finished = async (path: string): Promise<EventDetail> =>
    untilFinished(daemon, String((await post(path)).json()['id']))

  /** What the status says is wrong, but for webhooks that anybody can call. */
  const problems = async (): Promise<string> =>
    ((await ask('GET', '/status')).body as Status).problems
      .filter(({ code }) => code !== 'webhook-unsigned')
      .map(({ detail }) => detail)
      .join('\n')

  it('loses nothing, reports what it lacks, and recovers automatically', async () => {
    assert.equal((await finished('/cat')).state, 'done')
    const tokenFile = join(daemon.home.tokens, 'ada.json')
    const before = await readFile(tokenFile, 'utf8')
    await ask('GET', '/status')
    const free = firstFree(await openFiles())
    const limit = free + 8
    limitFiles(limit)
    const taken = await takeAllFiles(limit)
    // Refused, or not looked at before there is room again.
    const early = post('/echo').catch((error: unknown) => systemCode(error))
    const access = '/oauth/tokens/ada/access?min_validity=3500'
    assert.equal(((await ask('GET', access)).body as ProblemDocument).code, 'home-unusable')
    assert.equal((await ask('POST', '/daemon/reload')).status, 422)
    for (const what of [
      /cannot read the folder .*tokens \(EMFILE\)/,
      /\.env: too many files are open/,
    ])
      assert.match(await problems(), what)
    assert.equal(await readFile(tokenFile, 'utf8'), before)

    for (const socket of taken) socket.destroy()
    limitFiles(4096)
    const reply = await early
    assert.match(
      typeof reply === 'object' ? String(reply.status) : (reply ?? ''),
      /^(ECONNRESET|EPIPE|202)$/,
    )
    while ((await problems()) !== '') await new Promise((resolve) => setTimeout(resolve, 50))
    assert.equal((await finished('/echo')).state, 'done')
    assert.equal((await finished('/cat')).state, 'done')
    const { accessToken } = (await ask('GET', access)).body as AccessToken
    assert.equal(await server.isAccessTokenAlive(accessToken), true)
  })
})
