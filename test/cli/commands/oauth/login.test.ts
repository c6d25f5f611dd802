import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { chmod, stat, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import type { Login } from '../../../../shared/api/api.ts'
import { temporaryFolder } from '../../../support/temporary.ts'
import {
  type CliOptions,
  hasTerminal,
  resultOf,
  run,
  start,
  startOnTerminal,
  untilSaid,
} from '../../support/cli.ts'
import { statusWith } from '../../../support/daemon/fake-daemon.ts'
import { startContractServer } from '../../support/contract-server.ts'
import {
  authorized,
  pending,
  startLoginServer,
  started as startedLogin,
} from '../../support/login-server.ts'

const ada = { id: '2', name: 'ada' }
const redirected = 'http://127.0.0.1:53174/callback?code=k&state=s'

describe('cli: oauth login', () => {
  const loggedIn = async (
    answer: Login,
    options: Parameters<typeof startLoginServer>[1] = {},
    args: readonly string[] = [],
  ) => {
    const server = await startLoginServer([answer], options)
    const { home } = server
    const result = await run(['oauth', 'login', 'github', '--no-browser', ...args], { home })
    await server.close()
    return result
  }

  it('says whose login it takes the place of, before the page is opened', async () => {
    const cases = [
      [{ status: 'ok', account: ada }, /^you are logged in to github as ada; this login replaces/],
      [{ status: 'expired', account: null }, /^you are logged in to github; this login replaces/],
      [
        { status: 'needs-login', account: ada },
        /^the login to github as ada can no longer be used; this login/,
      ],
    ] as const
    for (const [token, expected] of cases) {
      const tokens = [
        { provider: 'slack', status: 'ok', account: ada } as const,
        { provider: 'github', ...token },
      ]
      assert.match((await loggedIn(authorized, { tokens })).stderr, expected)
    }
    assert.match((await loggedIn(authorized)).stderr, /^is the browser.*\nopen this page/)
  })

  it('says how long the page can be opened, where the provider limits that', async () => {
    const openBefore = new Date(Date.now() + 60_000).toISOString()
    const { stderr } = await loggedIn(authorized, { start: { openBefore } })
    assert.match(stderr, /^it can be opened within the next (60|5\d) s$/m)
    assert.doesNotMatch((await loggedIn(authorized)).stderr, /can be opened/)
  })

  it('says plainly that another account was replaced', async () => {
    const { code, stdout, stderr } = await loggedIn({ ...authorized, replaced: ada })
    assert.deepEqual([code, stdout], [0, 'logged in to github as octocat\n'])
    assert.match(stderr, /^replaced: you were logged in to github as ada$/m)
  })

  it('shows what was not granted, with the command that asks for all of it', async () => {
    const { code, stdout, stderr } = await loggedIn(
      { ...authorized, missingScopes: ['https://www.googleapis.com/auth/calendar', 'x;id'] },
      { start: { scopes: ['repo', 'https://www.googleapis.com/auth/calendar', 'x;id'] } },
    )
    assert.deepEqual([code, stdout], [0, 'logged in to github as octocat\n'])
    assert.match(stderr, /^not granted: calendar, x;id$/m)
    assert.match(
      stderr,
      /^hint: doorward oauth login github --scopes 'repo,https:\/\/www\.googleapis\.com\/auth\/calendar,x;id'$/m,
    )
  })

  it('says that a client id is empty, as of a variable that is not set', async () => {
    const { code, stderr } = await loggedIn(authorized, {}, ['--client-id', ''])
    assert.deepEqual([code, stderr.split('\n')[0]], [2, 'doorward: --client-id is empty'])
  })

  it('ends with the cause and the way out that the daemon gives', async () => {
    const error = { code: 'provider-refused', message: 'no secret', hint: 'it is at example.com' }
    const failed: Login = { ...pending, status: 'failed', error }
    const { code, stderr } = await loggedIn(failed)
    assert.equal(code, 1)
    assert.match(
      stderr,
      /^doorward: login to github failed: no secret\nhint: it is at example\.com$/m,
    )
    const expired: Login = {
      ...pending,
      status: 'expired',
      error: { code: 'login-expired', message: 'the login to github was not finished in time' },
    }
    assert.match(
      (await loggedIn(expired)).stderr,
      /^doorward: the login to github was not finished in time\nhint: doorward oauth login github$/m,
    )
  })

  it('says what the app must allow when the client is a new one', async () => {
    const line =
      /^if it shows an error: check the client id, and that the app may redirect to\n\n {2}http:\/\/127\.0\.0\.1:53174\/callback$/m
    assert.match((await loggedIn(authorized, {}, ['--client-id', 'c'])).stderr, line)
    assert.doesNotMatch((await loggedIn(authorized)).stderr, line)
    assert.doesNotMatch((await loggedIn(authorized, {}, ['--client-id', 'c', '-q'])).stderr, line)
  })

  it('says so too when the daemon is stopping, and asks no other one for it', async () => {
    const server = await startContractServer(({ path }) => {
      if (path === '/oauth/start') return [201, startedLogin]
      if (path === '/oauth/tokens') return [200, { tokens: [] }]
      return [503, { code: 'stopping', detail: 'the daemon is stopping', status: 503 }]
    })
    const { code, stderr } = await run(['oauth', 'login', 'github', '--no-browser'], {
      home: server.home,
    })
    await server.close()
    assert.equal(code, 3)
    assert.match(stderr, /^doorward: the daemon stopped while the login to github waited$/m)
    assert.equal(server.calls.filter(({ path }) => path === '/oauth/start').length, 1)
  })

  it('says that it is done when Ctrl-C comes too late', async function () {
    if (process.platform === 'win32') return this.skip()
    const tooLate = { code: 'login-not-pending', detail: 'this login is saving' }
    const server = await startLoginServer(['open', authorized], { cancel: () => [409, tooLate] })
    const child = startOnTerminal('oauth login github --no-browser', server)
    const ended = resultOf(child)
    await untilSaid(child, 'stdout', /waiting for you/)
    child.stdin?.write('\u0003')
    assert.match((await ended).stdout, /logged in to github as octocat/)
    await server.close()
  })

  it('is cancelled at the daemon by a Ctrl-C that comes before it has begun', async function () {
    if (process.platform === 'win32') return this.skip()
    let answer: () => void = () => undefined
    const server = await startContractServer(({ method, path }, response) => {
      if (method === 'DELETE') return [204, undefined]
      if (path !== '/oauth/start') return [200, { tokens: [] }]
      answer = () => response.writeHead(201).end(JSON.stringify(startedLogin))
      return undefined
    })
    const child = start(['oauth', 'login', 'github', '--no-browser'], { home: server.home })
    const ended = resultOf(child)
    await server.called(({ path }) => path === '/oauth/start')
    const told = untilSaid(child, 'stderr', /^cancelling; press Ctrl-C again to exit immediately$/m)
    child.kill('SIGINT')
    await told
    answer()
    const { code, stderr } = await ended
    await server.close()
    assert.equal(code, 130)
    assert.match(stderr, /the login to github is cancelled/)
    assert.doesNotMatch(stderr, /open this page/)
    assert.ok(server.calls.some(({ method, path }) => method === 'DELETE' && path.endsWith('_1')))
  })

  it('ends at once by a second Ctrl-C, whatever the daemon does', async function () {
    if (!hasTerminal()) return this.skip()
    const server = await startContractServer(({ method, path }) => {
      if (path === '/status') return [200, statusWith()]
      if (path === '/oauth/tokens') return [200, { tokens: [] }]
      return method === 'POST' ? [201, startedLogin] : undefined
    })
    const child = startOnTerminal('oauth login github --no-browser </dev/null', server)
    const ended = resultOf(child)
    await untilSaid(child, 'stdout', /waiting for you/)
    // The spinner goes at the first one, and gives the cursor back.
    const cleared = untilSaid(child, 'stdout', /\u001b\[\?25h/)
    child.stdin?.write('\u0003')
    await cleared
    await server.called(({ method }) => method === 'DELETE')
    child.stdin?.write('\u0003')
    const { code } = await ended
    await server.close()
    assert.equal(code, 130)
  })

  it('turns no spinner where nobody looks, nor in CI, nor a coloured one without colour', async function () {
    if (!hasTerminal()) return this.skip()
    const shownWith = async (env: Record<string, string>, more = '') => {
      const server = await startLoginServer([pending, authorized])
      const child = startOnTerminal(`oauth login github --no-browser ${more} </dev/null`, {
        home: server.home,
        env,
      })
      const { stdout } = await resultOf(child)
      await server.close()
      return stdout
    }
    const [usual, inCi, dumb, uncoloured, ascii] = await Promise.all([
      shownWith({}),
      shownWith({ CI: 'true' }),
      shownWith({ TERM: 'dumb' }),
      shownWith({}, '--no-color'),
      shownWith({ LC_ALL: 'C' }),
    ])
    assert.match(usual, /\u001b\[36m⠋/)
    for (const text of [inCi, dumb]) {
      assert.match(text, /^waiting for you at github \.\.\.\r$/m)
      assert.doesNotMatch(text, /\u001b\[\?25l/)
    }
    assert.match(uncoloured, /⠋/)
    assert.doesNotMatch(uncoloured, /\u001b\[3\dm/)
    assert.match(ascii, /m-\u001b\[39m waiting for you at github \(0:00\)/)
    assert.doesNotMatch(ascii, /[^\u0000-\u007f]/)
  })

  describe('over ssh', () => {
    const ssh = { SSH_CONNECTION: '203.0.113.9 5000 203.0.113.5 22', SSH_TTY: '/dev/pts/9' }

    it('opens no browser, and tells the ways without one', async function () {
      if (process.platform === 'win32') return this.skip()
      const folder = await temporaryFolder()
      const opened = join(folder, 'opened')
      await writeFile(join(folder, 'browser'), `#!/bin/sh\ntouch '${opened}'\n`)
      await chmod(join(folder, 'browser'), 0o700)
      const env = {
        ...ssh,
        BROWSER: 'browser',
        DISPLAY: ':0',
        PATH: `${folder}${delimiter}${process.env['PATH']}`,
      }
      const server = await startLoginServer([authorized])
      const { stderr } = await run(['oauth', 'login', 'github'], { home: server.home, env })
      await server.close()
      await assert.rejects(stat(opened), { code: 'ENOENT' })
      assert.match(stderr, /^ {2}ssh -N -L 53174:127\.0\.0\.1:53174 \S+@203\.0\.113\.5$/m)
      assert.match(stderr, /--paste/)
      assert.doesNotMatch(stderr, /paste the address/)
    })

    /** A login on a terminal that waits for the browser, until something is pasted. */
    const asking = async (env: CliOptions['env'], args = '', secret?: string) => {
      let browserWins: () => void = () => undefined
      const finished = (response: ServerResponse) => response.end(JSON.stringify(authorized))
      const server = await startLoginServer(['open'], {
        redirect: ({ body }) => {
          if (!(body as { url: string }).url.includes('state=s'))
            return [400, { code: 'callback-invalid', detail: 'the state is not of this login' }]
          browserWins()
          return [200, authorized]
        },
        waiting: (response) => {
          browserWins = () => finished(response)
        },
      })
      const child = startOnTerminal(`oauth login github ${args}`, { home: server.home, env })
      const ended = resultOf(child)
      if (secret !== undefined) {
        await untilSaid(child, 'stdout', /not shown/)
        child.stdin?.write(`${secret}\r`)
      }
      await untilSaid(child, 'stdout', /or paste> /)
      return { server, child, ended, browserWins: () => browserWins() }
    }

    it('takes what is pasted on a terminal by itself, however long it is', async function () {
      if (!hasTerminal()) return this.skip()
      const { server, child, ended } = await asking(ssh)
      const refused = untilSaid(child, 'stdout', /the state is not of this login/)
      child.stdin?.write('http://127.0.0.1:53174/callback?state=wrong\r')
      await refused
      const long = `${redirected}&more=${'x'.repeat(6000)}`
      child.stdin?.write(`${long}\r`)
      const { code, stdout } = await ended
      await server.close()
      assert.equal(code, 0, stdout)
      assert.match(stdout, /logged in to github as octocat/)
      const pasted = server.calls.filter(({ path }) => path.endsWith('/redirect')).at(-1)
      assert.deepEqual(pasted?.body, { url: long })
    })

    it('asks for the client secret before the address', async function () {
      if (!hasTerminal()) return this.skip()
      const args = '--client-secret-stdin --paste --no-browser'
      const { server, child, ended } = await asking({}, args, 's3cret')
      child.stdin?.write(`${redirected}\r`)
      const { code, stdout } = await ended
      await server.close()
      assert.equal(code, 0, stdout)
      assert.doesNotMatch(stdout, /s3cret/)
      const sent = server.calls.find(({ path }) => path === '/oauth/start')
      assert.deepEqual(sent?.body, { provider: 'github', clientSecret: 's3cret' })
    })

    it('says that a pipe cannot give both the client secret and the address', async () => {
      const args = ['oauth', 'login', 'github', '--client-secret-stdin', '--paste']
      const { code, stderr } = await run(args, { stdin: 's3cret' })
      assert.equal(code, 2)
      assert.match(stderr, /cannot both read a pipe[^]*client_secret_env/)
    })

    it('is as well finished by the browser, with something half typed', async function () {
      if (!hasTerminal()) return this.skip()
      const { server, child, ended, browserWins } = await asking({}, '--no-browser --paste')
      const echoed = untilSaid(child, 'stdout', /http:\/\/127/)
      child.stdin?.write('http://127')
      await echoed
      browserWins()
      const { code, stdout } = await ended
      await server.close()
      assert.equal(code, 0)
      assert.match(stdout, /logged in to github as octocat\r\n$/)
      assert.ok(!server.calls.some(({ path }) => path.endsWith('/redirect')))
    })
  })

  describe('where the browser is elsewhere', () => {
    it('names the ways without one before the page, and --device only where it exists', async () => {
      const withCode = await loggedIn(authorized, { start: { device: true } })
      assert.match(
        withCode.stderr,
        /^is the browser elsewhere\? use --paste, or --device to enter a code/,
      )
      const without = await loggedIn(authorized)
      assert.match(without.stderr, /^is the browser elsewhere\? use --paste\nopen this page/)
      assert.doesNotMatch(without.stderr, /--device/)
      const quiet = await loggedIn(authorized, {}, ['--quiet'])
      assert.match(quiet.stderr, /^open this page/)
      const chosen = await loggedIn(authorized, {}, ['--paste'])
      assert.match(chosen.stderr, /^open this page/)
    })

    it('asks for the address at once on a terminal, without a display or in a container', async function () {
      if (!hasTerminal()) return this.skip()
      const none = { DISPLAY: undefined, WAYLAND_DISPLAY: undefined, BROWSER: undefined }
      const inContainer = { ...none, BROWSER: 'true', REMOTE_CONTAINERS: 'true' }
      for (const env of [none, inContainer]) {
        let answer = (): unknown => undefined
        const server = await startLoginServer(['open'], {
          start: { device: true },
          redirect: () => [200, (answer(), authorized)],
          waiting: (response) => (answer = () => response.end(JSON.stringify(authorized))),
        })
        const child = startOnTerminal('oauth login github', { home: server.home, env })
        const ended = resultOf(child)
        await untilSaid(child, 'stdout', /^is the browser [^]*--paste[^]*--device[^]*or paste> /m)
        child.stdin?.write(`${redirected}\r`)
        const { code, stdout } = await ended
        await server.close()
        assert.equal(code, 0, stdout)
        assert.match(stdout, /logged in to github as octocat/)
      }
    })
  })

  it('ends when the browser wins though standard input stays open', async () => {
    const server = await startLoginServer([pending, authorized])
    const child = start(['oauth', 'login', 'github', '--paste', '--no-browser'], {
      home: server.home,
      keepStdin: true,
    })
    assert.equal((await resultOf(child)).code, 0)
    await server.close()
  })

  it('cancels the login when nobody can paste any more, and no browser was opened', async () => {
    const cancelled: Login = { ...pending, status: 'cancelled' }
    const server = await startLoginServer(['open'], {
      waiting: (response) => (answer = () => response.end(JSON.stringify(cancelled))),
      cancel: () => {
        answer()
        return [204, undefined]
      },
    })
    let answer = (): unknown => undefined
    const { code, stderr } = await run(['oauth', 'login', 'github', '--paste', '--no-browser'], {
      home: server.home,
      stdin: `${redirected}\n`,
    })
    await server.close()
    assert.equal(code, 1)
    assert.match(stderr, /the state is not of this login/)
    assert.match(stderr, /standard input ended: no address can be pasted any more\n/)
    assert.match(stderr, /doorward: the login to github was cancelled\n/)
  })
})
