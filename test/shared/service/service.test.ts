import assert from 'node:assert/strict'
import { mkdir, readFile, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { resolveHome } from '../../../shared/home/home.ts'
import { daemonAutostart, checkLoginItems, trayAutostart } from '../../../shared/service/service.ts'
import {
  type ServiceContext,
  stableNodePath,
  stableSearchPath,
} from '../../../shared/service/platform.ts'
import { cliProgram, daemonProgram } from '../../../shared/version.ts'
import { filesIn, temporaryFolder } from '../../support/temporary.ts'

type Way = Partial<Pick<ServiceContext, 'platform' | 'systemd'>>
const ways: readonly (readonly [string, Way, number])[] = [
  // systemd does not look at the folder of this test.
  ['an autostart entry', { platform: 'linux' }, 1],
  ['a unit of systemd', { platform: 'linux', systemd: 252 }, 3],
]

const place = async (way: Way) => {
  const userHome = await temporaryFolder()
  const node = join(userHome, 'node')
  await symlink(process.execPath, node)
  const packageRoot = join(userHome, 'package')
  for (const name of [daemonProgram, 'dist/tray/main.js', cliProgram]) {
    await mkdir(dirname(join(packageRoot, name)), { recursive: true })
    await writeFile(join(packageRoot, name), '')
  }
  const context: ServiceContext = {
    platform: 'linux',
    env: { PATH: '/usr/bin' },
    userHome,
    uid: 1000,
    node,
    packageRoot,
    systemd: undefined,
    ...way,
  }
  const home = resolveHome(join(userHome, 'one home'))
  const readContext = async () => context
  return { home, readContext, context, config: join(userHome, '.config') }
}

const before = { XDG_RUNTIME_DIR: '', DBUS_SESSION_BUS_ADDRESS: '' }

describe('login items', () => {
  // Keeps these units from a systemd that runs on this machine.
  beforeEach(() => {
    for (const name of ['XDG_RUNTIME_DIR', 'DBUS_SESSION_BUS_ADDRESS'] as const) {
      before[name] = process.env[name] ?? ''
      delete process.env[name]
    }
  })
  afterEach(() => {
    for (const [name, value] of Object.entries(before)) if (value) process.env[name] = value
  })

  for (const [what, way, count] of ways) {
    it(`turns the daemon on with ${what}, once, and off without a trace`, async () => {
      const { home, readContext, config } = await place(way)
      const daemon = daemonAutostart(home, readContext)
      assert.equal(await daemon.isOn(), false)
      assert.deepEqual(await daemon.turnOff(), [])
      const written = await daemon.turnOn()
      assert.equal(written.length, count)
      assert.equal(await daemon.isOn(), true)
      assert.deepEqual(await daemon.turnOn(), [])
      assert.equal((await stat(written[0] ?? '')).mode & 0o777, 0o644)
      assert.deepEqual(await checkLoginItems(home, readContext), [])
      assert.deepEqual((await daemon.turnOff()).sort(), written.sort())
      assert.equal(await daemon.isOn(), false)
      assert.deepEqual(await filesIn(config), [])
    })

    it(`leaves a file alone that is not ours: ${what}`, async () => {
      const { home, readContext } = await place(way)
      const daemon = daemonAutostart(home, readContext)
      const [path = ''] = await daemon.turnOn()
      await daemon.turnOff()
      await mkdir(dirname(path), { recursive: true })
      await writeFile(path, 'mine')
      await assert.rejects(daemon.turnOn(), { code: 'login-item-foreign' })
      assert.equal(await daemon.isOn(), false)
      assert.deepEqual(await daemon.turnOff(), [])
      assert.equal(await readFile(path, 'utf8'), 'mine')
      const [problem] = await checkLoginItems(home, readContext)
      assert.equal(problem?.code, 'login-item-foreign')
    })

    it(`reports that Node was moved: ${what}`, async () => {
      const { home, readContext, context } = await place(way)
      await daemonAutostart(home, readContext).turnOn()
      await rm(context.node)
      const [problem] = await checkLoginItems(home, readContext)
      assert.equal(problem?.code, 'login-item-program-missing')
      assert.equal(problem?.hint, 'doorward daemon install')
      assert.ok(problem?.detail.includes(context.node))
    })
  }

  it('reports an item that the user switched off, and switches it on again', async () => {
    const { home, readContext } = await place({ platform: 'linux', systemd: 252 })
    const [unit = '', link = ''] = await daemonAutostart(home, readContext).turnOn()
    await rm(link)
    const tray = trayAutostart(home, readContext)
    const [entry = ''] = await tray.turnOn()
    const text = await readFile(entry, 'utf8')
    await writeFile(entry, `${text}Hidden=true\n`)
    assert.equal(await tray.isOn(), false)
    const problems = await checkLoginItems(home, readContext)
    assert.deepEqual(
      problems.map(({ code, hint }) => [code, hint.split(',')[0]]),
      [
        ['login-item-disabled', 'doorward daemon install'],
        ['login-item-disabled', 'doorward daemon install --tray'],
      ],
    )
    assert.deepEqual(await tray.turnOn(), [entry])
    assert.deepEqual(await daemonAutostart(home, readContext).turnOn(), [link])
    assert.deepEqual(await checkLoginItems(home, readContext), [])
    assert.deepEqual((await readdir(dirname(unit))).length, 3)
  })

  it('refuses the file of another home of the same name, and a link', async () => {
    const { home, readContext } = await place({ platform: 'darwin' })
    const tray = trayAutostart(home, readContext)
    const [path = ''] = await tray.turnOn()
    const text = await readFile(path, 'utf8')
    await writeFile(path, text.replace('one home', 'an other home'))
    await assert.rejects(tray.turnOn(), { code: 'login-item-foreign', message: /another home/ })
    await rm(path)
    await symlink('/dev/null', path)
    await assert.rejects(tray.turnOn(), { code: 'login-item-foreign', message: /symbolic link/ })
    assert.deepEqual(await tray.turnOff(), [])
  })

  it('keeps a PATH without temporary folders, and with the folder of Node', () => {
    const folders = [
      '/a/node_modules/.bin',
      'relative',
      '/usr/bin',
      '/x/_npx/1/bin',
      '/usr/bin',
      '',
    ]
    assert.equal(
      stableSearchPath({ env: { PATH: folders.join(':') }, node: '/opt/node/bin/node' }),
      '/usr/bin:/opt/node/bin',
    )
  })

  it('prefers the link to Node on PATH, which survives an upgrade', async () => {
    // A link in the system's temporary folder is ignored.
    const folder = await temporaryFolder()
    await symlink(process.execPath, join(folder, 'node'))
    assert.equal(stableNodePath({ PATH: folder }, process.execPath), process.execPath)
    const usual = dirname(process.execPath)
    assert.equal(
      stableNodePath({ PATH: `/nowhere:${usual}` }, process.execPath),
      join(usual, 'node'),
    )
  })
})
