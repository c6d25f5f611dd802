import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Home } from '../../shared/home/home.ts'
import { type Desktop, describeOnLinux, startDesktop } from '../support/desktop/desktop.ts'
import { startFakeDaemon, statusWith } from '../support/daemon/fake-daemon.ts'
import { temporaryFolder, temporaryHome } from '../support/temporary.ts'
import { type RunningTray, startTray } from '../support/desktop/tray.ts'

describeOnLinux('the tray where the packaged program cannot run', () => {
  let desktop: Desktop
  let home: Home
  let tray: RunningTray | undefined

  beforeEach(async () => {
    desktop = await startDesktop()
    home = await temporaryHome()
    await startFakeDaemon(home, statusWith())
  })
  afterEach(async () => {
    await tray?.stop()
    await desktop.stop()
  })
  const untilReady = async () =>
    desktop.untilMenu(([first]) => first?.label.startsWith('Ready') ?? false)
  /** The loader finds this invalid library first. */
  const withoutLibrary = async (): Promise<Record<string, string>> => {
    const folder = await temporaryFolder()
    await writeFile(join(folder, 'libappindicator3.so.1'), '')
    return { ...desktop.env, LD_LIBRARY_PATH: folder }
  }

  it('shows the icon itself when the library is missing', async () => {
    tray = startTray(home, await withoutLibrary())
    await untilReady()
    assert.equal(await desktop.iconProcess(), tray.process.pid)
    assert.equal(tray.stderr(), '')
  })

  it('names the packages when it cannot show the icon itself either', async () => {
    const { DBUS_SESSION_BUS_ADDRESS: _, ...env } = await withoutLibrary()
    tray = startTray(home, env)
    assert.equal(await tray.ended, 1)
    assert.match(
      tray.stderr(),
      /needs the library \S*libappindicator3\.so\.1\nhint: Debian, Ubuntu: /,
    )
  })

  it('shows the icon itself when the display is of a session that ended', async () => {
    tray = startTray(home, { ...desktop.env, DISPLAY: ':54321' })
    await untilReady()
    assert.equal(await desktop.iconProcess(), tray.process.pid)
  })

  it('uses the program that was asked for', async () => {
    tray = startTray(home, { ...desktop.env, DOORWARD_TRAY_PROGRAM: 'own' })
    await untilReady()
    assert.equal(await desktop.iconProcess(), tray.process.pid)
    await tray.stop()
    tray = startTray(home, { ...(await withoutLibrary()), DOORWARD_TRAY_PROGRAM: 'packaged' })
    assert.equal(await tray.ended, 1)
    assert.match(tray.stderr(), /needs the library/)
  })
})

describeOnLinux('the tray in a home from which nothing may be run', () => {
  let desktop: Desktop
  let home: Home
  let tray: RunningTray

  beforeEach(async () => {
    desktop = await startDesktop()
    home = await temporaryHome()
    await startFakeDaemon(home, statusWith())
  })
  afterEach(async () => {
    await tray.stop()
    await desktop.stop()
  })
  /** The home is mounted noexec, for the tray alone. */
  const startThere = (env: Record<string, string>): RunningTray => {
    const user = process.getuid?.() === 0 ? [] : ['--map-current-user', '--keep-caps']
    const mount = 'mount --bind "$0" "$0" && mount -o remount,bind,noexec "$0" && exec "$@"'
    const through = ['unshare', '--mount', ...user, 'sh', '-c', mount, home.root]
    return startTray(home, env, undefined, through)
  }

  it('shows the icon itself', async () => {
    tray = startThere(desktop.env)
    await desktop.untilMenu(([first]) => first?.label.startsWith('Ready') ?? false)
    assert.equal(tray.stderr(), '')
  })

  it('says so where there is no session bus', async () => {
    const { DBUS_SESSION_BUS_ADDRESS: _, ...env } = desktop.env
    tray = startThere(env)
    assert.equal(await tray.ended, 1)
    assert.match(tray.stderr(), /may not be run \(EACCES\)\nhint: .*noexec/)
  })
})
