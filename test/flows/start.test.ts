import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, watch } from 'node:fs'
import { chmod, mkdir, readFile, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { lockHome } from '../../shared/instance-lock.ts'
import type { DaemonFile, Status } from '../../shared/api.ts'
import { connect } from '../../shared/client.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { type Home, homeAt } from '../../shared/home.ts'
import type { StartMessage } from '../../shared/spawn-daemon.ts'
import {
  cleanEnvironment,
  daemonMain,
  spawnDaemon,
  startDaemon,
  untilFinished,
} from '../support/daemon.ts'
import { send } from '../support/http.ts'
import { temporaryFolder, temporaryHome } from '../support/temporary.ts'

const posix = process.platform !== 'win32'
const secret = 'a-secret-that-nobody-may-see'

/** What a child says on standard error until it ends; it never shows the secret of `.env`. */
const ended = async (child: ChildProcess): Promise<{ code: number | null; stderr: string }> => {
  let stderr = ''
  assert.ok(child.stderr)
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  // Not its close: that never comes once its channel was disconnected.
  await Promise.all([once(child, 'exit'), once(child.stderr, 'end')])
  assert.equal(stderr.includes(secret), false)
  return { code: child.exitCode, stderr }
}

const tried = async (home: Home, variables: Record<string, string> = {}) =>
  ended(spawnDaemon(home, variables))

const daemonFile = async (home: Home) =>
  JSON.parse(await readFile(home.daemonJson, 'utf8')) as DaemonFile

/** A start works, and its stop leaves nothing in `run` but the token. */
const startsAndStops = async (home: Home): Promise<void> => {
  const daemon = await startDaemon({ home })
  assert.equal((await daemonFile(home)).pid, daemon.process.pid)
  assert.equal(await daemon.stop(), 0)
  assert.deepEqual(await readdir(home.run), ['api.token'])
}

const isClean = async (home: Home): Promise<void> =>
  assert.deepEqual(
    (await readdir(home.run)).filter((name) => name !== 'api.token'),
    [],
  )

/** Resolves as soon as this name appears in the folder. */
const untilFile = async (folder: string, name: string): Promise<void> =>
  new Promise((resolve) => {
    const watcher = watch(folder, (_, changed) => {
      if (changed !== name) return
      watcher.close()
      resolve()
    })
  })

const withSecret = `HOOK_SECRET=${secret}\n`

describe('a daemon whose configuration cannot be used', () => {
  it('ends with 78, says all that is wrong, and leaves nothing half made', async () => {
    const home = await temporaryHome({
      env: withSecret,
      gateway: 'servr: {}\n',
      agents: 'agents: { echo: { kind: ecko } }\n',
      webhooks: 'webhooks:\n  - { path: /a, agent: eco, prompt_template: "{{evnt}}" }\n',
    })
    const { code, stderr } = await tried(home, { DOORWARD_PORT: 'x' })
    assert.equal(code, 78)
    assert.deepEqual(stderr.replaceAll(home.config, '').split('\n'), [
      'doorward: the configuration cannot be used',
      '/gateway.yaml:1:1 servr: unknown key (did you mean "server"?)',
      '/agents.yaml:1:19 agents.echo.kind: unknown kind "ecko" (did you mean "echo"?)',
      '/webhooks.yaml:2:17 webhooks[0].agent: unknown agent "eco" (did you mean "echo"?)',
      '/webhooks.yaml:2:29 webhooks[0].prompt_template: {{evnt}}: only {{event}} and {{event.<path>}} can be used',
      'environment:1:1 DOORWARD_PORT: not a port: write a number from 0 to 65535',
      'hint: mend it, then run: doorward config check',
      '',
    ])
    assert.deepEqual(await readdir(home.run), [])
  })

  it('takes away what a killed one said of itself', async () => {
    const home = await temporaryHome({ agents: 'agents: []\n' })
    await mkdir(home.run, { mode: 0o700 })
    await writeFile(home.daemonJson, '{"pid":1,"url":"http://127.0.0.1:1"}')
    assert.equal((await tried(home)).code, 78)
    assert.deepEqual(await readdir(home.run), [])
  })

  it('ends with 78 for a level of the log that is none', async () => {
    const home = await temporaryHome()
    const { code, stderr } = await tried(home, { DOORWARD_LOG_LEVEL: 'loud' })
    assert.equal(code, 78)
    assert.match(
      stderr,
      /^doorward: DOORWARD_LOG_LEVEL is no level of a log\nhint: set it to one of/,
    )
    await isClean(home)
  })
})

describe('a daemon whose port is taken', () => {
  it('ends with 1 and says that another program has it, and the way out', async () => {
    const server = createServer((socket) => socket.end('hello\r\n'))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const home = await temporaryHome({ env: withSecret })
    const { code, stderr } = await tried(home, { DOORWARD_PORT: String(port) })
    server.close()
    assert.equal(code, 1)
    const holder = process.platform === 'win32' ? '' : String.raw` \([^,()]+, pid ${process.pid}\)`
    assert.match(
      stderr,
      new RegExp(
        `^doorward: port ${port} is taken by another program${holder}\n` +
          `hint: stop it, or choose another port: server.port in gateway.yaml, or DOORWARD_PORT=${port + 1}\n$`,
      ),
    )
    await isClean(home)
    await startsAndStops(home)
  })

  it('knows the daemon of another home, even of a copy of this one', async () => {
    const first = await startDaemon()
    const { port } = new URL(first.url)
    const other = await temporaryHome()
    const copy = await temporaryHome()
    await mkdir(copy.run, { mode: 0o700 })
    await writeFile(copy.apiToken, first.apiToken, { mode: 0o600 })
    for (const home of [other, copy]) {
      const { code, stderr } = await tried(home, { DOORWARD_PORT: port })
      assert.equal(code, 1)
      assert.match(
        stderr,
        /^doorward: port \d+ is taken by the doorward daemon of another home( \(pid \d+\))?\nhint: /,
      )
      assert.equal(stderr.includes(first.apiToken), false)
      await isClean(home)
    }
    assert.equal(await first.stop(), 0)
  })
})

describe('a daemon whose home cannot be used', () => {
  it('ends with 78 when the home, or a folder of it, is a file', async () => {
    const file = join(await temporaryFolder(), 'file')
    await writeFile(file, '')
    const home = await temporaryHome()
    await writeFile(home.run, '')
    for (const [at, message] of [
      [homeAt(file), 'a file of that name is in the way'],
      [homeAt(join(file, 'below')), 'a part of the path is a file, not a folder'],
      [home, 'a file of that name is in the way'],
    ] as const) {
      const { code, stderr } = await tried(at)
      assert.equal(code, 78)
      assert.match(stderr, new RegExp(`^doorward: cannot use the folder .*: ${message}\nhint: `))
    }
  })

  it('ends with 78 and the chmod that mends it when secrets lie open', async () => {
    if (!posix) return
    const open: ((home: Home) => Promise<[string, number]>)[] = [
      async ({ tokens }) => [tokens, 0o755],
      async ({ run }) => [run, 0o755],
      async ({ env }) => [env, 0o644],
      async ({ apiToken }) => {
        await writeFile(apiToken, `${'x'.repeat(43)}\n`, { mode: 0o600 })
        return [apiToken, 0o640]
      },
    ]
    for (const make of open) {
      const home = await temporaryHome({ env: withSecret })
      for (const folder of [home.run, home.tokens]) await mkdir(folder, { mode: 0o700 })
      const [path, mode] = await make(home)
      await chmod(path, mode)
      const { code, stderr } = await tried(home)
      assert.equal(code, 78)
      const hint = /\nhint: (chmod [67]00 .+)\n$/.exec(stderr)?.[1] ?? ''
      assert.equal(hint.endsWith(path), true, stderr)
      await isClean(home)
      execFileSync('sh', ['-c', hint])
      await startsAndStops(home)
    }
  })

  it('ends with 78 when .env is a link', async () => {
    if (!posix) return
    const home = await temporaryHome({ env: withSecret })
    await rename(home.env, `${home.env}.real`)
    await symlink(`${home.env}.real`, home.env)
    const { code, stderr } = await tried(home)
    assert.equal(code, 78)
    assert.match(stderr, /\.env is a symbolic link\nhint: replace it by the file itself/)
    await rm(home.env)
    await rename(`${home.env}.real`, home.env)
    await startsAndStops(home)
  })
})

describe('the only daemon of a home', () => {
  it('refuses a second one with its pid, on any port, and goes on', async () => {
    const first = await startDaemon()
    for (const port of ['0', new URL(first.url).port]) {
      const { code, stderr } = await tried(first.home, { DOORWARD_PORT: port })
      assert.equal(code, 1)
      assert.equal(
        stderr,
        `doorward: a daemon with pid ${first.process.pid} already runs on ${first.home.root}\n` +
          'hint: doorward daemon status, or doorward daemon restart\n',
      )
    }
    assert.equal((await daemonFile(first.home)).pid, first.process.pid)
    assert.equal((await first.client.get<Status>('/status')).url, first.url)
    assert.equal(await first.stop(), 0)
  })

  it('leaves what the next start clears away when it is killed', async () => {
    const first = await startDaemon()
    first.client.close()
    first.process.kill('SIGKILL')
    await once(first.process, 'exit')
    assert.deepEqual((await readdir(first.home.run)).toSorted(), [
      'api.token',
      'daemon.json',
      'daemon.lock',
    ])
    await startsAndStops(first.home)
  })

  it('clears away what one that was killed in the middle of its start left, and nothing of others', async () => {
    const home = await temporaryHome()
    const schema = join(home.config, 'schema')
    for (const folder of [home.run, schema]) await mkdir(folder, { mode: 0o700 })
    const left = [
      join(home.root, '.env.0123456789ab.tmp'),
      join(schema, 'gateway.json.0123456789ab.tmp'),
      ...[
        'daemon.json.0123456789ab.tmp',
        'api.token.0123456789ab.tmp',
        '.probe-999999999',
        'daemon.lock.999999999-0123456789ab',
        'daemon.lock.after-0123456789ab',
        'tray.lock.999999999-0123456789ab',
        'config.lock.999999999-0123456789ab',
      ].map((name) => join(home.run, name)),
    ]
    for (const path of left) await writeFile(path, '999999999 1 stale')
    // Killed between making a file and writing into it.
    for (const name of ['daemon.lock.999999999-abcdef012345', 'daemon.lock.after-abcdef012345']) {
      await writeFile(join(home.run, name), '')
      left.push(join(home.run, name))
    }
    const others = [
      `daemon.lock.${process.pid}-cdef01234567`,
      `.probe-${process.pid}`,
      'notes.txt.tmp',
    ]
    for (const name of others) await writeFile(join(home.run, name), `${process.pid} ? mine`)
    const fresh = `daemon.lock.${process.pid}-abcdef012345`
    await writeFile(join(home.run, fresh), '')
    others.push(fresh)
    assert.equal(await (await startDaemon({ home })).stop(), 0)
    for (const path of left) assert.equal(existsSync(path), false, path)
    assert.deepEqual((await readdir(home.run)).toSorted(), [...others, 'api.token'].toSorted())
  })

  it('is exactly one of twenty that start at once after a crash', async () => {
    const first = await startDaemon()
    first.client.close()
    first.process.kill('SIGKILL')
    await once(first.process, 'exit')

    const children = Array.from({ length: 20 }, () => spawnDaemon(first.home))
    const lives = (child: ChildProcess) =>
      new Promise<undefined>((resolve) => {
        child.once('message', (message: StartMessage) => {
          if ('url' in message) resolve(undefined)
        })
      })
    const outcomes = await Promise.all(
      children.map((child) => Promise.race([lives(child), ended(child)])),
    )
    const living = children.filter((_, index) => outcomes[index] === undefined)
    assert.equal(living.length, 1)
    assert.deepEqual([...new Set(outcomes.flatMap((end) => end?.code ?? []))], [1])
    const [winner] = living
    assert.ok(winner)
    const client = await connect(first.home)
    assert.equal(client.daemon.pid, winner.pid)
    client.close()
    winner.disconnect()
    winner.kill('SIGTERM')
    assert.equal((await once(winner, 'exit'))[0], 0)
    assert.deepEqual(await readdir(first.home.run), ['api.token'])
  }).timeout(60_000)

  it('takes its lock from one that is gone, whatever stands in it and however many try', async () => {
    for (const stale of ['999999999 1', '999999999 1 abc', 'garbage', '', '-1', '0 0 0']) {
      const home = await temporaryHome()
      await mkdir(home.run, { mode: 0o700 })
      await writeFile(join(home.run, 'daemon.lock'), stale)
      for (let round = 0; round < 3; round += 1) {
        const outcomes = await Promise.allSettled(
          Array.from({ length: 12 }, async () => lockHome(home)),
        )
        const unlocks = outcomes.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
        assert.equal(unlocks.length, 1, stale)
        for (const one of outcomes)
          if (one.status === 'rejected') {
            assert.ok(one.reason instanceof DoorwardError)
            assert.equal(one.reason.code, 'already-running')
          }
        // The next round finds a lock and a claim of takers that were killed in the middle.
        const lock = await readFile(join(home.run, 'daemon.lock'), 'utf8')
        await unlocks[0]?.()
        assert.deepEqual(await readdir(home.run), [])
        await writeFile(join(home.run, 'daemon.lock'), lock.replace(/^\d+/, '999999999'))
      }
      await rm(home.root, { recursive: true })
    }
  })

  it('takes its lock when a taker before it was killed in the middle', async () => {
    const home = await temporaryHome()
    await mkdir(home.run, { mode: 0o700 })
    const path = join(home.run, 'daemon.lock')
    await writeFile(path, '999999999 1 stale')
    // Were it not this name, the claim would be left there.
    const nonce = createHash('sha256').update('999999999 1 stale').digest('hex').slice(0, 12)
    await writeFile(`${path}.after-${nonce}`, '999999998 1 claim')
    const unlock = await lockHome(home)
    assert.deepEqual(await readdir(home.run), ['daemon.lock'])
    await unlock()
    assert.deepEqual(await readdir(home.run), [])
  })
})

describe('a daemon that is told to stop', () => {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const)
    it(`ends with 0 after ${signal} and leaves only the token`, async () => {
      if (!posix) return
      const daemon = await startDaemon()
      daemon.client.close()
      daemon.process.kill(signal)
      assert.deepEqual(await once(daemon.process, 'exit'), [0, null])
      assert.deepEqual(await readdir(daemon.home.run), ['api.token'])
      assert.equal(daemon.stderr(), '')
    })

  it('ends with 0 and leaves nothing when it is told so while it starts', async () => {
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

  it('ends with 0 when two signals come at once', async () => {
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
  it('takes any free port for DOORWARD_PORT=0 and says which', async () => {
    const daemon = await startDaemon({ gateway: 'server: { port: 1 }\n' })
    const file = await daemonFile(daemon.home)
    assert.match(file.url, /^http:\/\/127\.0\.0\.1:[1-9]\d+$/)
    assert.deepEqual([file.url, file.pid], [daemon.url, daemon.process.pid])
    const health = await send(`${file.url}/health`, { method: 'GET' })
    assert.equal(health.json()['name'], 'doorward')
    assert.equal(await daemon.stop(), 0)
  })

  it('warns in its log and its status of what anyone could send, and of unset secrets', async () => {
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

  it('goes on when the parent that started it has gone', async () => {
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

  it('goes on when nobody reads its output any more', async () => {
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

  it('makes a new home from nothing, and takes the token that is there at the next start', async () => {
    const home = homeAt(join(await temporaryFolder(), 'new'))
    const first = await startDaemon({ home })
    assert.match(first.apiToken, /^[\w-]{43}$/)
    assert.equal(await first.stop(), 0)
    const second = await startDaemon({ home })
    assert.equal(second.apiToken, first.apiToken)
    assert.equal(await second.stop(), 0)
  })
})
