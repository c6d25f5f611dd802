import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { EventRecord } from '../../shared/api/api.ts'
import { cleanEnvironment, cliMain } from '../support/daemon/daemon.ts'
import { filesIn, temporaryFolder, temporaryHome } from '../support/temporary.ts'
import { type ContractServer, startContractServer } from './support/contract-server.ts'
import { resultOf, run, stopStarted } from './support/cli.ts'

const record: EventRecord = {
  id: 'evt_1',
  kind: 'webhook',
  webhook: '/a',
  receivedAt: '2026-06-07T10:00:00.000Z',
  state: 'done',
  agent: 'echo',
  attempts: 1,
  durations: {},
  targets: [],
  resultPreview: 'all ✓ …',
}

const startEvents = async (): Promise<ContractServer> =>
  startContractServer(() => [200, { events: [record] }])

const commands: readonly (readonly string[])[] = [
  ['--version'],
  ['--help'],
  ['oauth', '--help'],
  ['help', 'webhook', 'send'],
  ['events'],
  ['events', '--json'],
  ['config', 'schema', 'webhooks'],
  ['config', 'path'],
  ['config', 'check'],
  ['webhook', 'send', '--sample'],
]

describe('cli: where it runs', () => {
  it('ends quietly when nobody reads what it prints', async () => {
    const server = await startEvents()
    const results = []
    for (const args of commands) {
      const child = spawn(process.execPath, [cliMain, ...args, '--home', server.home.root], {
        env: cleanEnvironment({}),
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      child.stdout.destroy()
      let stderr = ''
      child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
      await once(child, 'close')
      results.push([args.join(' '), stderr.replace(/^hint: .*\n/gm, '')])
    }
    await server.close()
    assert.deepEqual(
      results.filter(([, stderr]) => /\n\s+at |node:|EPIPE|cannot write/.test(stderr ?? '')),
      [],
    )
  })

  it('says in a line that its output cannot be written', async function () {
    if (process.platform !== 'linux') return this.skip()
    const server = await startEvents()
    const full = openSync('/dev/full', 'w')
    const at = ['--home', server.home.root]
    for (const args of [
      ['--version'],
      ['--version', ...at],
      ['--help', ...at],
      ['events', ...at],
    ]) {
      const child = spawn(process.execPath, [cliMain, ...args], {
        env: cleanEnvironment({}),
        stdio: ['ignore', full, 'pipe'],
      })
      const { code, stderr } = await resultOf(child)
      assert.equal(code, 1, args.join(' '))
      assert.match(stderr, /^doorward: cannot write to standard output \(ENOSPC\)\n$/)
    }
    closeSync(full)
    await server.close()
  })

  it('says that there is no home when HOME is empty, and needs none for its version', async () => {
    const env = { HOME: '', DOORWARD_HOME: undefined }
    assert.equal((await run(['--version'], { env })).code, 0)
    const { code, stderr } = await run(['status'], { env })
    assert.equal(code, 1)
    assert.match(stderr, /no home folder: HOME is not set\nhint: .*DOORWARD_HOME/)
  })

  it('writes nothing where it stands for want of a home folder of the user', async function () {
    if (process.platform !== 'linux') return this.skip()
    const home = await temporaryHome()
    const cwd = await temporaryFolder()
    const child = spawn(process.execPath, [cliMain, 'daemon', 'install', '--no-start'], {
      env: cleanEnvironment({ HOME: '', DOORWARD_HOME: home.root }),
      cwd,
    })
    const { code, stderr } = await resultOf(child)
    assert.equal(code, 1)
    assert.match(
      stderr,
      /^doorward: no home folder to write to: HOME is not set\nhint: set HOME\n$/,
    )
    assert.deepEqual(await filesIn(cwd), [])
  })

  describe('for a user that the system does not know', () => {
    /** As in a container that runs under a number of its own; the number is in no list of users. */
    const asUnknown = async (
      args: readonly string[],
      env: Parameters<typeof cleanEnvironment>[0],
    ) =>
      resultOf(
        spawn('unshare', ['--user', '--map-user=4242', process.execPath, cliMain, ...args], {
          env: cleanEnvironment({ DOORWARD_PORT: '0', ...env }),
          timeout: 40_000,
          killSignal: 'SIGKILL',
        }),
      )

    before(function () {
      if (process.platform !== 'linux') this.skip()
    })

    it('says that there is no home, and starts a daemon in one that is named', async () => {
      const nowhere = await asUnknown(['status'], { HOME: undefined })
      assert.match(nowhere.stderr, /no home folder: HOME is not set\nhint: .*DOORWARD_HOME/)

      const home = await temporaryHome()
      const named = { HOME: undefined, DOORWARD_HOME: home.root }
      const started = await asUnknown(['daemon', 'start'], named)
      const examined = await asUnknown(['doctor', '--json'], named)
      await stopStarted(home)
      assert.equal(started.code, 0, started.stderr)
      const { ok, checks } = JSON.parse(examined.stdout) as { ok: boolean; checks: unknown }
      assert.ok(ok, JSON.stringify(checks))
      assert.doesNotMatch(examined.stdout, new RegExp(home.root))
    })
  })

  it('says that a home cannot be written, and what to do, in every command that must', async function () {
    if (process.platform === 'win32') return this.skip()
    // root may write everywhere but in what the kernel shows.
    const isRoot = process.getuid?.() === 0
    const folder = isRoot ? '/sys/kernel' : join(await temporaryFolder(), 'read-only')
    if (!isRoot) await mkdir(folder, { mode: 0o500 })
    for (const args of [['init'], ['daemon', 'start'], ['oauth', 'token', 'github']]) {
      const { code, stderr } = await run([...args, '--home', join(folder, 'doorward-home')])
      assert.equal(code, 1)
      assert.match(
        stderr,
        /(permission denied|not permitted|read-only)\nhint: make it writable for you/,
      )
    }
  })
})
