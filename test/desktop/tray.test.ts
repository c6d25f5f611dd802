import assert from 'node:assert/strict'
import { mkdir, readFile, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Home } from '../../shared/home/home.ts'
import {
  type Desktop,
  type ShownRow,
  describeWithBothPrograms,
  labelsOf,
  startDesktop,
} from '../support/desktop/desktop.ts'
import { eventWith, startFakeDaemon, statusWith } from '../support/daemon/fake-daemon.ts'
import { temporaryFolder, temporaryHome } from '../support/temporary.ts'
import { type RunningTray, startTray } from '../support/desktop/tray.ts'

const answer = (id: string, text: string) =>
  eventWith({
    id,
    resultPreview: text,
    targets: [{ target: 'notify:desktop', state: 'done', attempts: 1 }],
  })

describeWithBothPrograms('the tray on a desktop', (program) => {
  let desktop: Desktop
  let home: Home
  let trays: RunningTray[]

  const start = (env = desktop.env, cwd?: string): RunningTray => {
    const tray = startTray(home, env, cwd)
    trays.push(tray)
    return tray
  }
  const untilStatus = async (beginning: string) =>
    desktop.untilMenu(([first]) => first?.label.startsWith(beginning) ?? false)

  beforeEach(async () => {
    trays = []
    desktop = await startDesktop({ display: program === 'packaged' })
    home = await temporaryHome()
  })
  afterEach(async () => {
    await Promise.all(trays.map((tray) => tray.stop()))
    await desktop.stop()
  })

  it('shows the status of the daemon and its changes', async () => {
    const daemon = await startFakeDaemon(home, statusWith({ events: [answer('a', 'run_done')] }))
    start()
    // The rows of a menu change one after the other.
    const rows = await desktop.untilMenu(
      (all) =>
        all[0]?.label.startsWith('Ready') === true &&
        all.some(({ label }) => label === 'Restart daemon'),
    )
    assert.deepEqual(labelsOf(rows), [
      'Ready · 0 webhooks · 127.0.0.1:18789',
      'Accounts',
      'Recent events',
      '✓ Notifications',
      '\u2003 Start at login',
      'Open configuration',
      'Open logs',
      'Copy diagnostics',
      'Restart daemon',
      'Quit tray',
      'Stop daemon and quit',
    ])
    const recentIn = (all: readonly ShownRow[]) =>
      all.find(({ label }) => label === 'Recent events')?.rows ?? []
    // The rows of a menu change one after the other.
    const recent = recentIn(await desktop.untilMenu((all) => recentIn(all)[0]?.enabled === true))
    assert.equal(recent.length, 10)
    assert.match(recent[0]?.label ?? '', /✓ \/github: run_done$/)
    assert.equal(recent[0]?.enabled, true)
    assert.equal(recent[9]?.enabled, false)

    await desktop.untilPicture('idle')
    daemon.status = statusWith({ problems: [{ code: 'x', detail: 'a secret is unset', hint: '' }] })
    daemon.send({})
    const needy = await desktop.untilMenu((now) => now[1]?.label === '! A secret is unset')
    assert.deepEqual([needy[0]?.enabled, needy[1]?.enabled], [true, true])
    await desktop.untilPicture('needs-you')
  })

  if (program === 'packaged')
    it('makes the answer of an agent a notification, once and as plain text', async () => {
      const daemon = await startFakeDaemon(home, statusWith())
      start()
      await untilStatus('Ready')
      daemon.send({ ...answer('n', ''), state: 'running' })
      daemon.send(answer('n', '--help <b>not</b> an option & $(id) "quoted"\nsecond line'))
      daemon.send(answer('n', 'the same once more'))
      daemon.send(
        eventWith({ id: 'f', state: 'failed', webhook: '/-x', detail: 'agent "a" was not found' }),
      )
      const notes = await desktop.untilNotes(2)
      assert.deepEqual(
        [...notes].sort((a, b) => a.title.length - b.title.length),
        [
          {
            app: 'Doorward',
            title: 'Doorward · /github',
            body: '--help &lt;b&gt;not&lt;/b&gt; an option &amp; $(id) "quoted"\nsecond line',
          },
          {
            app: 'Doorward',
            title: 'Doorward · /-x: failed',
            body: 'agent "a" was not found',
          },
        ],
      )
    })

  if (program === 'packaged')
    it('says within two seconds that the daemon died, and that it is back', async () => {
      const daemon = await startFakeDaemon(home, statusWith())
      start()
      await untilStatus('Ready')
      await desktop.untilPicture('idle')
      const died = performance.now()
      await daemon.die()
      await untilStatus('Daemon not running · last seen ')
      assert.ok(performance.now() - died < 2000)
      await desktop.untilMenu((rows) =>
        rows.some(({ label, enabled }) => label === 'Start daemon' && enabled),
      )
      await desktop.untilPicture('unreachable')

      const returned = performance.now()
      const next = await startFakeDaemon(home, statusWith())
      await untilStatus('Ready')
      assert.ok(performance.now() - returned < 2000)
      next.send(answer('later', 'heard on the new connection'))
      assert.equal((await desktop.untilNotes(1))[0]?.body, 'heard on the new connection')
    })

  it('exits by a click on Quit tray, and leaves the daemon running', async () => {
    const daemon = await startFakeDaemon(home, statusWith())
    const tray = start()
    await untilStatus('Ready')
    await desktop.click('Quit tray')
    assert.equal(await tray.ended, 0)
    assert.equal(tray.stderr(), '')
    assert.deepEqual(daemon.posts, [])
  })

  if (program === 'packaged')
    it('runs once per home, also after one was killed', async () => {
      await startFakeDaemon(home, statusWith())
      const first = start()
      await untilStatus('Ready')
      const second = start()
      assert.equal(await second.ended, 0)
      assert.match(second.stderr(), /already runs/)

      first.process.kill('SIGKILL')
      await first.ended
      const rivals = [start(), start(), start()]
      await Promise.race(rivals.map(async ({ ended }) => ended))
      await Promise.any(
        [0, 1, 2].map(async (index) => {
          const others = rivals.filter((_, other) => other !== index)
          assert.deepEqual(await Promise.all(others.map(async ({ ended }) => ended)), [0, 0])
        }),
      )
      assert.equal(rivals.filter(({ process }) => process.exitCode === null).length, 1)
      await untilStatus('Ready')
    })

  it('says what is missing without a display and without a session bus', async () => {
    const { DISPLAY: _, DBUS_SESSION_BUS_ADDRESS: _bus, ...env } = desktop.env
    const tray = start(env)
    assert.equal(await tray.ended, 1)
    assert.match(tray.stderr(), /found no desktop/)
  })

  it('exits when the desktop session ends', async () => {
    await startFakeDaemon(home, statusWith())
    const tray = start()
    await untilStatus('Ready')
    await desktop.endDisplay()
    assert.equal(await tray.ended, 1)
    assert.match(tray.stderr(), /found no desktop/)
  })

  // The tray itself needs no other program.
  if (program === 'own') return

  it('brings the icon back with the same menu when its program is killed', async () => {
    const daemon = await startFakeDaemon(
      home,
      statusWith({ queue: { waiting: 0, running: 2, bytes: 9 } }),
    )
    const tray = start()
    await untilStatus('Working · 2 running')
    const before = desktop.registrations()
    process.kill(await desktop.iconProcess(), 'SIGKILL')
    for (let update = 0; update < 50; update += 1) daemon.send({})
    await desktop.untilMenu(() => desktop.registrations() > before)
    await untilStatus('Working · 2 running')
    assert.equal(tray.process.exitCode, null)
  })

  it('exits even when the icon program hangs', async () => {
    await startFakeDaemon(home, statusWith())
    const tray = start()
    await untilStatus('Ready')
    process.kill(await desktop.iconProcess(), 'SIGSTOP')
    tray.process.kill('SIGTERM')
    assert.equal(await tray.ended, 0)
  })

  it('has our name as its title, which panels show and screen readers say', async () => {
    await startFakeDaemon(home, statusWith())
    start()
    await untilStatus('Ready')
    assert.equal(await desktop.title(), 'Doorward')
  })

  it('runs only its own copy of the tray program', async () => {
    await startFakeDaemon(home, statusWith())
    const planted = await temporaryFolder()
    await mkdir(join(planted, 'traybin'))
    const proof = join(planted, 'ran')
    const script = `#!/bin/sh\ntouch ${proof}\n`
    await writeFile(join(planted, 'traybin', 'tray_linux_release'), script, { mode: 0o755 })
    const first = start(desktop.env, planted)
    await untilStatus('Ready')
    await first.stop()

    const staged = ['tray_linux_release', 'Doorward'].map((name) =>
      join(home.run, 'tray', '2.1.4', name),
    )
    const readStaged = async () => Promise.all(staged.map((path) => readFile(path)))
    const whole = await readStaged()
    for (const path of staged) await truncate(path, 10)
    start(desktop.env, planted)
    await untilStatus('Ready')
    assert.deepEqual(await readStaged(), whole)
    await assert.rejects(readFile(proof), { code: 'ENOENT' })
  })
})
