import assert from 'node:assert/strict'
import { chmod, readFile, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { after, before, describe, it } from 'mocha'
import type { AccessToken, ImportedLogin } from '../../../shared/api/api.ts'
import {
  hasTerminal,
  resultOf,
  run,
  start,
  startOnTerminal,
  untilSaid,
} from '../../cli/support/cli.ts'
import { type RunningDaemon, startDaemon } from '../../support/daemon/daemon.ts'
import { browse } from '../../support/desktop/browser.ts'
import {
  type GitHubProvider,
  startGitHubProvider,
} from '../../support/providers/github-provider.ts'
import { temporaryFolder } from '../../support/temporary.ts'

describe('importing the login of gh', function () {
  let provider: GitHubProvider
  let daemon: RunningDaemon
  /** A token that GitHub knows. */
  let token: string

  before(async function () {
    if (process.platform === 'win32') return this.skip()
    provider = await startGitHubProvider({ isSecretRequired: false })
    daemon = await startDaemon({
      gateway: JSON.stringify({
        oauth: { callback_port: 0 },
        providers: { github: provider.gatewayEntry },
      }),
    })
    const login = start(['oauth', 'login', 'github', '--no-browser'], { home: daemon.home })
    const ended = resultOf(login)
    await browse(/http\S+/.exec(await untilSaid(login, 'stderr', /http\S+\n/))?.[0] ?? '')
    assert.equal((await ended).code, 0)
    token = await accessTokenOf('github')
  })
  after(async () => {
    if (!daemon) return
    assert.equal(await daemon.stop(), 0)
    provider.close()
  })

  const accessTokenOf = async (login: string) =>
    (await daemon.client.get<AccessToken>(`/oauth/tokens/${login}/access?exact=true`)).accessToken

  /** A folder with a program gh, which also writes down its arguments. */
  const standIn = async (script: string) => {
    const folder = await temporaryFolder()
    const gh = join(folder, 'gh')
    await writeFile(gh, `#!/bin/sh\nprintf '%s' "$*" > '${folder}/arguments'\n${script}\n`)
    await chmod(gh, 0o700)
    return folder
  }
  const importing = async (folder: string, ...args: readonly string[]) =>
    run(['oauth', 'import', 'gh', ...args], { home: daemon.home, env: { PATH: folder } })

  it('stores its token under a name, with what GitHub says of it', async () => {
    const folder = await standIn(`echo '${token}'`)
    const { code, stdout, stderr } = await importing(folder, '--as', 'cli', '--yes')
    assert.deepEqual(
      [code, stdout],
      [0, 'logged in to github@cli as octocat, with the token of gh\n'],
      stderr,
    )
    assert.match(stderr, /^warning: github is a login of the same account\nscopes: repo, user\n/)
    assert.equal(
      await readFile(join(folder, 'arguments'), 'utf8'),
      'auth token --hostname github.com',
    )
    assert.equal(await accessTokenOf('github@cli'), token)
    const again = await importing(folder, '--as', 'cli', '--yes')
    assert.match(
      again.stderr,
      /^you are logged in to github@cli as octocat; this login replaces it\n/,
    )
    const json = await importing(folder, '--as', 'cli', '--yes', '--json')
    const imported: ImportedLogin = {
      provider: 'github@cli',
      account: { id: '583231', name: 'octocat' },
      scopes: ['repo', 'user'],
      sameAccountAs: 'github',
    }
    assert.deepEqual(JSON.parse(json.stdout), imported)
    assert.doesNotMatch(stdout + stderr + json.stdout + json.stderr, new RegExp(token))
  })

  it('knows when the token expires, where GitHub says so', async () => {
    const folder = await standIn(`echo '${token}'`)
    const imported = async (text: string) => {
      provider.tokenExpiry = text
      const { stdout } = await importing(folder, '--as', 'cli', '--yes', '--json')
      return (JSON.parse(stdout) as ImportedLogin).expiresAt
    }
    const year = new Date().getUTCFullYear() + 1
    try {
      assert.equal(await imported(`${year}-11-10 16:20:42 +0530`), `${year}-11-10T10:50:42.000Z`)
      const now = `${new Date().toISOString().slice(0, 19).replace('T', ' ')} UTC`
      for (const text of [now, 'never', `${year}-13-40 25:00:00 UTC`, `${year}-11-10`])
        assert.equal(await imported(text), undefined, text)
      assert.equal(await imported(`${year}-11-10 16:20:42 UTC`), `${year}-11-10T16:20:42.000Z`)
    } finally {
      provider.tokenExpiry = undefined
    }
    const { stdout } = await run(['oauth', 'list'], { home: daemon.home })
    assert.match(stdout, /github@cli +octocat +ok +in \d+d/)
    provider.tokenExpiry = `${year}-11-10 16:20:42 UTC`
    const { stderr } = await importing(folder, '--as', 'cli', '--yes')
    provider.tokenExpiry = undefined
    assert.match(stderr, new RegExp(`^expires: ${year}-11-10T16:20:42.000Z$`, 'm'))
  })

  it('logs out without ending the login of gh, and says so', async () => {
    await importing(await standIn(`echo '${token}'`), '--as', 'cli', '--yes')
    const { code, stdout, stderr } = await run(['oauth', 'logout', 'github@cli'], {
      home: daemon.home,
    })
    assert.deepEqual([code, stdout], [0, 'logged out of github@cli on this machine\n'])
    assert.match(stderr, /nothing was revoked, because gh uses this token too/)
    assert.equal(provider.isAlive(token), true)
    await assert.rejects(accessTokenOf('github@cli'), { code: 'not-logged-in' })
  })

  it('needs --yes where there is no terminal, and asks on one', async function () {
    const folder = await standIn(`echo '${token}'`)
    const { code, stderr } = await importing(folder, '--as', 'cli')
    assert.equal(code, 2)
    assert.match(stderr, /no terminal to ask\nhint: say so with --yes\n$/)
    await assert.rejects(readFile(join(folder, 'arguments')), { code: 'ENOENT' })
    if (!hasTerminal()) return this.skip()
    for (const [typed, expected] of [
      ['n', /nothing was imported/],
      ['y', /logged in to github@cli as octocat/],
    ] as const) {
      const child = startOnTerminal('oauth import gh --as cli', {
        home: daemon.home,
        env: { PATH: `${folder}${delimiter}${process.env['PATH']}` },
      })
      const ended = resultOf(child)
      await untilSaid(child, 'stdout', /\[y\/N\] /)
      child.stdin?.write(`${typed}\r`)
      const said = await ended
      assert.deepEqual([said.code, expected.test(said.stdout)], [0, true], said.stdout)
    }
  })

  it('says what to do when gh is missing, logged out, silent or refused', async () => {
    const cases = [
      [
        await temporaryFolder(),
        127,
        /gh, the GitHub CLI, is not installed.*\nhint: install it from/,
      ],
      [
        await standIn('echo "no oauth token found for github.com" >&2; exit 1'),
        4,
        /gh gave no token for github\.com: no oauth token found for github\.com\nhint: gh auth login,/,
      ],
      [await standIn('exit 0'), 4, /gh gave no token for github\.com\nhint: gh auth login,/],
      [await standIn('echo gho_secret; echo two'), 4, /gh gave no token/],
      [await standIn('echo "bad gho_secret" >&2; exit 1'), 4, /gh gave no token.*: bad …/],
      [await standIn('echo gho_unknownsecret'), 1, /refused the token\nhint: gh auth status/],
    ] as const
    for (const [folder, expected, message] of cases) {
      const { code, stdout, stderr } = await importing(folder, '--as', 'bad', '--yes')
      assert.deepEqual([code, stdout], [expected, ''], stderr)
      assert.match(stderr, message)
      assert.doesNotMatch(stderr, /secret/)
    }
    assert.equal((await run(['oauth', 'import', 'hub'], { home: daemon.home })).code, 2)
    await assert.rejects(accessTokenOf('github@bad'), { code: 'not-logged-in' })
  })
})
