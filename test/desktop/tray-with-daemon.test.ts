import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readDaemonFile } from '../../shared/client/discovery.ts'
import type { Home } from '../../shared/home/home.ts'
import { type RunningDaemon, startDaemon } from '../support/daemon/daemon.ts'
import { type Desktop, describeOnLinux, startDesktop } from '../support/desktop/desktop.ts'
import { temporaryHome } from '../support/temporary.ts'
import { type RunningTray, startTray } from '../support/desktop/tray.ts'

const webhooks = `webhooks:
  - path: /shown
    agent: echo
    prompt_template: "push by {{event.sender}}"
    deliver_to: notify:desktop
  - path: /not-shown
    agent: echo
    prompt_template: "push by {{event.sender}}"
    deliver_to: log
`

describeOnLinux('the tray with the real daemon', () => {
  let desktop: Desktop
  let home: Home
  let tray: RunningTray | undefined

  const untilStatus = async (beginning: string) =>
    desktop.untilMenu(([first]) => first?.label.startsWith(beginning) ?? false)
  const post = async (url: string, path: string, sender: string) => {
    const response = await fetch(`${url}/webhook${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ sender }),
    })
    assert.equal(response.status, 202)
  }

  beforeEach(async () => {
    desktop = await startDesktop()
    home = await temporaryHome({ webhooks })
  })
  afterEach(async () => {
    await tray?.stop()
    await desktop.stop()
  })

  it('shows answers, also of events during a lost connection', async () => {
    let daemon: RunningDaemon = await startDaemon({ home })
    tray = startTray(home, desktop.env)
    await untilStatus('Ready · 2 webhooks')
    await desktop.click('✓ Notifications')
    await desktop.untilMenu((rows) => rows.some(({ label }) => label === '\u2003 Notifications'))
    await post(daemon.url, '/not-shown', 'nobody')
    await post(daemon.url, '/shown', 'alice & bob')
    assert.deepEqual(await desktop.untilNotes(1), [
      { app: 'Doorward', title: 'Doorward · /shown', body: 'push by alice &amp; bob' },
    ])
    await desktop.untilMenu((rows) =>
      (rows.find(({ label }) => label === 'Recent events')?.rows[0]?.label ?? '').endsWith(
        '✓ /shown: push by alice & bob',
      ),
    )

    const ended = once(daemon.process, 'exit')
    daemon.process.kill('SIGKILL')
    await ended
    await untilStatus('Daemon not running')
    daemon = await startDaemon({ home })
    await post(daemon.url, '/shown', 'carol')
    assert.equal((await desktop.untilNotes(2))[1]?.body, 'push by carol')
    await untilStatus('Ready')
    await daemon.stop()
    await untilStatus('Daemon not running')
  })

  it('starts the daemon when none runs, and stops it by a click', async () => {
    tray = startTray(home, { ...desktop.env, DOORWARD_PORT: '0' })
    await untilStatus('Ready · 2 webhooks')
    assert.ok(await readDaemonFile(home))
    await desktop.click('Stop daemon and quit')
    assert.equal(await tray.ended, 0)
  })

  it('says why the daemon did not start', async () => {
    await writeFile(join(home.config, 'agents.yaml'), 'agents: [')
    tray = startTray(home, { ...desktop.env, DOORWARD_PORT: '0' })
    await untilStatus('Daemon did not start: config/agents.yaml:1:')
  })
})
