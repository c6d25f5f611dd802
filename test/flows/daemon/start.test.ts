import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { watch } from 'node:fs'
import { mkdir, readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Status } from '../../../shared/api/api.ts'
import { connect } from '../../../shared/client/client.ts'
import { resolveHome } from '../../../shared/home/home.ts'
import {
  cleanEnvironment,
  daemonMain,
  spawnDaemon,
  startDaemon,
  untilFinished,
} from '../../support/daemon/daemon.ts'
import { send } from '../../support/servers/http.ts'
import { temporaryFolder, temporaryHome } from '../../support/temporary.ts'
import {
  daemonFile,
  ended,
  isClean,
  posix,
  secret,
  withSecret,
} from '../../support/daemon/starts.ts'

/** Resolves as soon as this name appears in the folder. */
const untilFile = async (folder: string, name: string): Promise<void> =>
  new Promise((resolve) => {
    const watcher = watch(folder, (_, changed) => {
      if (changed !== name) return
      watcher.close()
      resolve()
    })
  })

describe('a daemon that is stopped', () => {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const)
    it(`exits with 0 after ${signal} and leaves only the token`, async () => {
      if (!posix) return
      const daemon = await startDaemon()
      daemon.client.close()
      daemon.process.kill(signal)
      assert.deepEqual(await once(daemon.process, 'exit'), [0, null])
      assert.deepEqual(await readdir(daemon.home.run), ['api.token'])
      assert.equal(daemon.stderr(), '')
    })

  it('exits with 0 and leaves nothing when it is stopped while it starts', async () => {
    if (!posix) return
    const home = await temporaryHome()
    await mkdir(home.run, { mode: 0o700 })
    const locked = untilFile(home.run, 'daemon.lock')
    const child = spawnDaemon(home)
    const end = ended(child)
    await locked
    child.kill('SIGTERM')
    assert.deepEqual(await end, { code: 0, stderr: '' })
    await isClean(home)
  })

  it('exits with 0 when two signals come together', async () => {
    if (!posix) return
    const daemon = await startDaemon()
    daemon.client.close()
    daemon.process.kill('SIGTERM')
    daemon.process.kill('SIGINT')
    assert.deepEqual(await once(daemon.process, 'exit'), [0, null])
    await isClean(daemon.home)
  })
})

describe('a daemon that starts', () => {
  it('takes any free port for DOORWARD_PORT=0 and reports it', async () => {
    const daemon = await startDaemon({ gateway: 'server: { port: 1 }\n' })
    const file = await daemonFile(daemon.home)
    assert.match(file.url, /^http:\/\/127\.0\.0\.1:[1-9]\d+$/)
    assert.deepEqual([file.url, file.pid], [daemon.url, daemon.process.pid])
    const health = await send(`${file.url}/health`, { method: 'GET' })
    assert.equal(health.json()['name'], 'doorward')
    assert.equal(await daemon.stop(), 0)
  })

  it('warns in its log and its status of unsigned webhooks and unset secrets', async () => {
    const entry = (path: string, more: string) =>
      `  - { path: ${path}, agent: echo, prompt_template: x, ${more} }\n`
    const daemon = await startDaemon({
      env: withSecret,
      webhooks: `webhooks:\n${entry('/open', 'deliver_to: none')}${entry('/unset', 'secret_env: NOT_SET')}${entry('/good', 'secret_env: HOOK_SECRET')}`,
    })
    const { problems } = await daemon.client.get<Status>('/status')
    assert.deepEqual(
      problems.map(({ code }) => code),
      ['webhook-unsigned', 'secret-unset'],
    )
    assert.equal(await daemon.stop(), 0)
    const log = await readFile(daemon.home.log, 'utf8')
    const lines = log
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    for (const { code, detail, hint } of problems)
      assert.ok(
        lines.some(
          (line) => line['code'] === code && line['msg'] === detail && line['hint'] === hint,
        ),
      )
    for (const text of [log, daemon.stderr(), daemon.stdout(), JSON.stringify(problems)])
      assert.equal(text.includes(secret) || text.includes(daemon.apiToken), false)
  })

  it('needs no HOME when DOORWARD_HOME is set', async () => {
    const home = await temporaryHome()
    const child = spawn(process.execPath, [daemonMain], {
      env: cleanEnvironment({ HOME: undefined, DOORWARD_HOME: home.root, DOORWARD_PORT: '0' }),
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    const end = ended(child)
    await once(child, 'message')
    assert.equal((await daemonFile(home)).pid, child.pid)
    child.disconnect()
    child.kill('SIGTERM')
    assert.deepEqual(await end, { code: 0, stderr: '' })
  })

  it('goes on when the parent that started it exits', async () => {
    const home = await temporaryHome()
    await mkdir(home.run, { mode: 0o700 })
    const there = untilFile(home.run, 'daemon.json')
    const child = spawnDaemon(home)
    const end = ended(child)
    child.disconnect()
    await there
    const client = await connect(home)
    assert.equal((await client.get<Status>('/status')).url, client.daemon.url)
    client.close()
    child.kill('SIGTERM')
    assert.deepEqual(await end, { code: 0, stderr: '' })
  })

  it('goes on when its output is closed', async () => {
    const daemon = await startDaemon({
      webhooks: 'webhooks:\n  - { path: /a, agent: echo, prompt_template: x, deliver_to: log }\n',
    })
    daemon.process.stdout?.destroy()
    daemon.process.stderr?.destroy()
    const states: string[] = []
    for (let turn = 0; turn < 3; turn += 1) {
      const reply = await send(`${daemon.url}/a`, {
        headers: { 'content-type': 'application/json' },
        body: '{}',
      })
      assert.equal(reply.status, 202)
      states.push((await untilFinished(daemon, String(reply.json()['id']))).state)
    }
    // What went to nobody is said to have failed.
    assert.equal(states.at(-1), 'failed')
    assert.equal(await daemon.stop(), 0)
  })

  it('creates a new home, and keeps its API token at the next start', async () => {
    const home = resolveHome(join(await temporaryFolder(), 'new'))
    const first = await startDaemon({ home })
    assert.match(first.apiToken, /^[\w-]{43}$/)
    assert.equal(await first.stop(), 0)
    const second = await startDaemon({ home })
    assert.equal(second.apiToken, first.apiToken)
    assert.equal(await second.stop(), 0)
  })
})
