import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import type { AccessToken, Status } from '../../shared/api/api.ts'
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '../support/providers/authorization-server.ts'
import { startDaemon, untilFinished } from '../support/daemon/daemon.ts'
import { send } from '../support/servers/http.ts'
import { type ProbedDaemon, startProbedDaemon } from '../support/daemon/probed-daemon.ts'
import { storeLogin } from '../support/providers/stored-login.ts'
import { homeIn, temporaryHome } from '../support/temporary.ts'

describe('a daemon whose home', function () {
  this.timeout(60_000)
  let server: AuthorizationServer
  let daemon: ProbedDaemon

  beforeEach(async () => {
    server = await startAuthorizationServer()
  })
  afterEach(async () => {
    await daemon?.stop()
    await server?.close()
  })

  const start = async (pace: number): Promise<void> => {
    const home = await temporaryHome(files())
    await storeLogin(home, 'ada', await server.mint())
    daemon = await startProbedDaemon({ home, pace })
  }
  const files = () => ({
    gateway: `oauth: { callback_port: 0 }\nproviders: { ada: { issuer: '${server.issuer}', client_id: public } }\n`,
    webhooks: 'webhooks:\n  - { path: /a, agent: echo, prompt_template: x }\n',
  })
  const finished = async () => {
    const headers = { 'content-type': 'application/json' }
    const { json } = await send(`${daemon.url}/a`, { headers, body: '{}' })
    return (await untilFinished(daemon, String(json()['id']))).state
  }
  const problems = async (): Promise<string> =>
    (await daemon.client.get<Status>('/status')).problems
      .filter(({ code }) => code !== 'webhook-unsigned')
      .map(({ detail }) => detail)
      .join('\n')

  it('is missing for a moment reports that, and goes on once it is back', async () => {
    await start(5)
    const { root } = daemon.home
    await rename(root, `${root}-away`)
    assert.equal(await finished(), 'done')
    assert.match(await problems(), /tokens is missing/)
    assert.equal(existsSync(root), false)
    await rename(`${root}-away`, root)
    while ((await problems()) !== '') await new Promise((resolve) => setTimeout(resolve, 50))
    const { accessToken } = await daemon.client.get<AccessToken>(
      '/oauth/tokens/ada/access?min_validity=3500',
    )
    assert.equal(await server.isAccessTokenAlive(accessToken), true)
    assert.equal(await daemon.stop(), 0)
  })

  it('is deleted finishes its work, reports that and exits, so that the next one finds its port free', async () => {
    await start(30)
    const { root } = daemon.home
    const { port } = new URL(daemon.url)
    const over = once(daemon.process, 'exit')
    // The daemon may write between the listing of a folder and its removal.
    await rm(root, { recursive: true, maxRetries: 10 })
    assert.equal(await finished(), 'done')
    assert.deepEqual(await over, [0, null])
    assert.match(daemon.stderr(), /^doorward: the home \S+ was deleted, so the daemon exits$/m)
    assert.equal(existsSync(root), false)
    await mkdir(root, { mode: 0o700 })
    const next = await startDaemon({
      home: await homeIn(root, files()),
      variables: { DOORWARD_PORT: port },
    })
    assert.equal(await next.stop(), 0)
  })
})
