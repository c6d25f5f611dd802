import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile, readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connect } from '../../shared/client/client.ts'
import { readDaemonFile } from '../../shared/client/discovery.ts'
import type { Home } from '../../shared/home/home.ts'
import { isAlive } from '../../shared/home/lock.ts'
import { Bus } from '../../tray/dbus/bus.ts'
import { startAuthorizationServer } from '../support/providers/authorization-server.ts'
import { browse, textOf } from '../support/desktop/browser.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../support/daemon/daemon.ts'
import {
  type Desktop,
  type ShownNote,
  describeOnLinux,
  labelsOf,
  startDesktop,
} from '../support/desktop/desktop.ts'
import { eventWith, startFakeDaemon, statusWith } from '../support/daemon/fake-daemon.ts'
import { examined } from '../support/daemon/doctor.ts'
import { type FakePrograms, startFakePrograms } from '../support/desktop/fake-programs.ts'
import { temporaryHome } from '../support/temporary.ts'
import { type RunningTray, startTray } from '../support/desktop/tray.ts'

describeOnLinux('a click in the tray', () => {
  let desktop: Desktop
  let programs: FakePrograms
  let home: Home
  let tray: RunningTray | undefined
  let daemon: RunningDaemon | undefined

  beforeEach(async () => {
    tray = undefined
    daemon = undefined
    desktop = await startDesktop()
    programs = await startFakePrograms(['gio', 'xclip', 'xsel'])
    home = await temporaryHome()
  })
  afterEach(async () => {
    await tray?.stop()
    await daemon?.stop()
    await stopWhateverRuns(home)
    programs.close()
    await desktop.stop()
  })

  const start = (): RunningTray => {
    const env = {
      ...desktop.env,
      PATH: programs.path,
      XDG_CURRENT_DESKTOP: 'GNOME',
      DOORWARD_PORT: '0',
    }
    tray = startTray(home, env)
    return tray
  }
  const untilStatus = async (beginning: string) =>
    desktop.untilMenu(([first]) => first?.label.startsWith(beginning) ?? false)
  const untilRow = async (label: string) =>
    desktop.untilMenu((rows) => labelsOf(rows).includes(label))
  const untilNote = async (title: string): Promise<ShownNote> => {
    for (let count = 1; ; count += 1) {
      const note = (await desktop.untilNotes(count)).find((shown) => shown.title === title)
      if (note) return note
    }
  }
  const openedPaths = async (count: number) =>
    (await programs.untilCalled('gio', count)).map(({ args }) => args.slice(1).join(' '))

  describe('on the daemon', () => {
    it('restarts it', async () => {
      daemon = await startDaemon({ home })
      const { pid } = daemon.process
      start()
      await untilStatus('Ready')
      const ended = once(daemon.process, 'exit')
      await desktop.click('Restart daemon')
      await ended
      await untilRow('Restart daemon')
      const successor = await readDaemonFile(home)
      assert.ok(successor && successor.pid !== pid)
      await untilStatus('Ready')
      // The old one ends once the connections from before are idle.
    }).timeout(60_000)

    it('does not restart it with an invalid configuration', async () => {
      daemon = await startDaemon({ home })
      start()
      await untilStatus('Ready')
      await writeFile(join(home.config, 'agents.yaml'), 'agents: [')
      await desktop.untilMenu((rows) => rows[1]?.label.startsWith('! config/agents.yaml') ?? false)
      await desktop.click('Restart daemon')
      const note = await untilNote('Doorward · the daemon was not restarted')
      assert.match(note.body, /agents\.yaml/)
      await untilRow('Restart daemon')
      assert.equal(daemon.process.exitCode, null)
      await desktop.click('! config/agents.yaml')
      assert.deepEqual(await openedPaths(1), [join(home.config, 'agents.yaml')])
    })

    it('starts it, and says why it does not start', async () => {
      daemon = await startDaemon({ home })
      start()
      await untilStatus('Ready')
      await daemon.stop()
      await untilStatus('Daemon not running')
      await writeFile(join(home.config, 'agents.yaml'), 'agents: [')
      await desktop.click('Start daemon')
      const note = await untilNote('Doorward · the daemon was not started')
      assert.match(note.body, /config\/agents\.yaml:1:/)
      await untilStatus('Daemon did not start: config/agents.yaml:1:')
      await desktop.click('! Fix config/agents.yaml')
      assert.deepEqual(await openedPaths(1), [join(home.config, 'agents.yaml')])

      await writeFile(join(home.config, 'agents.yaml'), 'agents: { echo: { kind: echo } }')
      await desktop.click('Start daemon')
      await untilStatus('Ready')
      await untilRow('Restart daemon')
    })

    it('stops it and quits', async () => {
      daemon = await startDaemon({ home })
      const { ended } = start()
      await untilStatus('Ready')
      const stopped = once(daemon.process, 'exit')
      await desktop.click('Stop daemon and quit')
      assert.equal(await ended, 0)
      assert.deepEqual(await stopped, [0, null])
    })
  })

  describe('on an event', () => {
    it('opens its page by a link of the daemon', async () => {
      const fake = await startFakeDaemon(home, statusWith({ events: [eventWith()] }))
      const url = `${fake.url}/ui/link/once`
      fake.answers.set('/events/evt_1/link', { url, expiresAt: '2026-01-02T12:05:00.000Z' })
      start()
      await untilStatus('Ready')
      await desktop.click('Recent events', '01-02 ✓')
      assert.deepEqual(await openedPaths(1), [url])
      assert.deepEqual(await desktop.untilNotes(0), [])
    })

    const made = 'https://github.com/acme/shop/pull/12#issuecomment-1'
    const links = [{ target: 'github:acme/shop#12', what: 'comment', url: made }]

    it('opens what it made', async () => {
      const fake = await startFakeDaemon(home, statusWith({ events: [eventWith({ links })] }))
      start()
      await untilStatus('Ready')
      await desktop.click('Recent events', '01-02 ✓')
      assert.deepEqual(await openedPaths(1), [made])
      assert.deepEqual(fake.posts, [])
    })

    it('makes its answer a notification where no browser opens', async () => {
      const event = eventWith({ resultPreview: 'all well', links })
      const fake = await startFakeDaemon(home, statusWith({ events: [event] }))
      fake.answers.set('/events/evt_1/link', { url: `${fake.url}/once`, expiresAt: '' })
      programs.exitWith('gio', 3)
      start()
      await untilStatus('Ready')
      await desktop.click('Recent events', '01-02 ✓')
      assert.equal((await untilNote('Doorward · /github: done')).body, 'all well')
    })

    it('opens no address that is not of this machine', async () => {
      const event = eventWith({ resultPreview: 'all well' })
      const fake = await startFakeDaemon(home, statusWith({ events: [event] }))
      fake.answers.set('/events/evt_1/link', { url: 'file:///etc/passwd', expiresAt: '' })
      start()
      await untilStatus('Ready')
      await desktop.click('Recent events', '01-02 ✓')
      await untilNote('Doorward · /github: done')
      assert.deepEqual(programs.callsOf('gio'), [])
    })

    it('shows the run that failed from the row that names it', async () => {
      home = await temporaryHome({
        agents: `agents: { fails: { kind: command, command: ["${process.execPath}", -e, "process.exit(3)"] } }`,
        webhooks: 'webhooks: [{ path: /w, agent: fails, prompt_template: x }]',
      })
      daemon = await startDaemon({ home })
      start()
      await untilStatus('Ready')
      const id = await deliver(daemon, '/w', {})
      await untilFinished(daemon, id)
      await desktop.untilMenu((rows) => rows[1]?.label.startsWith('! Last run failed: /w') ?? false)
      await desktop.click('! Last run failed: /w')
      const [url = ''] = await openedPaths(1)
      const page = await browse(url)
      assert.equal(page.status, 200)
      assert.match(textOf(page.text), /\/w[^]*failed/i)
    })
  })

  describe('on a switch', () => {
    it('turns notifications off and on, also for the next tray', async () => {
      const fake = await startFakeDaemon(home, statusWith())
      const first = start()
      await untilStatus('Ready')
      await desktop.click('✓ Notifications')
      await untilRow('\u2003 Notifications')
      const file = join(home.root, 'tray.json')
      assert.equal((await stat(file)).mode & 0o777, 0o600)
      await first.stop()

      start()
      await untilStatus('Ready')
      await untilRow('\u2003 Notifications')
      fake.send(eventWith({ id: 'quiet', state: 'failed', detail: 'not shown' }))
      fake.send(
        eventWith({
          id: 'loud',
          resultPreview: 'shown',
          targets: [{ target: 'notify:desktop', state: 'done', attempts: 1 }],
        }),
      )
      assert.deepEqual(
        (await desktop.untilNotes(1)).map(({ body }) => body),
        ['shown'],
      )
      await desktop.click('\u2003 Notifications')
      await untilRow('✓ Notifications')
      fake.send(eventWith({ id: 'again', state: 'failed', detail: 'shown too' }))
      assert.equal((await desktop.untilNotes(2))[1]?.body, 'shown too')
    })

    it('starts at login, or not, and says so', async () => {
      await startFakeDaemon(home, statusWith())
      start()
      await untilStatus('Ready')
      const entries = async () =>
        readdir(join(desktop.env['HOME'] ?? '', '.config', 'autostart')).catch(() => [])
      await desktop.click('\u2003 Start at login')
      await untilRow('✓ Start at login')
      assert.equal((await entries()).length, 1)
      const { of } = await examined(home, desktop.env)
      assert.deepEqual(
        of('autostart').map(({ detail }) => detail),
        ['it starts at login, and starts the daemon'],
      )
      await desktop.click('✓ Start at login')
      await untilRow('\u2003 Start at login')
      assert.deepEqual(await entries(), [])
    })

    it('uses default settings when the file is damaged, and says so', async () => {
      await startFakeDaemon(home, statusWith())
      await writeFile(join(home.root, 'tray.json'), '{"notifications": "perhaps"', { mode: 0o600 })
      const { stderr } = start()
      await untilStatus('Ready')
      await untilRow('✓ Notifications')
      assert.match(stderr(), /using default settings: cannot read \S*tray\.json: it is damaged/)
      await desktop.click('✓ Notifications')
      await untilRow('\u2003 Notifications')
      assert.deepEqual(JSON.parse(await readFile(join(home.root, 'tray.json'), 'utf8')), {
        notifications: false,
      })
    })
  })

  describe('on what opens', () => {
    it('opens the configuration and the logs', async () => {
      daemon = await startDaemon({ home })
      start()
      await untilStatus('Ready')
      await desktop.click('Open configuration')
      assert.deepEqual(await openedPaths(1), [home.config])
      await desktop.click('Open logs')
      assert.deepEqual((await openedPaths(2))[1], home.log)
    })

    it('opens the folder where no program opens the file, and names the path where none opens that', async () => {
      daemon = await startDaemon({ home })
      programs.exitWith('gio', 4)
      start()
      await untilStatus('Ready')
      await desktop.click('Open logs')
      const note = await untilNote('Doorward · no program here opens it')
      assert.equal(note.body, home.log)
      assert.deepEqual(await openedPaths(2), [home.log, home.logs])
    })
  })

  describe('on Copy diagnostics', () => {
    const canary = 'canary-in-a-payload'
    let secrets: readonly string[]

    const untilBusy = async (): Promise<void> => {
      const server = await startAuthorizationServer()
      try {
        home = await temporaryHome({
          env: `HOOK_SECRET=the-secret-of-the-hook\nMINE_SECRET=${server.secret}\n`,
          gateway: `oauth: { callback_port: 0 }\nproviders: { mine: { issuer: "${server.issuer}", scopes: [openid, email], client_id: confidential, client_secret_env: MINE_SECRET } }\n`,
          webhooks: `webhooks:
  - { path: /unsigned-and-hard-to-guess, agent: echo, prompt_template: "{{event.text}}" }
  - { path: /signed, agent: echo, prompt_template: x, secret_env: HOOK_SECRET }
`,
        })
        daemon = await startDaemon({ home })
        const id = await deliver(daemon, '/unsigned-and-hard-to-guess', { text: canary })
        await untilFinished(daemon, id)
        start()
        await untilStatus('Ready')
        await desktop.click('Accounts', '○ Mine: Log in…')
        const [url = ''] = await openedPaths(1)
        await browse(url)
        await untilNote('Doorward · logged in to Mine')
        const file = await readFile(join(home.tokens, 'mine.json'), 'utf8')
        const { accessToken, refreshToken } = JSON.parse(file) as Record<string, string>
        secrets = [
          accessToken ?? '',
          refreshToken ?? '',
          server.secret,
          daemon.apiToken,
          'the-secret-of-the-hook',
          canary,
          'ada@example.com',
          'unsigned-and-hard-to-guess',
        ]
      } finally {
        await server.close()
      }
    }
    const isHarmless = (text: string): void => {
      for (const secret of secrets) {
        assert.ok(secret.length > 8)
        assert.equal(text.includes(secret), false, secret)
      }
    }

    it('copies a report without secrets', async () => {
      await untilBusy()
      await desktop.click('Copy diagnostics')
      const [call] = await programs.untilCalled('xclip')
      assert.deepEqual(call?.args, ['-selection', 'clipboard'])
      isHarmless(call?.stdin ?? '')
      assert.match(call?.stdin ?? '', /^\{[\x20-\x7e\n]*\}\n$/)
      const { version } = JSON.parse(call?.stdin ?? '') as { version?: string }
      assert.equal(typeof version, 'string')
      await untilNote('Doorward · diagnostics copied')
      await untilRow('Copy diagnostics')
    })

    it('copies it by Klipper where there is no clipboard program', async () => {
      await untilBusy()
      for (const name of ['xclip', 'xsel']) programs.exitWith(name, 1)
      const bus = await Bus.connect(desktop.env)
      const copied = new Promise<string>((resolve) => {
        const run = ([text]: readonly unknown[]) => {
          resolve(String(text))
          return []
        }
        const methods = { setClipboardContents: { takes: 's', gives: '', run } }
        bus.serve('/klipper', { 'org.kde.klipper.klipper': { methods, properties: {} } })
      })
      await bus.ownName('org.kde.klipper')
      await desktop.click('Copy diagnostics')
      isHarmless(await copied)
      await untilNote('Doorward · diagnostics copied')
      bus.close()
    })

    it('writes them to a file where there is no clipboard, and opens it', async () => {
      await untilBusy()
      programs.exitWith('xclip', 1)
      programs.exitWith('xsel', 1)
      await desktop.click('Copy diagnostics')
      const path = join(home.logs, 'diagnostics.txt')
      const note = await untilNote('Doorward · diagnostics written')
      assert.ok(note.body.includes(path))
      assert.equal((await openedPaths(2))[1], path)
      isHarmless(await readFile(path, 'utf8'))
      assert.equal((await stat(path)).mode & 0o777, 0o600)
    })
  })
})

const deliver = async ({ url }: RunningDaemon, path: string, body: object): Promise<string> => {
  const response = await fetch(`${url}/webhook${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const { id } = (await response.json()) as { id: string }
  return id
}

/** A daemon that the tray has started is no child of the test. */
const stopWhateverRuns = async (home: Home): Promise<void> => {
  const file = await readDaemonFile(home)
  if (!file || file.pid === process.pid || !isAlive(file.pid)) return
  const client = await connect(home)
  const stream = await client.open('/events/stream')
  stream.resume().on('error', () => undefined)
  const closed = new Promise((resolve) => stream.once('close', resolve))
  await client.post('/daemon/shutdown')
  await closed
  client.close()
}
