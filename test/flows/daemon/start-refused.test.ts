import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { type Home, resolveHome } from '../../../shared/home/home.ts'
import { startDaemon } from '../../support/daemon/daemon.ts'
import { temporaryFolder, temporaryHome } from '../../support/temporary.ts'
import { isClean, posix, startsAndStops, tried, withSecret } from '../../support/daemon/starts.ts'

describe('a daemon whose configuration is invalid', () => {
  it('exits with 78, prints every problem, and leaves no partial files', async () => {
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
      '/webhooks.yaml:2:29 webhooks[0].prompt_template: {{evnt}}: only event, event.<path>, headers.<name>, webhook.path, delivery.id, delivery.received_at can be used (did you mean "event"?)',
      'environment:1:1 DOORWARD_PORT: not a port: write a number from 0 to 65535',
      'hint: fix it, then run: doorward config check',
      '',
    ])
    assert.deepEqual(await readdir(home.run), [])
  })

  it('removes the daemon.json of a killed daemon', async () => {
    const home = await temporaryHome({ agents: 'agents: []\n' })
    await mkdir(home.run, { mode: 0o700 })
    await writeFile(home.daemonJson, '{"pid":1,"url":"http://127.0.0.1:1"}')
    assert.equal((await tried(home)).code, 78)
    assert.deepEqual(await readdir(home.run), [])
  })

  it('exits with 78 for an unknown log level', async () => {
    const home = await temporaryHome()
    const { code, stderr } = await tried(home, { DOORWARD_LOG_LEVEL: 'loud' })
    assert.equal(code, 78)
    assert.match(stderr, /^doorward: DOORWARD_LOG_LEVEL is not a log level\nhint: set it to one of/)
    await isClean(home)
  })
})

describe('a daemon whose port is in use', () => {
  it('exits with 1 and names the other program and a way out', async () => {
    const server = createServer((socket) => socket.end('hello\r\n'))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const home = await temporaryHome({ env: withSecret })
    const { code, stderr } = await tried(home, { DOORWARD_PORT: String(port) })
    server.close()
    assert.equal(code, 1)
    const holder =
      process.platform === 'win32' ? 'another program' : String.raw`[^,()]+ \(pid ${process.pid}\)`
    assert.match(
      stderr,
      new RegExp(
        `^doorward: port ${port} is taken by ${holder}\n` +
          `hint: stop it, or choose another port: server.port in gateway.yaml, or DOORWARD_PORT=${port + 1}\n$`,
      ),
    )
    await isClean(home)
    await startsAndStops(home)
  })

  it('recognises the daemon of another home, even of a copy of this one', async () => {
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
  it('exits with 78 when the home, or a folder of it, is a file', async () => {
    const file = join(await temporaryFolder(), 'file')
    await writeFile(file, '')
    const home = await temporaryHome()
    await writeFile(home.run, '')
    for (const [at, message] of [
      [resolveHome(file), 'a file of that name already exists'],
      [resolveHome(join(file, 'below')), 'a part of the path is a file, not a folder'],
      [home, 'a file of that name already exists'],
    ] as const) {
      const { code, stderr } = await tried(at)
      assert.equal(code, 78)
      assert.match(stderr, new RegExp(`^doorward: cannot use the folder .*: ${message}\nhint: `))
    }
  })

  it('exits with 78 and the chmod that fixes it when others can read secrets', async () => {
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

  it('exits with 78 when .env is a link', async () => {
    if (!posix) return
    const home = await temporaryHome({ env: withSecret })
    await rename(home.env, `${home.env}.real`)
    await symlink(`${home.env}.real`, home.env)
    const { code, stderr } = await tried(home)
    assert.equal(code, 78)
    assert.match(stderr, /\.env is a symbolic link\nhint: replace it with the file itself/)
    await rm(home.env)
    await rename(`${home.env}.real`, home.env)
    await startsAndStops(home)
  })
})
