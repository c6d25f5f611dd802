import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, readdir } from 'node:fs/promises'
import { Agent, request as httpRequest } from 'node:http'
import { type Socket, connect as connectSocket } from 'node:net'
import { join } from 'node:path'
import type { AccessToken, EventDetail, ProblemDocument, Status } from '../../shared/api.ts'
import { systemCode } from '../../shared/errors.ts'
import { writeWhole } from '../../shared/write-whole.ts'
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '../support/authorization-server.ts'
import { untilFinished } from '../support/daemon.ts'
import { type ProbedDaemon, startProbedDaemon } from '../support/probed-daemon.ts'
import { send } from '../support/http.ts'
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
    await mkdir(home.tokens, { mode: 0o700 })
    await writeWhole(
      join(home.tokens, 'ada.json'),
      JSON.stringify({
        version: 1,
        provider: 'ada',
        account: null,
        scopes: ['openid', 'email'],
        tokenType: 'Bearer',
        accessToken: 'of-before',
        refreshToken: await server.mint(),
        expiresAt: new Date(Date.now() + 20 * 60_000).toISOString(),
        obtainedAt: new Date(Date.now() - 40 * 60_000).toISOString(),
        clientId: 'public',
      }),
    )
    daemon = await startProbedDaemon({ home, pace: 10 })
  })
  after(async () => {
    await daemon?.stop()
    await server?.close()
  })

  const openFiles = async () =>
    (await readdir(`/proc/${daemon.process.pid}/fd`)).map(Number).toSorted((a, b) => a - b)
  const limitFiles = (limit: number) =>
    execFileSync('prlimit', ['--pid', String(daemon.process.pid), `--nofile=${limit}:`])
  /** Connections that ask nothing, more than the daemon can take: those over are closed at once. */
  const takeAllFiles = async (): Promise<Socket[]> => {
    const { hostname, port } = new URL(daemon.url)
    const sockets = Array.from({ length: 40 }, () => connectSocket(Number(port), hostname))
    for (const socket of sockets) socket.on('error', () => undefined)
    await Promise.race(sockets.map((socket) => once(socket, 'close')))
    return sockets
  }
  const kept = new Agent({ keepAlive: true, maxSockets: 1 })
  /** Over the one connection that was there before. */
  const ask = async <Body>(method: string, path: string): Promise<{ status: number; body: Body }> =>
    new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${daemon.apiToken}` }
      const request = httpRequest(
        `${daemon.url}${path}`,
        { method, headers, agent: kept },
        (response) => {
          let text = ''
          response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
          response.once('end', () =>
            resolve({ status: response.statusCode ?? 0, body: JSON.parse(text) as Body }),
          )
        },
      )
      request.once('error', reject)
      request.end()
    })
  const post = (path: string) =>
    send(`${daemon.url}${path}`, { headers: { 'content-type': 'application/json' }, body: '{}' })
  const finished = async (path: string): Promise<EventDetail> =>
    untilFinished(daemon, String((await post(path)).json()['id']))

  /** What the status says is wrong, but for webhooks that anybody can call. */
  const problems = async (): Promise<string> =>
    (await ask<Status>('GET', '/status')).body.problems
      .filter(({ code }) => code !== 'webhook-unsigned')
      .map(({ detail }) => detail)
      .join('\n')

  it('loses nothing, says what it lacks, and goes on by itself once it may again', async () => {
    assert.equal((await finished('/cat')).state, 'done')
    const tokenFile = join(daemon.home.tokens, 'ada.json')
    const before = await readFile(tokenFile, 'utf8')
    await ask('GET', '/status')
    const free = firstFree(await openFiles())
    limitFiles(free + 8)
    const taken = await takeAllFiles()
    const refused = await post('/echo').catch((error: unknown) => systemCode(error))
    assert.match(String(refused), /^(ECONNRESET|EPIPE)$/)
    const access = '/oauth/tokens/ada/access?min_validity=3500'
    assert.equal((await ask<ProblemDocument>('GET', access)).body.code, 'home-unusable')
    assert.equal((await ask('POST', '/daemon/reload')).status, 422)
    for (const what of [
      /cannot read the folder .*tokens \(EMFILE\)/,
      /\.env: too many files are open/,
    ])
      assert.match(await problems(), what)
    assert.equal(await readFile(tokenFile, 'utf8'), before)

    for (const socket of taken) socket.destroy()
    limitFiles(4096)
    while ((await problems()) !== '') await new Promise((resolve) => setTimeout(resolve, 50))
    assert.equal((await finished('/echo')).state, 'done')
    assert.equal((await finished('/cat')).state, 'done')
    const { body } = await ask<AccessToken>('GET', access)
    assert.equal(await server.isAccessTokenAlive(body.accessToken), true)
  })
})
