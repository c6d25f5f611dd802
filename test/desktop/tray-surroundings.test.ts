import assert from 'node:assert/strict'
import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Home } from '../../shared/home/home.ts'
import {
  type Desktop,
  describeOnLinux,
  describeWithBothPrograms,
  startDesktop,
} from '../support/desktop/desktop.ts'
import { startFakeDaemon, statusWith } from '../support/daemon/fake-daemon.ts'
import { temporaryFolder, temporaryHome } from '../support/temporary.ts'
import { type RunningTray, startTray } from '../support/desktop/tray.ts'

const programOf = async (desktop: Desktop): Promise<string> =>
  readFile(`/proc/${await desktop.iconProcess()}/cmdline`, 'utf8')

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

  it('shows the icon by its own program when the library is missing', async () => {
    tray = startTray(home, await withoutLibrary())
    await untilReady()
    assert.match(await programOf(desktop), /sni\/main\.js/)
    assert.equal(tray.stderr(), '')
  })

  it('names the packages when its own program cannot show it either', async () => {
    const { DBUS_SESSION_BUS_ADDRESS: _, ...env } = await withoutLibrary()
    tray = startTray(home, env)
    assert.equal(await tray.ended, 1)
    assert.match(
      tray.stderr(),
      /needs the library \S*libappindicator3\.so\.1\nhint: Debian, Ubuntu: /,
    )
  })

  it('shows the icon by its own program when the display is of a session that ended', async () => {
    tray = startTray(home, { ...desktop.env, DISPLAY: ':54321' })
    await untilReady()
    assert.match(await programOf(desktop), /sni\/main\.js/)
  })

  it('uses the program that was asked for', async () => {
    tray = startTray(home, { ...desktop.env, DOORWARD_TRAY_PROGRAM: 'own' })
    await untilReady()
    assert.match(await programOf(desktop), /sni\/main\.js/)
    await tray.stop()
    tray = startTray(home, { ...(await withoutLibrary()), DOORWARD_TRAY_PROGRAM: 'packaged' })
    assert.equal(await tray.ended, 1)
    assert.match(tray.stderr(), /needs the library/)
  })
})

describeWithBothPrograms('the tray in a home from which nothing may be run', (program) => {
  let desktop: Desktop
  let home: Home
  let tray: RunningTray

  beforeEach(async () => {
    desktop = await startDesktop({ display: program === 'packaged' })
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

  it('runs the program from the folder of the session', async () => {
    tray = startThere(desktop.env)
    await desktop.untilMenu(([first]) => first?.label.startsWith('Ready') ?? false)
    const runtime = desktop.env['XDG_RUNTIME_DIR'] ?? ''
    const [folder = ''] = await readdir(runtime)
    assert.match(folder, /^doorward-tray-[0-9a-f]{12}$/)
    if (program === 'packaged')
      assert.ok((await programOf(desktop)).startsWith(join(runtime, folder)))
    assert.equal(tray.stderr(), '')
  })

  it('says so where there is no other private folder', async () => {
    const shared = await temporaryFolder()
    await mkdir(join(shared, 'all'), { mode: 0o755 })
    for (const runtime of ['', join(shared, 'all')]) {
      tray = startThere({ ...desktop.env, XDG_RUNTIME_DIR: runtime })
      assert.equal(await tray.ended, 1)
      assert.match(tray.stderr(), /may not be run \(EACCES\)\nhint: .*noexec/)
    }
  })
})
