import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { resolveHome } from '../../shared/home/home.ts'
import { daemonItems, type LoginItem, trayItem, writeItem } from '../../shared/service/items.ts'
import type { ServiceContext } from '../../shared/service/platform.ts'
import { describeOnLinux, startDesktop } from '../support/desktop/desktop.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { startUserManager } from '../support/desktop/user-manager.ts'

const nasty = `a "b" 'c' %h %% $HOME $$ \`id\` \\n é;&<x> --`

/** A home, a Node and an installation below a folder of this name; they are there. */
const installedBelow = async (
  name: string,
): Promise<[ServiceContext, ReturnType<typeof resolveHome>]> => {
  const userHome = join(await temporaryFolder(), name)
  const packageRoot = join(userHome, 'package')
  for (const folder of ['dist/tray', 'dist/bin', 'assets/icons'])
    await mkdir(join(packageRoot, folder), { recursive: true })
  const node = join(userHome, 'node')
  await symlink(process.execPath, node)
  const root = join(userHome, '.doorward')
  await mkdir(join(root, 'logs'), { recursive: true })
  const env = { PATH: `${join(userHome, 'bin')}:/usr/bin` }
  return [
    { platform: 'linux', env, userHome, uid: 1000, node, packageRoot, systemd: 252 },
    resolveHome(root),
  ]
}

const check = async (program: string, args: string[], cwd: string): Promise<string> =>
  new Promise((resolve) =>
    execFile(
      program,
      args,
      { cwd, env: { PATH: process.env['PATH'] ?? '', HOME: cwd, XDG_RUNTIME_DIR: cwd } },
      (error, out, err) => resolve(`${error ? `${error.code}: ` : ''}${out}${err}`),
    ),
  )

describeOnLinux('login items on Linux', () => {
  for (const name of ['plain', nasty])
    it(`writes units that pass systemd-analyze, below ${JSON.stringify(name)}`, async () => {
      const [context, home] = await installedBelow(name)
      for (const uid of [0, 1000]) {
        const items = daemonItems(home, { ...context, uid }, 30_000)
        // Its own folder has a plain name: the one that verify is given would be taken for a pattern.
        const folder = await temporaryFolder()
        const paths = items.map((item) => join(folder, item.path.split('/').at(-1) ?? ''))
        for (const [index, { text }] of items.entries()) await writeFile(paths[index] ?? '', text)
        assert.equal(await check('systemd-analyze', ['--user', 'verify', ...paths], folder), '')
      }
    })

  for (const name of ['plain', nasty])
    it(`writes desktop entries that are valid, below ${JSON.stringify(name)}`, async () => {
      const [context, home] = await installedBelow(name)
      const { systemd: _, ...others } = context
      const items: LoginItem[] = [
        trayItem(home, context),
        ...daemonItems(home, { ...others, systemd: undefined }, 30_000),
      ]
      assert.equal(items.length, 2)
      const folder = await temporaryFolder()
      for (const item of items) {
        assert.match(item.path, /\/autostart\/doorward-(?:tray|daemon)\.desktop$/)
        await writeItem(item, home)
        await writeFile(join(folder, 'one.desktop'), item.text)
        assert.equal(await check('desktop-file-validate', ['one.desktop'], folder), '')
      }
    })

  it('is installed, started, supervised, restarted and removed by a real systemd', async () => {
    const manager = await startUserManager(`home ${nasty}`)
    try {
      const config = join(manager.home, '.doorward', 'config')
      await manager.doorward('init')
      const gateway = 'server: { port: 0 }\\noauth: { callback_port: 0 }\\n'
      await manager.run('sh', '-c', `printf '${gateway}' >"$0/gateway.yaml"`, config)

      const installed = await manager.doorward('daemon', 'install', '--json')
      assert.equal(installed.code, 0, installed.stderr)
      const { pid, by, written } = JSON.parse(installed.stdout) as {
        pid: number
        by: string
        written: string[]
      }
      assert.equal(by, 'systemd')
      assert.equal(written.length, 3)
      const isEnabled = await manager.systemctl('is-enabled', 'doorward')
      assert.equal(isEnabled.stdout, 'enabled\n')
      assert.equal(await manager.until('doorward', 'MainPID', /^\d+$/), String(pid))
      const again = await manager.doorward('daemon', 'install', '--json')
      const second = JSON.parse(again.stdout) as { pid: number; written: string[] }
      assert.deepEqual([second.written, second.pid], [[], pid])

      // The process that the unit watches becomes another one, and the first may end.
      const other = await manager.run('sh', '-c', 'kill -9 "$0"', String(pid))
      assert.equal(other.code, 0, other.stderr)
      const successor = await manager.until('doorward', 'MainPID', new RegExp(`^(?!0$|${pid}$)`))
      assert.equal(await manager.until('doorward', 'NRestarts', /./), '1')
      // The command returns when the daemon answers.
      assert.equal((await manager.doorward('daemon', 'start')).code, 0)

      const restarted = await manager.doorward('daemon', 'restart', '--json')
      assert.equal(restarted.code, 0, restarted.stderr)
      const third = JSON.parse(restarted.stdout) as { pid: number }
      assert.notEqual(String(third.pid), successor)
      // The first process may end: systemd watches the other one.
      await manager.until('doorward', 'MainPID', new RegExp(`^${third.pid}$`))
      assert.equal(await manager.until('doorward', 'ActiveState', /./), 'active')

      const removed = await manager.doorward('daemon', 'uninstall', '--json')
      assert.equal(removed.code, 0, removed.stderr)
      assert.equal((JSON.parse(removed.stdout) as { removed: string[] }).removed.length, 3)
      const left = await manager.run('find', join(manager.home, '.config'), '-not', '-type', 'd')
      assert.equal(left.stdout, '')
      const state = await manager.doorward('daemon', 'status')
      assert.equal(state.code, 3)
      const nothing = await manager.doorward('daemon', 'uninstall')
      assert.deepEqual([nothing.code, nothing.stdout], [0, 'nothing was installed\n'])
    } finally {
      await manager.stop()
    }
  }).timeout(90_000)

  it('makes a successor the main process of systemd', async () => {
    const manager = await startUserManager('home')
    try {
      const units = join(manager.home, '.config', 'systemd', 'user')
      const items = daemonItems(
        resolveHome(join(manager.home, '.doorward')),
        {
          platform: 'linux',
          env: {},
          userHome: manager.home,
          uid: 0,
          node: process.execPath,
          packageRoot: manager.home,
          systemd: 252,
        },
        30_000,
      )
      // The real unit, with a program that immediately starts a successor, records both and exits.
      const mainProcess = new URL('../../daemon/restart/supervisor.js', import.meta.url)
      const folder = await temporaryFolder()
      const noted = join(folder, 'noted')
      const script = join(folder, 'hands-over.mjs')
      await writeFile(
        script,
        `import { spawn } from 'node:child_process'
        import { writeFileSync } from 'node:fs'
        import { nameMainProcess } from ${JSON.stringify(mainProcess.href)}
        const { pid } = spawn("sleep", ["1000"], { stdio: 'ignore', detached: true })
        if (await nameMainProcess(pid)) writeFileSync(process.argv[2], process.pid + ' ' + pid + '\\n')
        process.exit()`,
      )
      await manager.run('mkdir', '-p', units, join(manager.home, '.doorward', 'logs'))
      const text = items[0].text.replace(
        /^ExecStart=.*$/m,
        `ExecStart=${process.execPath} ${script} ${noted}`,
      )
      await manager.run('sh', '-c', 'printf %s "$1" >"$0"', items[0].path, text)
      await manager.systemctl('daemon-reload')
      assert.equal((await manager.systemctl('start', 'doorward')).code, 0)
      const untilFirstEnded = `until [ -s "$0" ]; do sleep 0.05; done; read first second <"$0"
        while [ -d "/proc/$first" ]; do sleep 0.05; done; echo "$second"`
      const second = await manager.run('sh', '-c', untilFirstEnded, noted)
      assert.match(second.stdout, /^\d+\n$/)
      assert.equal(await manager.until('doorward', 'MainPID', /./), second.stdout.trim())
      assert.equal(await manager.until('doorward', 'ActiveState', /./), 'active')
      await manager.systemctl('stop', 'doorward')
    } finally {
      await manager.stop()
    }
  }).timeout(90_000)

  it('notifies the user when the daemon keeps failing, and stops starting it', async () => {
    const desktop = await startDesktop()
    const manager = await startUserManager('home')
    // Where Debian's dbus-user-session is installed, the manager would name a bus of its own.
    const bus = `DBUS_SESSION_BUS_ADDRESS=${desktop.env['DBUS_SESSION_BUS_ADDRESS']}`
    await manager.systemctl('set-environment', bus)
    const holder = createServer().listen(0, '127.0.0.1')
    try {
      await once(holder, 'listening')
      const config = join(manager.home, '.doorward', 'config')
      await manager.doorward('init')
      await manager.run('sh', '-c', 'echo "webhooks: 1" >"$0/webhooks.yaml"', config)
      const installed = await manager.doorward('daemon', 'install')
      assert.equal(installed.code, 1)
      assert.match(installed.stderr, /webhooks: must be a list/)
      const [note] = await desktop.untilNotes(1)
      assert.deepEqual(note, {
        app: 'Doorward',
        title: 'Doorward has stopped',
        body: 'It could not be kept running. To see why: doorward daemon start',
      })
      assert.equal(await manager.until('doorward', 'ActiveState', /./), 'failed')
      assert.equal(await manager.until('doorward', 'NRestarts', /./), '0')

      // A fault of another kind is tried again, a few times.
      const { port } = holder.address() as AddressInfo
      const gateway = `server: { port: ${port} }`
      await manager.run('sh', '-c', `echo "${gateway}" >"$0/gateway.yaml"`, config)
      await manager.run('sh', '-c', 'echo "webhooks: []" >"$0/webhooks.yaml"', config)
      const started = await manager.doorward('daemon', 'start')
      assert.equal(started.code, 1)
      assert.match(started.stderr, /port/)
      await manager.until('doorward', 'ActiveState', /^failed$/)
      assert.ok(Number(await manager.until('doorward', 'NRestarts', /./)) >= 5)
      await desktop.untilNotes(2)
    } finally {
      holder.close()
      await manager.stop()
      await desktop.stop()
    }
  }).timeout(90_000)
})
