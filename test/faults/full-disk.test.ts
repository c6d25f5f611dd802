import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { AccessToken, EventDetail, EventRecord, Status } from '../../shared/api/api.ts'
import type { Home } from '../../shared/home/home.ts'
import {
  type AuthorizationServer,
  type TokenStep,
  startAuthorizationServer,
} from '../support/providers/authorization-server.ts'
import { untilFinished } from '../support/daemon/daemon.ts'
import { send } from '../support/servers/http.ts'
import { type ProbedDaemon, startProbedDaemon } from '../support/daemon/probed-daemon.ts'
import { type SmallDisk, makeSmallDisk } from '../support/small-disk.ts'
import { storeLogin } from '../support/providers/stored-login.ts'
import { homeIn } from '../support/temporary.ts'

const longer = '/oauth/tokens/ada/access?min_validity=3500'

describe('a daemon whose disk', function () {
  this.timeout(60_000)
  let server: AuthorizationServer
  let disk: SmallDisk
  let home: Home
  let daemon: ProbedDaemon
  let onStep: (step: TokenStep) => Promise<void> = async () => undefined

  before(function () {
    // Elsewhere there are neither such disks nor such limits.
    if (process.platform !== 'linux') this.skip()
  })
  before(async () => {
    server = await startAuthorizationServer({ onStep: (step) => onStep(step) })
  })
  after(() => server?.close())
  beforeEach(async () => {
    onStep = async () => undefined
    disk = await makeSmallDisk()
    home = await homeIn(disk.folder, {
      gateway: `oauth: { callback_port: 0 }\nproviders: { ada: { issuer: '${server.issuer}', client_id: public } }\n`,
      webhooks: `webhooks: [{ path: /a, agent: echo, prompt_template: '${'long '.repeat(1000)}', deliver_to: 'file:answers.md' }]\n`,
    })
    await storeLogin(home, 'ada', await server.mint())
    daemon = await startProbedDaemon({ home, pace: 10 })
  })
  afterEach(async () => {
    await disk.makeWritable()
    await daemon?.stop()
    await disk.close()
  })

  const pid = () => daemon.process.pid ?? 0
  const tokenFile = () => readFile(join(home.tokens, 'ada.json'), 'utf8')
  const stored = async () => JSON.parse(await tokenFile()) as Record<string, string>
  const finished = async (): Promise<EventDetail> => {
    const headers = { 'content-type': 'application/json' }
    const { status, json } = await send(`${daemon.url}/a`, { headers, body: '{}' })
    assert.equal(status, 202)
    return untilFinished(daemon, String(json()['id']))
  }
  const problems = async (): Promise<string> =>
    (await daemon.client.get<Status>('/status')).problems
      .filter(({ code }) => code !== 'webhook-unsigned')
      .map(({ code, detail }) => `${code}: ${detail}`)
      .join('\n')
  const until = async (isSo: () => Promise<boolean>): Promise<void> => {
    while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 50))
  }

  for (const [what, begin, end, seen] of [
    ['is full', () => disk.fill(pid()), () => disk.free(pid()), /is full/],
    [
      'is read-only',
      () => disk.makeReadOnly(),
      () => disk.makeWritable(),
      /cannot write to \S+tokens \((the file system is read-only|permission denied)\)/,
    ],
  ] as const)
    it(`${what} refreshes no token, reports that, and recovers automatically`, async () => {
      if (what === 'is read-only' && !disk.canBeReadOnly)
        return console.error('NOT TRIED: root without mounts has no folder that is read-only')
      assert.equal((await finished()).state, 'done')
      const before = await tokenFile()
      const requests = server.tokenRequests.length
      await begin()

      // What is there is still good, and is not put at risk.
      const { accessToken } = await daemon.client.get<AccessToken>(longer)
      assert.equal(accessToken, 'of-before')
      assert.equal(server.tokenRequests.length, requests)
      assert.equal(await tokenFile(), before)
      const failed = await finished()
      assert.deepEqual([failed.state, failed.targets[0]?.code], ['failed', 'delivery-failed'])
      // More than what is left in the last block of the log.
      for (let more = 0; more < 40; more += 1) await finished()
      const { events } = await daemon.client.get<{ events: EventRecord[] }>('/events')
      const told = events.find(({ kind, code }) => kind === 'oauth' && code === 'home-unusable')
      assert.match(told?.detail ?? '', /so the token of ada is not renewed/)
      // A limit is nothing that the disk tells.
      if (disk.isMounted || what !== 'is full') assert.match(await problems(), seen)

      await end()
      let renewed = accessToken
      await until(async () => {
        ;({ accessToken: renewed } = await daemon.client.get<AccessToken>(longer))
        return renewed !== accessToken
      })
      assert.equal(await server.isAccessTokenAlive(renewed), true)
      assert.equal((await stored())['accessToken'], renewed)
      await until(async () => (await problems()) === '')
      let last = ''
      await until(async () => {
        const { id, state } = await finished()
        assert.equal(state, 'done')
        const text = await readFile(home.log, 'utf8')
        const isWritten = text.includes(`"event":"${last}"`)
        last = id
        return isWritten
      })
      const wasTold = /"the log could not be written, lines are missing"/.test(
        await readFile(home.log, 'utf8'),
      )
      assert.equal(wasTold, what === 'is full')
      // The history is written when it can be, each event once.
      const lines = async () => {
        const folder = join(home.root, 'history')
        const texts = (await readdir(folder)).map((name) => readFile(join(folder, name), 'utf8'))
        return (await Promise.all(texts)).join('').split(`{"id":"${failed.id}"`).length - 1
      }
      await until(async () => (await lines()) > 0)
      assert.equal(await lines(), 1)
      assert.equal(daemon.stderr().match(/cannot write the log/g)?.length, wasTold ? 1 : undefined)
    })

  it('becomes full during a refresh keeps the new token, and writes it as soon as it can', async () => {
    onStep = async (step) => {
      if (step === 'processed') await disk.fill(pid())
    }
    const before = await tokenFile()
    await assert.rejects(daemon.client.get(longer), { code: 'home-unusable' })
    onStep = async () => undefined
    assert.equal(await tokenFile(), before)
    const { refreshToken = '' } = JSON.parse(before) as Record<string, string>
    assert.equal(await server.stateOf(refreshToken), 'used')
    await disk.free(pid())
    await until(async () => (await tokenFile()) !== before)
    const after = await stored()
    assert.equal(await server.stateOf(after['refreshToken'] ?? ''), 'alive')
    assert.equal(after['ended'], undefined)
    assert.equal(server.tokenRequests.at(-1)?.get('refresh_token'), refreshToken)
  })
})
