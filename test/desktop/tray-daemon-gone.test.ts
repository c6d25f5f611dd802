import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Home } from '../../shared/home/home.ts'
import { version } from '../../shared/version.ts'
import { startDaemon } from '../support/daemon/daemon.ts'
import { type Desktop, describeOnLinux, startDesktop } from '../support/desktop/desktop.ts'
import { startFakeDaemon, statusWith } from '../support/daemon/fake-daemon.ts'
import { temporaryHome } from '../support/temporary.ts'
import { type RunningTray, startTray } from '../support/desktop/tray.ts'

const fixture = (name: string) =>
  fileURLToPath(new URL(`../../../test/fixtures/${name}`, import.meta.url))

describeOnLinux('the tray with a daemon in trouble', () => {
  let desktop: Desktop
  let home: Home
  let trays: RunningTray[]
  let others: ChildProcess[]

  const start = (more: Record<string, string> = {}): RunningTray => {
    const tray = startTray(home, { ...desktop.env, DOORWARD_PORT: '0', ...more })
    trays.push(tray)
    return tray
  }
  const untilStatus = async (beginning: string) => {
    const rows = await desktop.untilMenu(([first]) => first?.label.startsWith(beginning) ?? false)
    return rows[0]?.label ?? ''
  }

  beforeEach(async () => {
    trays = []
    others = []
    desktop = await startDesktop()
    home = await temporaryHome()
  })
  afterEach(async () => {
    for (const other of others) other.kill('SIGKILL')
    await Promise.all(trays.map((tray) => tray.stop()))
    await desktop.stop()
  })

  it('says that it hangs, with another icon, and shows it again when it answers', async () => {
    const daemon = await startDaemon({ home })
    start()
    await untilStatus('Ready')
    await desktop.untilPicture('idle')
    daemon.process.kill('SIGSTOP')
    await untilStatus(`The daemon (pid ${daemon.process.pid}) does not answer · last seen `)
    await desktop.untilPicture('unreachable')
    daemon.process.kill('SIGCONT')
    await untilStatus('Ready')
    await desktop.untilPicture('idle')
    await daemon.stop()
  })

  it('names the program that has the port, and starts the daemon when the port is free', async () => {
    const other = spawn(process.execPath, [fixture('holds-port.mjs'), '0'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    others.push(other)
    const [said] = (await once(other.stdout, 'data')) as [Buffer]
    const port = /\d+/.exec(said.toString())?.[0] ?? ''
    start({ DOORWARD_PORT: port })
    const row = await untilStatus(`Daemon did not start: port ${port} is taken by `)
    assert.match(row, new RegExp(`by node holds-port\\.mjs \\(pid ${other.pid}\\)$`))
    const ended = once(other, 'exit')
    other.kill('SIGKILL')
    await ended
    await untilStatus(`Ready · 0 webhooks · 127.0.0.1:${port}`)
    await desktop.click('Stop daemon and quit')
    assert.equal(await trays[0]?.ended, 0)
  })

  it('shows a daemon of another version, and says so', async () => {
    const daemon = await startFakeDaemon(home, {
      ...statusWith({ version: '99.0.0' }),
      providers: [{ provider: 'github', status: 'limited', account: { id: '1', name: 'ada' } }],
      regions: ['eu'],
    })
    start()
    await untilStatus('Ready')
    // The rows of a menu change one after the other.
    const [, need] = await desktop.untilMenu(
      ([, , accounts]) =>
        accounts?.label === 'Accounts' &&
        accounts.rows[0]?.label.startsWith('✓ GitHub · ada') === true,
    )
    assert.equal(
      need?.label,
      `! The daemon is version 99.0.0, the tray ${version}: restart the tray`,
    )
    daemon.status = statusWith()
    daemon.send({})
    await desktop.untilMenu((rows) => rows[1]?.label === 'Accounts')
  })

  it('uses the steady clock when the wall clock is set hours forward and back', async () => {
    const working = statusWith({ queue: { waiting: 0, running: 1, bytes: 1 } })
    const daemon = await startFakeDaemon(home, statusWith())
    const tray = start({ NODE_OPTIONS: `--import=${fixture('set-clock.mjs')}` })
    const setClock = async () => {
      const set = once(tray.process.stderr ?? tray.process, 'data')
      tray.process.kill('SIGUSR2')
      await set
    }
    await untilStatus('Ready')
    for (let times = 0; times < 2; times += 1) {
      daemon.status = working
      daemon.send({})
      await untilStatus('Working')
      await desktop.untilPicture('running')
      await setClock()
      daemon.status = statusWith()
      daemon.send({})
      await untilStatus('Ready')
      await desktop.untilPicture('idle')
    }
    await daemon.die()
    await untilStatus('Daemon not running · last seen ')
    await startFakeDaemon(home, statusWith())
    await untilStatus('Ready')
  })
})
