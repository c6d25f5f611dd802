import assert from 'node:assert/strict'
import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { AccessToken } from '../../../shared/api/api.ts'
import { isAlive } from '../../../shared/home/lock.ts'
import { startDaemon } from '../../support/daemon/daemon.ts'
import { send } from '../../support/servers/http.ts'
import { restart, untilExit, untilLockMoves } from '../../support/daemon/restart.ts'
import {
  daemonFile,
  deliver,
  echoWebhook,
  eventOf,
  restartedDaemons,
} from '../../support/daemon/restarted-daemons.ts'
import { startRotatingProvider, storeLogin } from '../../support/providers/rotating-provider.ts'
import { temporaryHome } from '../../support/temporary.ts'
import { untilText } from '../../support/until-text.ts'

describe('a restart that fails', () => {
  const { start } = restartedDaemons()

  it('is refused while the configuration is invalid', async () => {
    const old = await start({ webhooks: echoWebhook })
    await writeFile(join(old.home.config, 'webhooks.yaml'), 'webhooks: 1\n')
    await writeFile(join(old.home.config, 'agents.yaml'), 'agents: 2\n')
    await assert.rejects(restart(old.client), (error: Error & { code?: string }) => {
      assert.equal(error.code, 'config-invalid')
      assert.match(error.message, /webhooks\.yaml:1:1[^]*agents\.yaml:1:1|agents[^]*webhooks/)
      return true
    })
    await deliver(old.url)
    assert.equal((await daemonFile(old.home)).pid, old.process.pid)
  })

  it('is refused to a caller without the token, and to a web page', async () => {
    const old = await start()
    const path = `${old.url}/daemon/restart`
    assert.equal((await send(path)).status, 401)
    const headers = { authorization: `Bearer ${old.apiToken}`, origin: 'https://evil.example' }
    assert.equal((await send(path, { headers })).status, 403)
    assert.equal((await daemonFile(old.home)).pid, old.process.pid)
  })

  it('keeps the old daemon serving when the new one is killed, at any step', async () => {
    const provider = await startRotatingProvider(1)
    const home = await temporaryHome({
      webhooks: echoWebhook,
      gateway: `oauth: { callback_port: 0 }\nproviders:\n  acme: ${provider.entry}\n`,
    })
    await storeLogin(home)
    const old = await start({ home })
    const pid = old.process.pid ?? 0
    const pidIn = /"successor":(\d+),"msg":"restarting"\}/
    const kills = [
      async () => Number(pidIn.exec(await untilText(home.logs, 'daemon.log', pidIn))?.[1]),
      async () => untilLockMoves(home, pid),
    ]
    for (const victim of kills) {
      const failed = assert.rejects(restart(old.client), {
        code: 'restart-failed',
        message: /old one goes on: it exited with SIGKILL/,
      })
      process.kill(await victim(), 'SIGKILL')
      await failed
      await deliver(old.url)
      assert.deepEqual((await daemonFile(home)).pid, pid)
      assert.match(await readFile(join(home.run, 'daemon.lock'), 'utf8'), new RegExp(`^${pid} `))
      const token = await old.client.get<AccessToken>('/oauth/tokens/acme/access')
      assert.ok(provider.isGood(token.accessToken))
    }
    assert.equal(provider.clashes(), 0)
    await restart(old.client)
    assert.equal(await untilExit(old), '0')
    provider.close()
  })

  it('loses no event when the new daemon fails at its last step', async () => {
    const gateway = 'oauth: { callback_port: 0 }\nevents: { keep: 20000 }\n'
    const old = await startDaemon({ webhooks: echoWebhook, gateway })
    // What says where the daemon is found cannot be replaced: that shows at the very end.
    await rm(old.home.daemonJson)
    await mkdir(join(old.home.daemonJson, 'in-the-way'), { recursive: true })
    const accepted: string[] = []
    const over = new AbortController()
    const headers = { 'content-type': 'application/json' }
    const keepPosting = async () => {
      while (!over.signal.aborted) {
        const body = JSON.stringify({ n: 1 })
        const reply = await send(`${old.url}/a`, { headers, body }).catch(() => undefined)
        if (reply?.status === 202) accepted.push(String(reply.json()['id']))
      }
    }
    const posting = Promise.all(Array.from({ length: 8 }, keepPosting))
    const started = accepted.length
    await assert.rejects(restart(old.client), { code: 'restart-failed' })
    over.abort()
    await posting
    assert.ok(accepted.length > started)
    for (const id of accepted) assert.ok(await eventOf(old.client, id), id)
    assert.equal(new Set(accepted).size, accepted.length)
    await rm(old.home.daemonJson, { recursive: true })
    assert.equal(await old.stop(), 0)
  })

  it('leaves no new daemon behind when the old one is stopped during it', async () => {
    const old = await start({ webhooks: echoWebhook })
    const failed = assert.rejects(restart(old.client), { code: 'stopping' })
    const log = await untilText(old.home.logs, 'daemon.log', /"restarting"/)
    old.process.kill('SIGTERM')
    await failed
    assert.equal(await untilExit(old), '0')
    assert.equal(isAlive(Number(/"successor":(\d+)/.exec(log)?.[1])), false)
    assert.deepEqual(await readdir(old.home.run), ['api.token'])
  })
})
