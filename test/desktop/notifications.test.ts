import assert from 'node:assert/strict'
import { once } from 'node:events'
import { access, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import type { EventRecord } from '../../shared/api/api.ts'
import { connect } from '../../shared/client/client.ts'
import type { Home } from '../../shared/home/home.ts'
import { type RunningDaemon, startDaemon } from '../support/daemon/daemon.ts'
import { type Desktop, describeOnLinux, startDesktop } from '../support/desktop/desktop.ts'
import {
  type FakeDaemon,
  eventWith,
  startFakeDaemon,
  statusWith,
} from '../support/daemon/fake-daemon.ts'
import { temporaryFolder, temporaryHome } from '../support/temporary.ts'
import { type RunningTray, startTray } from '../support/desktop/tray.ts'

const webhooks = `webhooks:
  - path: /for-desktop
    agent: echo
    prompt_template: "push by {{event.sender}}"
    deliver_to: notify:desktop
  - path: /for-nobody
    agent: echo
    prompt_template: "push by {{event.sender}}"
  - path: /for-file
    agent: picky
    prompt_template: "push by {{event.sender}}"
`
const agents = (script: string) =>
  `agents:
  echo: { kind: echo }
  picky: { kind: command, command: [node, -e, ${JSON.stringify(script)}] }
`
const fails = 'console.error("no <b>luck</b>"); process.exitCode = 3'

describeOnLinux('notifications with the real daemon', () => {
  let desktop: Desktop
  let home: Home
  let daemon: RunningDaemon
  let tray: RunningTray

  const untilStatus = async (beginning: string) =>
    desktop.untilMenu(([first]) => first?.label.startsWith(beginning) ?? false)
  const post = async (path: string, sender: string) => {
    const response = await fetch(`${daemon.url}/webhook${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ sender }),
    })
    assert.equal(response.status, 202)
  }
  const eventOf = async (webhook: string): Promise<EventRecord | undefined> => {
    const client = await connect(home)
    try {
      const { events } = await client.get<{ events: EventRecord[] }>('/events')
      return events.find((event) => event.webhook === webhook)
    } finally {
      client.close()
    }
  }

  beforeEach(async () => {
    desktop = await startDesktop()
    home = await temporaryHome({ webhooks, agents: agents(fails) })
    daemon = await startDaemon({ home })
    tray = startTray(home, desktop.env)
    await untilStatus('Ready · 3 webhooks')
  })
  afterEach(async () => {
    await tray.stop()
    await daemon.stop()
    await desktop.stop()
  })

  it('show why a run failed, and retry it by a button', async () => {
    await post('/for-file', 'alice')
    const [failed] = await desktop.untilShown(1)
    assert.ok(failed)
    assert.equal(failed.title, 'Doorward · /for-file: failed')
    assert.match(failed.body, /^node exited with code 3: no &lt;b&gt;luck&lt;\/b&gt;$/)
    assert.match(failed.icon, /needs-you@2x\.png$/)
    assert.deepEqual(
      failed.buttons.map(({ label }) => label),
      ['Open', 'Open', 'Retry'],
    )

    await writeFile(join(home.config, 'agents.yaml'), agents('console.log("better")'))
    const client = await connect(home)
    await client.post('/daemon/reload')
    client.close()
    desktop.notifications.press(failed, '1')
    const [, done] = await desktop.untilShown(2)
    assert.equal(done?.title, 'Doorward · /for-file')
    assert.equal(done?.body, 'better')
    const event = await eventOf('/for-file')
    assert.equal(event?.state, 'done')
    assert.equal(event?.attempts, 2)
  })

  it('report a crash of the daemon until it runs again', async () => {
    const ended = once(daemon.process, 'exit')
    daemon.process.kill('SIGKILL')
    await ended
    const [note] = await desktop.untilShown(1)
    assert.equal(note?.title, 'Doorward · the daemon crashed')
    assert.deepEqual(note?.buttons.at(-1), { key: '0', label: 'Start daemon' })
    daemon = await startDaemon({ home })
    await untilStatus('Ready')
    await post('/for-desktop', 'alice')
    await desktop.untilShown(2)
    assert.deepEqual(desktop.notifications.closed, [note?.id])
  })
})

describeOnLinux('a notification', () => {
  it('is shown without a program, so that its text is in no arguments', async () => {
    const desktop = await startDesktop()
    const home = await temporaryHome()
    const daemon = await startFakeDaemon(home, statusWith())
    const folder = await temporaryFolder()
    const proof = join(folder, 'ran')
    await writeFile(join(folder, 'notify-send'), `#!/bin/sh\ntouch ${proof}\n`, { mode: 0o755 })
    const path = `${folder}${delimiter}${desktop.env['PATH']}`
    const tray = startTray(home, { ...desktop.env, PATH: path })
    try {
      await desktop.untilMenu(([first]) => first?.label.startsWith('Ready') ?? false)
      daemon.send(eventWith({ resultPreview: 'for my eyes only' }))
      assert.equal((await desktop.untilShown(1))[0]?.body, 'for my eyes only')
      await assert.rejects(access(proof), { code: 'ENOENT' })
    } finally {
      await tray.stop()
      await desktop.stop()
    }
  })
})

describeOnLinux('notifications in bad conditions', () => {
  let desktop: Desktop
  let daemon: FakeDaemon
  let tray: RunningTray

  const answer = (id: string, more: Partial<EventRecord> = {}) =>
    daemon.send(eventWith({ id, resultPreview: `answer ${id}`, ...more }))
  const untilStatus = async (part: string) =>
    desktop.untilMenu(([first]) => first?.label.includes(part) ?? false)

  beforeEach(async () => {
    desktop = await startDesktop()
    const home = await temporaryHome()
    daemon = await startFakeDaemon(home, statusWith())
    tray = startTray(home, desktop.env)
    await untilStatus('Ready')
  })
  afterEach(async () => {
    await tray.stop()
    await desktop.stop()
  })

  it('say in the menu that there is no service, and appear when there is one', async () => {
    await desktop.notifications.leave()
    answer('1')
    await untilStatus('no notification service')
    assert.equal(tray.stderr().match(/notifications cannot be shown/g)?.length, 1)
    await desktop.notifications.comeBack()
    assert.equal((await desktop.untilShown(1))[0]?.body, 'answer 1')
    await untilStatus('127.0.0.1')
  })

  it('leave the menu working while the service hangs, say so, and do not delay the exit', async () => {
    desktop.notifications.hang()
    for (const id of '12345') answer(id)
    daemon.status = statusWith({ queue: { waiting: 1, running: 0, bytes: 9 } })
    daemon.send({})
    await untilStatus('Working · 1 waiting')
    await untilStatus('127.0.0.1')
    await untilStatus('the notification service hangs').catch(async () =>
      untilStatus('the notification service hangs'),
    )
    await desktop.click('Quit tray')
    assert.equal(await tray.ended, 0)
  })

  it('are closed with the tray, which handles their buttons', async () => {
    answer('1')
    const [shown] = await desktop.untilShown(1)
    await desktop.click('Quit tray')
    assert.equal(await tray.ended, 0)
    assert.deepEqual(desktop.notifications.closed, [shown?.id])
  })
})
