import assert from 'node:assert/strict'
import { chmod, readFile, stat, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { temporaryFolder } from '../../../support/temporary.ts'
import { statusWith } from '../../../support/daemon/fake-daemon.ts'
import { type Call, startContractServer } from '../../support/contract-server.ts'
import { hasTerminal, resultOf, run, start, startOnTerminal, untilSaid } from '../../support/cli.ts'
import { authorized, pending, startLoginServer, started } from '../../support/login-server.ts'

const { authorizationUrl } = started
const loginServer = startLoginServer

const startOf = (calls: readonly Call[]): unknown =>
  calls.find(({ path }) => path === '/oauth/start')?.body

describe('cli: oauth', () => {
  it('prints the URL, waits, and says who is logged in', async () => {
    const server = await loginServer([pending, authorized])
    const { code, stdout, stderr } = await run(
      ['oauth', 'login', 'github', '--client-id', 'c', '--scopes', 'repo, user'],
      { home: server.home },
    )
    await server.close()
    assert.equal(code, 0, stderr)
    assert.equal(stdout, 'logged in to github as octocat\n')
    assert.ok(stderr.includes(authorizationUrl))
    assert.match(stderr, /no browser could be opened/)
    assert.deepEqual(startOf(server.calls), {
      provider: 'github',
      clientId: 'c',
      scopes: ['repo', 'user'],
    })
  })

  it('gives the started login and its outcome as JSON lines', async () => {
    const server = await loginServer([authorized])
    const { code, stdout, stderr } = await run(['oauth', 'login', 'github', '--json'], {
      home: server.home,
    })
    await server.close()
    assert.deepEqual([code, stderr], [0, ''])
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown)
    assert.deepEqual(lines, [started, authorized])
  })

  it('takes the client secret from standard input, and warns of one on the command line', async () => {
    const server = await loginServer([authorized])
    const { home } = server
    const quiet = await run(['oauth', 'login', 'github', '--client-secret-stdin'], {
      home,
      stdin: 'a secret\n',
    })
    assert.deepEqual(startOf(server.calls), { provider: 'github', clientSecret: 'a secret' })
    assert.doesNotMatch(quiet.stderr, /warning|a secret/)
    const loud = await run(['oauth', 'login', 'github', '--client-secret', 'a secret'], { home })
    assert.match(loud.stderr, /warning: other users/)
    const none = await run(['oauth', 'login', 'github', '--client-secret-stdin'], {
      home,
      stdin: '\n',
    })
    await server.close()
    assert.equal(loud.code, 0)
    assert.equal(none.code, 2)
  })

  it('asks a terminal for the client secret and does not show it', async function () {
    if (!hasTerminal()) return this.skip()
    const server = await loginServer([authorized])
    const child = startOnTerminal('oauth login github --no-browser --client-secret-stdin', server)
    const ended = resultOf(child)
    await untilSaid(child, 'stdout', /client secret \(not shown\): /)
    child.stdin?.write('a secret\r')
    const { code, stdout } = await ended
    await server.close()
    assert.equal(code, 0, stdout)
    assert.deepEqual(startOf(server.calls), { provider: 'github', clientSecret: 'a secret' })
    assert.doesNotMatch(stdout, /a secret/)
  })

  it('opens the browser with exactly the URL, unless --no-browser', async function () {
    if (process.platform !== 'linux') return this.skip()
    const folder = await temporaryFolder()
    const opened = join(folder, 'opened')
    await writeFile(
      join(folder, 'browser'),
      `#!/bin/sh\nprintf '%s' "$1" > '${opened}.part'\nmv '${opened}.part' '${opened}'\n`,
    )
    await chmod(join(folder, 'browser'), 0o700)
    const env = { BROWSER: 'browser', PATH: `${folder}${delimiter}${process.env['PATH']}` }
    const exists = async () =>
      stat(opened).then(
        () => true,
        () => false,
      )

    const server = await loginServer([authorized])
    await run(['oauth', 'login', 'github', '--no-browser'], { home: server.home, env })
    assert.equal(await exists(), false)
    const { stderr } = await run(['oauth', 'login', 'github'], { home: server.home, env })
    while (!(await exists())) await new Promise((resolve) => setImmediate(resolve))
    await server.close()
    assert.equal(await readFile(opened, 'utf8'), authorizationUrl)
    assert.ok(stderr.includes(authorizationUrl))
  })

  it('cancels the login at Ctrl-C and ends with 130', async function () {
    if (process.platform === 'win32') return this.skip()
    const server = await loginServer(['open'])
    const child = start(['oauth', 'login', 'github'], { home: server.home })
    const ended = resultOf(child)
    await untilSaid(child, 'stderr', /waiting for you/)
    child.kill('SIGINT')
    const { code, stdout, stderr } = await ended
    await server.close()
    assert.deepEqual([code, stdout], [130, ''])
    assert.match(stderr, /the login to github is cancelled\n$/)
    assert.deepEqual(
      server.calls.filter(({ method }) => method === 'DELETE').map(({ path }) => path),
      ['/oauth/logins/login_1'],
    )
  })

  it('tries pasted URLs and goes on waiting after a wrong one', async () => {
    let settle: (() => void) | undefined
    const server = await startContractServer(({ path, body }, response) => {
      if (path === '/oauth/start') return [201, started]
      if (path === '/status') return [200, statusWith()]
      if (path === '/oauth/tokens') return [200, { tokens: [] }]
      if (path === '/oauth/logins/login_1') return [200, pending]
      if (!path.endsWith('/redirect')) {
        settle = () => response.end(JSON.stringify(authorized))
        response.writeHead(200, { 'content-type': 'application/json' })
        response.flushHeaders()
        return undefined
      }
      if ((body as { url: string }).url.includes('state=s')) {
        settle?.()
        return [200, {}]
      }
      return [400, { code: 'callback-invalid', detail: 'the state is not of this login' }]
    })
    const { code, stdout, stderr } = await run(
      ['oauth', 'login', 'github', '--paste', '--no-browser'],
      {
        home: server.home,
        stdin:
          'http://127.0.0.1:53174/callback?state=wrong\n\nhttp://127.0.0.1:53174/callback?code=k&state=s\n',
      },
    )
    await server.close()
    assert.equal(code, 0, stderr)
    assert.equal(stdout, 'logged in to github as octocat\n')
    assert.match(stderr, /paste the address/)
    assert.match(stderr, /the state is not of this login/)
    assert.doesNotMatch(stderr, /code=k/)
  })

  it('shows what the daemon refuses a start with', async () => {
    const problem = {
      code: 'client-unknown',
      detail: 'no client id is known',
      hint: 'give --client-id',
    }
    const server = await startContractServer(() => [409, problem])
    const { code, stderr } = await run(['oauth', 'login', 'github', '--json'], {
      home: server.home,
    })
    await server.close()
    assert.equal(code, 1)
    assert.deepEqual(JSON.parse(stderr), problem)
  })

  it('says honestly whether the provider confirmed the revocation', async () => {
    const answer = (revokedAtProvider: boolean) => ({
      provider: 'slack',
      removed: true,
      revokedAtProvider,
      ...(revokedAtProvider ? {} : { detail: 'it has no revocation endpoint' }),
    })
    const yes = await startContractServer(() => [200, answer(true)])
    const confirmed = await run(['oauth', 'logout', 'slack'], { home: yes.home })
    await yes.close()
    assert.deepEqual([confirmed.code, confirmed.stderr], [0, ''])
    assert.equal(confirmed.stdout, 'logged out of slack: slack confirmed the revocation\n')
    const no = await startContractServer(() => [200, answer(false)])
    const unconfirmed = await run(['oauth', 'logout', 'slack'], { home: no.home })
    await no.close()
    assert.equal(unconfirmed.code, 0)
    assert.match(unconfirmed.stdout, /on this machine/)
    assert.match(unconfirmed.stderr, /did not confirm a revocation: it has no revocation endpoint/)
  })

  it('says of each token what became of it', async () => {
    const outcome = async (revokedAtProvider: boolean, detail: string) => {
      const answer = { provider: 'github', removed: true, revokedAtProvider, detail }
      const server = await startContractServer(() => [200, answer])
      const result = await run(['oauth', 'logout', 'github'], { home: server.home })
      await server.close()
      return result
    }
    const taken = await outcome(true, 'refresh token revoked; access token left to expire')
    assert.equal(
      taken.stdout,
      'logged out of github: github confirmed the revocation\n  refresh token revoked; access token left to expire\n',
    )
    const later = await outcome(
      false,
      'it does not answer; it is tried again until 2026-07-07, or you can revoke the access at https://example.com/\u001b[31mapps',
    )
    assert.deepEqual([later.code, later.stdout], [0, 'logged out of github on this machine\n'])
    assert.equal(
      later.stderr,
      'warning: github did not confirm a revocation: it does not answer; it is tried again until 2026-07-07, or you can revoke the access at https://example.com/apps\n',
    )
  })

  it('ends with 1 when not logged in, and asks to forget the client only with --forget', async () => {
    const problem = { code: 'not-logged-in', detail: 'not logged in to github' }
    const shown = { ...problem, hint: 'doorward oauth list' }
    const server = await startContractServer(() => [404, problem])
    const plain = await run(['oauth', 'logout', 'github'], { home: server.home })
    const forgetting = await run(['oauth', 'logout', 'github', '--forget', '--json'], {
      home: server.home,
    })
    await server.close()
    assert.equal(plain.code, 1)
    assert.match(plain.stderr, /not logged in to github/)
    assert.equal(forgetting.code, 1)
    assert.deepEqual(JSON.parse(forgetting.stderr), shown)
    assert.deepEqual(
      server.calls.map(({ path }) => path).filter((path) => path.startsWith('/oauth')),
      ['/oauth/tokens/github', '/oauth/tokens/github?forget=true'],
    )
  })

  it('asks a person who logs out of a provider that there is not which was meant', async () => {
    const providers = [{ provider: 'github' }, { provider: 'google' }]
    const server = await startContractServer(({ path }) =>
      path === '/status'
        ? [200, { providers }]
        : [404, { code: 'not-logged-in', detail: 'you are not logged in' }],
    )
    const hintOf = async (name: string) => {
      const { code, stderr } = await run(['oauth', 'logout', name], { home: server.home })
      assert.equal(code, 1)
      return /hint: (.*)/.exec(stderr)?.[1]
    }
    assert.equal(await hintOf('gihub'), 'did you mean "github"?')
    assert.equal(await hintOf('google'), 'doorward oauth list')
    assert.equal(await hintOf('keycloak'), 'doorward oauth list')
    await server.close()
  })
})
