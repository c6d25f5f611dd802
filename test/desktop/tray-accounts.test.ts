import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '../support/providers/authorization-server.ts'
import { guidePage } from '../../tray/actions/open.ts'
import { browse } from '../support/desktop/browser.ts'
import { type RunningDaemon, startDaemon } from '../support/daemon/daemon.ts'
import {
  type Desktop,
  type ShownNote,
  type ShownRow,
  describeOnLinux,
  labelsOf,
  startDesktop,
} from '../support/desktop/desktop.ts'
import { type FakePrograms, startFakePrograms } from '../support/desktop/fake-programs.ts'
import { startGitHubProvider } from '../support/providers/github-provider.ts'
import { type RunningTray, startTray } from '../support/desktop/tray.ts'

const accountsIn = (rows: readonly ShownRow[]): string[] =>
  labelsOf(rows.find(({ label }) => label === 'Accounts')?.rows ?? [])

describeOnLinux('the accounts in the tray', () => {
  let desktop: Desktop
  let programs: FakePrograms
  let server: AuthorizationServer
  let daemon: RunningDaemon
  let tray: RunningTray

  before(async () => {
    server = await startAuthorizationServer()
  })
  beforeEach(async () => {
    server.answer = 'consent'
    desktop = await startDesktop()
    programs = await startFakePrograms(['gio'])
  })
  afterEach(async () => {
    await tray.stop()
    await daemon.stop()
    programs.close()
    await desktop.stop()
  })
  after(() => server.close())

  const start = async (providers: object): Promise<void> => {
    daemon = await startDaemon({
      gateway: `oauth: { callback_port: 0 }\nproviders: ${JSON.stringify(providers)}\n`,
    })
    const env = { ...desktop.env, PATH: programs.path, XDG_CURRENT_DESKTOP: 'GNOME' }
    tray = startTray(daemon.home, env)
  }
  const mine = () => ({
    mine: { issuer: server.issuer, scopes: ['openid', 'email'], client_id: 'public' },
  })
  const untilAccount = (label: string) =>
    desktop.untilMenu((rows) => accountsIn(rows).includes(label))
  const untilNote = async (title: string): Promise<ShownNote> => {
    for (let count = 1; ; count += 1) {
      const note = (await desktop.untilNotes(count)).find((shown) => shown.title === title)
      if (note) return note
    }
  }
  const openedPage = async (count = 1): Promise<string> => {
    const calls = await programs.untilCalled('gio', count)
    const [verb, url = ''] = calls[count - 1]?.args ?? []
    assert.equal(verb, 'open')
    return url
  }

  it('are logged in by a browser, and out again', async () => {
    await start(mine())
    await desktop.click('Accounts', '○ Mine: Log in…')
    const url = await openedPage()
    assert.ok(url.startsWith(`${server.issuer}/auth?`))
    await untilAccount('… Mine: waiting for you in the browser')
    // The window was closed by mistake: the same login, not a second one.
    await desktop.click('Accounts', '… Mine')
    assert.equal(await openedPage(2), url)

    await browse(url)
    const note = await untilNote('Doorward · logged in to Mine')
    assert.equal(note.body, 'As ada@example.com')
    await untilAccount('✓ Mine · ada@example.com: Log out')

    const file = join(daemon.home.tokens, 'mine.json')
    const { refreshToken } = JSON.parse(await readFile(file, 'utf8')) as { refreshToken: string }
    assert.equal(await server.isRefreshTokenAlive(refreshToken), true)
    await desktop.click('Accounts', '✓ Mine')
    const loggedOut = await untilNote('Doorward · logged out of Mine')
    assert.match(loggedOut.body, /^Mine confirmed the revocation/)
    await untilAccount('○ Mine: Log in…')
    assert.equal(await server.isRefreshTokenAlive(refreshToken), false)
    assert.equal(tray.stderr(), '')
  })

  it('name the command that logs in where no browser opens', async () => {
    programs.exitWith('gio', 3)
    await start(mine())
    await desktop.click('Accounts', '○ Mine: Log in…')
    const note = await untilNote('Doorward · no browser could be opened')
    assert.match(note.body, /^doorward oauth login mine$/m)
    await untilAccount('○ Mine: Log in…')
  })

  it('lead to the page about OAuth clients while none is known', async () => {
    await start({})
    await desktop.click('Accounts', '○ GitHub: Log in…')
    assert.equal(await openedPage(), guidePage)
    const note = await untilNote('Doorward · GitHub needs an OAuth client')
    assert.match(note.body, /doorward oauth login github --client-id ID/)
  })

  it('show the code to enter where a client has no secret, and open the page without it', async () => {
    const github = await startGitHubProvider({ hasDeviceFlow: true, devicePolls: 1 })
    try {
      await start({ github: github.gatewayEntry })
      await desktop.click('Accounts', '○ GitHub: Log in…')
      const page = await openedPage()
      assert.match(page, /\/login\/device$/)
      const note = await untilNote('Doorward · enter WDJB-MJHT to log in to GitHub')
      assert.ok(note.body.includes(page))
      await untilAccount('… GitHub: enter WDJB-MJHT in the browser')
      await untilNote('Doorward · logged in to GitHub')
      await untilAccount('✓ GitHub · octocat: Log out')
    } finally {
      github.close()
    }
  })
})
