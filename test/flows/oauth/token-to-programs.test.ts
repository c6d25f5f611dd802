import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type EventRecord, type StartedLogin, accessTokenSchema } from '../../../shared/api.ts'
import { version } from '../../../shared/version.ts'
import { type CliResult, resultOf, run, start, untilSaid } from '../../cli/support/cli.ts'
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '../../support/providers/authorization-server.ts'
import { approve, browse } from '../../support/desktop/browser.ts'
import { type RunningDaemon, cliMain, startDaemon } from '../../support/daemon/daemon.ts'
import { gitEnvironment } from '../../support/servers/git-server.ts'
import { temporaryFolder } from '../../support/temporary.ts'

describe('a token on its way to the programs that use it', () => {
  let server: AuthorizationServer
  let daemon: RunningDaemon
  const seen = new Set<string>()

  before(async () => {
    // So short that each of the default validity is a new one.
    server = await startAuthorizationServer({ accessTokenTtl: 30 })
    daemon = await startDaemon({
      gateway: `
oauth: { callback_port: 0 }
providers:
  mine: { issuer: "${server.issuer}", scopes: [openid, email, repo], client_id: public }
  github:
    dialect: standard
    authorization_endpoint: ${server.issuer}/auth
    token_endpoint: ${server.issuer}/token
    scopes: [openid, repo]
    client_id: public
`,
    })
  })
  after(async () => {
    assert.equal(await daemon.stop(), 0)
    await server.close()
  })

  const cli = async (args: readonly string[], stdin?: string): Promise<CliResult> =>
    run(args, { home: daemon.home, ...(stdin !== undefined && { stdin }) })

  const logIn = async (provider: string, ...args: string[]): Promise<CliResult> => {
    const login = start(['oauth', 'login', provider, '--no-browser', '--json', ...args], {
      home: daemon.home,
    })
    const ended = resultOf(login)
    const said = await untilSaid(login, 'stdout', /\n/)
    await browse((JSON.parse(said.split('\n')[0] ?? '') as StartedLogin).authorizationUrl)
    return ended
  }

  it('is refused with the command to run before there is a login', async () => {
    for (const args of [
      ['token', 'mine'],
      ['exec', 'mine', '--', 'true'],
    ]) {
      const { code, stdout, stderr } = await cli(['oauth', ...args])
      assert.deepEqual([code, stdout], [4, ''])
      assert.match(stderr, /not logged in to mine\nhint: doorward oauth login mine\n/)
    }
    const unknown = await cli(['oauth', 'token', 'no-such'])
    assert.equal(unknown.code, 1)
    assert.match(unknown.stderr, /there is no provider no-such\nhint: known: /)
  })

  it('comes by a pasted address as well as by the browser', async () => {
    const login = start(['oauth', 'login', 'mine', '--no-browser', '--paste', '--json'], {
      home: daemon.home,
      keepStdin: true,
    })
    const ended = resultOf(login)
    const said = await untilSaid(login, 'stdout', /\n/)
    const { authorizationUrl } = JSON.parse(said.split('\n')[0] ?? '') as StartedLogin
    const redirected = await approve(authorizationUrl)
    const forged = new URL(redirected)
    forged.searchParams.set('state', 'A'.repeat(43))
    const refused = untilSaid(login, 'stderr', /"code": "callback-invalid"/)
    login.stdin?.write(`${forged.href}\n`)
    await refused
    login.stdin?.write(`${redirected}\n`)
    const { code, stdout } = await ended
    assert.equal(code, 0)
    assert.match(stdout.trim().split('\n').at(-1) ?? '', /"status":"authorized"/)
    assert.equal((await logIn('github')).code, 0)
  })

  it('is printed, and works', async () => {
    const { code, stdout, stderr } = await cli(['oauth', 'token', 'mine', '--min-validity', '0s'])
    assert.deepEqual([code, stderr], [0, ''])
    const token = stdout.slice(0, -1)
    seen.add(token)
    assert.equal(await server.isAccessTokenAlive(token), true)
    const json = accessTokenSchema.parse(
      JSON.parse((await cli(['oauth', 'token', 'mine', '--min-validity', '20s', '--json'])).stdout),
    )
    assert.equal(json.accessToken, token)
  })

  it('is a new one where the stored one does not last as long as asked', async () => {
    const asked = server.tokenRequests.length
    const { stdout } = await cli(['oauth', 'token', 'mine', '--min-validity', '1h'])
    assert.equal(server.tokenRequests.length, asked + 1)
    const token = stdout.trim()
    assert.equal(seen.has(token), false)
    assert.equal(await server.isAccessTokenAlive(token), true)
    seen.add(token)
  })

  it('reaches a command in its environment, and git by its own protocol', async () => {
    const print = `process.stdout.write([process.env.MINE_TOKEN, process.env.GH].join(' '))`
    const executed = await cli([
      'oauth',
      'exec',
      'mine',
      'github=GH',
      '--',
      process.execPath,
      '-e',
      print,
    ])
    assert.equal(executed.code, 0, executed.stderr)
    const [mine = '', github = ''] = executed.stdout.split(' ')
    for (const token of [mine, github]) {
      assert.equal(await server.isAccessTokenAlive(token), true)
      seen.add(token)
    }

    const folder = await temporaryFolder()
    const configuration = join(folder, 'gitconfig')
    const helper = `!'${process.execPath}' '${cliMain}' --home '${daemon.home.root}' oauth git-credential`
    await writeFile(configuration, `[credential "${server.issuer}"]\nhelper = "${helper}"\n`)
    const git = spawn('git', ['credential', 'fill'], { env: gitEnvironment(configuration) })
    git.stdin.end(`protocol=http\nhost=${new URL(server.issuer).host}\n`)
    const filled = await resultOf(git)
    assert.equal(filled.code, 0, filled.stderr)
    const [, password = ''] = /^password=(.+)$/m.exec(filled.stdout) ?? []
    assert.equal(await server.isAccessTokenAlive(password), true)
    seen.add(password)
  })

  it('is reported with who asked, and is in no event and no log', async () => {
    const { events } = await daemon.client.get<{ events: EventRecord[] }>('/events?limit=200')
    const told = events.map(({ detail }) => detail ?? '')
    for (const [provider, command] of [
      ['mine', 'oauth token'],
      ['mine', 'oauth exec node'],
      ['github', 'oauth exec node'],
      ['github', 'oauth git-credential'],
    ] as const)
      assert.ok(
        told.some((detail) =>
          detail.startsWith(`${provider}: token issued to doorward-cli/${version} (${command})`),
        ),
        told.join('\n'),
      )
    const logs = await Promise.all(
      (await readdir(daemon.home.logs)).map((name) =>
        readFile(join(daemon.home.logs, name), 'utf8'),
      ),
    )
    assert.ok(seen.size >= 3)
    for (const token of seen)
      for (const text of [JSON.stringify(events), daemon.stdout(), daemon.stderr(), ...logs])
        assert.equal(text.includes(token), false)
  })

  it('ends with the login: its cause is listed, and the next one says whose place it takes', async () => {
    const record = JSON.parse(await readFile(join(daemon.home.tokens, 'mine.json'), 'utf8')) as {
      refreshToken: string
    }
    await server.revokeGrantOf(record.refreshToken)
    // One that was renewed a moment ago would still be given out.
    const { home } = daemon
    await daemon.stop()
    daemon = await startDaemon({ home })
    const { code, stderr } = await cli(['oauth', 'token', 'mine', '--min-validity', '1h'])
    assert.equal(code, 4)
    assert.match(stderr, /the login to mine has ended: .+\nhint: doorward oauth login mine\n/)
    const listed = await cli(['oauth', 'list'])
    assert.match(listed.stdout, /^mine +ada@example\.com +needs-login /m)
    assert.match(
      listed.stderr,
      /^the login to mine has ended: .+\nhint: doorward oauth login mine$/m,
    )

    const login = start(['oauth', 'login', 'mine', '--no-browser'], { home: daemon.home })
    const ended = resultOf(login)
    const said = await untilSaid(login, 'stderr', /waiting for you/)
    assert.match(
      said,
      /^the login to mine as ada@example\.com has expired; this login replaces it$/m,
    )
    await browse(/^ {2}(http:\S+)$/m.exec(said)?.[1] ?? '')
    assert.equal((await ended).stdout, 'logged in to mine as ada@example.com\n')
  })
})
