import assert from 'node:assert/strict'
import type { Home } from '../../shared/home/home.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { Bus } from '../../tray/dbus/bus.ts'
import { waitForHost, watchHost } from '../../tray/icon/panel-host.ts'
import {
  type Desktop,
  type DesktopOptions,
  describeWithBothPrograms,
  startDesktop,
} from '../support/desktop/desktop.ts'
import { startFakeDaemon, statusWith } from '../support/daemon/fake-daemon.ts'
import { temporaryHome } from '../support/temporary.ts'
import { type RunningTray, startTray } from '../support/desktop/tray.ts'
import { playXTray } from '../support/desktop/x-tray.ts'

describeWithBothPrograms('a panel that shows the icon', (program) => {
  let desktop: Desktop
  let home: Home
  let tray: RunningTray | undefined

  const startWith = async (options: DesktopOptions) => {
    desktop = await startDesktop({ display: program === 'packaged', ...options })
    home = await temporaryHome()
    await startFakeDaemon(home, statusWith())
  }
  afterEach(async () => {
    await tray?.stop()
    tray = undefined
    await desktop.stop()
  })
  const untilReady = async () =>
    desktop.untilMenu(([first]) => first?.label.startsWith('Ready') ?? false)
  /** What is found in this time, and whether it had to be waited for. */
  const look = async (waitMs: number) => {
    const bus = await Bus.connect(desktop.env)
    let waited = false
    const found = await waitForHost(bus, {
      env: desktop.env,
      program,
      waitMs,
      onWaiting: () => (waited = true),
      signal: new AbortController().signal,
    }).finally(() => bus.close())
    return { found, waited }
  }

  it('may come late', async () => {
    await startWith({ panel: 'absent' })
    tray = startTray(home, desktop.env)
    await tray.untilSaid('waiting for a panel')
    await desktop.setPanel('there')
    await untilReady()
    await desktop.click('Quit tray')
    assert.equal(await tray.ended, 0)
  })

  it('may be restarted', async () => {
    await startWith({})
    tray = startTray(home, desktop.env)
    await untilReady()
    const before = desktop.registrations()
    await desktop.setPanel('absent')
    await desktop.setPanel('there')
    await desktop.untilMenu(() => desktop.registrations() > before)
    await untilReady()
    assert.equal(tray.stderr(), '')
  })

  it('is required after a while, and the error says what to do', async () => {
    await startWith({ panel: 'absent' })
    const watch = async (env: NodeJS.ProcessEnv) =>
      watchHost({
        env: { ...desktop.env, ...env },
        program,
        waitMs: 50,
        onWaiting: () => undefined,
        signal: new AbortController().signal,
      })
    await assert.rejects(
      watch({}),
      (error) => error instanceof DoorwardError && error.code === 'tray-no-host',
    )
    await assert.rejects(
      watch({ XDG_CURRENT_DESKTOP: 'ubuntu:GNOME' }),
      (error) =>
        error instanceof DoorwardError &&
        /GNOME shows no tray icons/.test(error.message) &&
        /gnome-shell-extension-appindicator .*doorward tray --wait/.test(error.hint ?? ''),
    )
  })

  it('is more than the list of icons', async () => {
    await startWith({ panel: 'watcher-only' })
    assert.deepEqual(await look(50), { found: false, waited: true })
    const looking = look(10_000)
    await desktop.setPanel('there')
    assert.equal((await looking).found, true)
  })

  it('need not be waited for when it is there', async () => {
    await startWith({})
    assert.deepEqual(await look(0), { found: true, waited: false })
    assert.deepEqual(await look(Infinity), { found: true, waited: false })
  })

  it('is searched again when the session bus dies', async () => {
    await startWith({})
    tray = startTray(home, desktop.env)
    await untilReady()
    await desktop.endBus()
    if (program === 'own') {
      assert.equal(await tray.ended, 1)
      assert.match(tray.stderr(), /no session bus/)
    } else await tray.untilSaid('waiting for a panel')
  })

  if (program === 'packaged')
    it('may be one of the X server', async () => {
      await startWith({ panel: 'absent' })
      assert.equal((await look(0)).found, false)
      const leave = await playXTray(desktop.env['DISPLAY'] ?? '')
      assert.deepEqual(await look(0), { found: true, waited: false })
      await leave()
    })
})
