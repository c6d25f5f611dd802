import assert from 'node:assert/strict'
import { readFile, readdir, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import type { StartedLogin } from '../../../shared/api/api.ts'
import { type CliResult, resultOf, run, start, untilSaid } from '../../cli/support/cli.ts'
import { approve, browse, visit } from '../../support/desktop/browser.ts'
import { type RunningDaemon, startDaemon } from '../../support/daemon/daemon.ts'
import { followEvents } from '../../support/daemon/events.ts'
import {
  type GitHubProvider,
  startGitHubProvider,
} from '../../support/providers/github-provider.ts'
import {
  type GoogleProvider,
  startGoogleProvider,
} from '../../support/providers/google-provider.ts'
import { type SlackProvider, startSlackProvider } from '../../support/providers/slack-provider.ts'
import { temporaryFolder } from '../../support/temporary.ts'

/*
 * A whole life of logins and tokens at three providers, well and badly, with the log at its chattiest.
 * Afterwards every secret that was ever sent or stored is looked for wherever it has no business.
 */

const names = ['google', 'github', 'slack'] as const

/** What the command line of every process of this machine is just now. */
const listsProcesses = `
  const { readdirSync, readFileSync } = require('node:fs')
  for (const pid of readdirSync('/proc').filter((name) => /^\\d+$/.test(name)))
    try { console.log(readFileSync('/proc/' + pid + '/cmdline', 'utf8').split('\\0').join(' ')) } catch {}
`

describe('tokens, codes, verifiers and secrets', () => {
  let providers: {
    readonly google: GoogleProvider
    readonly github: GitHubProvider
    readonly slack: SlackProvider
  }
  let daemon: RunningDaemon
  /** What was printed, answered and shown, by where that was. */
  const texts: [where: string, text: string][] = []
  const secrets = new Set<string>()

  before(async () => {
    providers = {
      google: await startGoogleProvider(),
      github: await startGitHubProvider({ accessTokenSeconds: 28_800 }),
      slack: await startSlackProvider(),
    }
    const entries = Object.fromEntries(names.map((name) => [name, providers[name].gatewayEntry]))
    daemon = await startDaemon({
      variables: { DOORWARD_LOG_LEVEL: 'trace' },
      gateway: JSON.stringify({ oauth: { callback_port: 0 }, providers: entries }),
    })
  })
  after(async () => {
    await daemon.stop()
    for (const name of names) providers[name].close()
  })

  const cli = async (args: readonly string[], stdin?: string): Promise<CliResult> => {
    const result = await run(args, { home: daemon.home, ...(stdin !== undefined && { stdin }) })
    texts.push([`stderr of ${args.join(' ')}`, result.stderr])
    // The one command that is there to print a token, and git's way of asking for one.
    if (args[1] !== 'token' && args[1] !== 'git-credential')
      texts.push([`stdout of ${args.join(' ')}`, result.stdout])
    return result
  }
  const tokenFile = async (name: string): Promise<Record<string, string>> =>
    JSON.parse(await readFile(join(daemon.home.tokens, `${name}.json`), 'utf8')) as Record<
      string,
      string
    >
  const rememberTokens = async (name: string): Promise<void> => {
    const { accessToken, refreshToken } = await tokenFile(name)
    for (const token of [accessToken, refreshToken]) if (token) secrets.add(token)
  }

  const logIn = async (name: (typeof names)[number], secret: string): Promise<CliResult> => {
    const login = start(
      [
        'oauth',
        'login',
        name,
        '--no-browser',
        '--json',
        '--client-id',
        providers[name].client.id,
        '--client-secret-stdin',
      ],
      { home: daemon.home, stdin: `${secret}\n` },
    )
    const ended = resultOf(login)
    const said = await untilSaid(login, 'stdout', /\n/)
    const { authorizationUrl } = JSON.parse(said.split('\n')[0] ?? '') as StartedLogin
    const callback = new URL(await approve(authorizationUrl))
    const forged = new URL(callback)
    forged.searchParams.set('state', 'wrong')
    texts.push(['page of a forged callback', (await visit(forged.href)).text])
    const page = await browse(callback.href)
    texts.push(['page', page.text], ['address of the page', page.url])
    const result = await ended
    const [, outcome = ''] = result.stdout.trim().split('\n')
    texts.push([`outcome at ${name}`, outcome], [`stderr at ${name}`, result.stderr])
    for (const parameter of ['code', 'state'])
      secrets.add(callback.searchParams.get(parameter) ?? '')
    return result
  }

  it('go through logins, refreshes, hand-outs, failures and logouts', async () => {
    for (const name of names) {
      const { secret } = providers[name].client
      assert.equal((await logIn(name, secret)).code, 0)
      await rememberTokens(name)
      // Refreshed, with the provider failing before and saying back what it was sent.
      const { refreshToken = '' } = await tokenFile(name)
      const body = {
        ok: false,
        error: refreshToken,
        error_description: `${refreshToken} ${secret}`,
      }
      providers[name].fail({ status: 400, body, path: '/' })
      const followed = await followEvents(daemon)
      const stored = await cli(['oauth', 'token', name, '--min-validity', '20h'])
      assert.equal(stored.code, 0)
      // The daemon tries again by itself a moment later.
      const again = `${name}: the token could be renewed again`
      await followed.next(({ detail }) => detail === again)
      followed.close()
      await rememberTokens(name)
      const listed = await cli([
        'oauth',
        'exec',
        name,
        '--',
        process.execPath,
        '-e',
        listsProcesses,
      ])
      assert.match(listed.stdout, /oauth exec/)
      assert.equal((await logIn(name, 'not-the-real-secret-canary')).code, 1)
      await rememberTokens(name)
    }
    await cli(['oauth', 'git-credential', 'get'], 'protocol=https\nhost=github.com\n\n')
    for (const args of [['oauth', 'list'], ['status'], ['events'], ['oauth', 'list', '--json']])
      assert.equal((await cli(args)).code, 0)
    providers.slack.fail({ times: 20, status: 503, path: '/' })
    for (const name of ['google', 'slack'])
      assert.equal((await cli(['oauth', 'logout', name])).code, 0)
    for (const path of ['/events?limit=1000', '/status', '/oauth/tokens'])
      texts.push([path, JSON.stringify(await daemon.client.get(path))])
    texts.push(['output of the daemon', daemon.stdout() + daemon.stderr()])
    await daemon.stop()

    for (const name of names) {
      secrets.add(providers[name].client.secret)
      for (const { form, headers } of providers[name].requests) {
        for (const key of ['code', 'code_verifier', 'refresh_token', 'client_secret', 'token'])
          if (form.get(key)) secrets.add(form.get(key) ?? '')
        const [, bearer] = /^Bearer (.+)$/.exec(headers.authorization ?? '') ?? []
        if (bearer) secrets.add(bearer)
      }
    }
    secrets.delete('')
    assert.ok(secrets.size > 25, String(secrets.size))
  })

  const found = (text: string): string[] => [...secrets].filter((secret) => text.includes(secret))

  it('are in nothing that was printed, answered or shown, and on no command line', () => {
    for (const [where, text] of texts) assert.deepEqual(found(text), [], where)
  })

  it('are in no address that was asked for, but for the code and state that a browser brings', () => {
    for (const name of names)
      for (const { path, query } of providers[name].requests) {
        const state = query.get('state')
        const address = `${path}?${query.toString()}`
        assert.deepEqual(
          found(address).filter((secret) => secret !== state),
          [],
          path,
        )
      }
  })

  it('are in no file of the home but those that are there to hold them', async () => {
    const root = daemon.home.root
    const entries = await readdir(root, { recursive: true, withFileTypes: true })
    const holders = new Set<string>()
    for (const entry of entries)
      if (entry.isFile()) {
        const path = join(entry.parentPath, entry.name)
        const inIt = found(await readFile(path, 'utf8'))
        if (inIt.length > 0) holders.add(relative(root, path).replace(/-[\w-]+\.json$/, '-….json'))
      }
    assert.deepEqual([...holders].toSorted(), [
      'clients/github.json',
      'clients/google.json',
      'clients/slack.json',
      'tokens/github.json',
      // Slack could not be asked to revoke.
      'tokens/revoke/slack-….json',
    ])
    // And what is used up is nowhere at all.
    const { accessToken, refreshToken } = await tokenFile('github')
    const kept = found(await readFile(join(daemon.home.tokens, 'github.json'), 'utf8'))
    assert.deepEqual(new Set(kept), new Set([accessToken, refreshToken]))
  })

  it('would be found: the search itself works', async () => {
    const [secret = ''] = secrets
    const folder = await temporaryFolder()
    await writeFile(join(folder, 'leak'), `before ${secret} after`)
    assert.deepEqual(found(await readFile(join(folder, 'leak'), 'utf8')), [secret])
  })
})
