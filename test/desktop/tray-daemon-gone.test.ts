import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { fileURLToPath } from 'node:url'
import type { Home } from '../../shared/home/home.ts'
import { startFakeDaemon, statusWith } from '../support/daemon/fake-daemon.ts'
import { type Desktop, describeOnLinux, startDesktop } from '../support/desktop/desktop.ts'
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
    const daemon = await startFakeDaemon(home, statusWith())
    start()
    await untilStatus('Ready')
    await desktop.untilPicture('idle')
    let held: ServerResponse | undefined
    daemon.misbehave = (path, response) => {
      if (path === '/status') held = response
      return path === '/status'
    }
    // Without an event it is asked once it has been silent for 45 s.
    daemon.send({})
    await untilStatus(`The daemon (pid ${process.pid}) does not answer · last seen `)
    await desktop.untilPicture('unreachable')
    daemon.misbehave = undefined
    held?.writeHead(200).end(JSON.stringify(daemon.status))
    await untilStatus('Ready')
    await desktop.untilPicture('idle')
  })

  it('names the program that has the port, and starts the daemon by a click when the port is free', async () => {
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
    await desktop.click('Start daemon')
    await untilStatus(`Ready · 0 webhooks · 127.0.0.1:${port}`)
    await desktop.click('Stop daemon and quit')
    assert.equal(await trays[0]?.ended, 0)
  })
})
