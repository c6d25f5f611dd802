import assert from 'node:assert/strict'
import { type Desktop, describeOnLinux, startDesktop } from '../support/desktop/desktop.ts'
import { examined } from '../support/daemon/doctor.ts'
import { temporaryHome } from '../support/temporary.ts'
import { startFakeDaemon, statusWith } from '../support/daemon/fake-daemon.ts'
import { playXTray } from '../support/desktop/x-tray.ts'
import { startTray } from '../support/desktop/tray.ts'

describeOnLinux('doctor in a desktop session', () => {
  let desktop: Desktop
  afterEach(() => desktop.stop())

  const look = async () => {
    const { of } = await examined(await temporaryHome(), desktop.env)
    return of('tray').map(({ name, status }) => `${name} ${status}`)
  }

  it('finds the panel and the service that shows notifications', async () => {
    desktop = await startDesktop()
    assert.deepEqual(await look(), [
      'program ok',
      'running skipped',
      'library ok',
      'host ok',
      'notifications ok',
    ])
  })

  it('says that both are missing', async () => {
    desktop = await startDesktop({ panel: 'absent', notifications: false })
    assert.deepEqual((await look()).slice(-2), ['host warning', 'notifications warning'])
  })

  it('does not count a list of icons without a panel', async () => {
    desktop = await startDesktop({ panel: 'watcher-only' })
    assert.equal((await look()).at(-2), 'host warning')
  })

  it('finds an older panel, of the X server', async () => {
    desktop = await startDesktop({ panel: 'absent' })
    const leave = await playXTray(desktop.env['DISPLAY'] ?? '')
    assert.equal((await look()).at(-2), 'host ok')
    await leave()
  })

  it('finds the tray of this home', async () => {
    desktop = await startDesktop()
    const home = await temporaryHome()
    await startFakeDaemon(home, statusWith())
    const tray = startTray(home, desktop.env)
    await desktop.iconProcess()
    const { of } = await examined(home, desktop.env)
    assert.match(of('tray', 'running')[0]?.detail ?? '', /^pid \d+$/)
    await tray.stop()
  })
})
