import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import {
  type Login,
  type StartedLogin,
  type TokenSummary,
  loginSchema,
  logoutSchema,
  startedLoginSchema,
  statusSchema,
  tokenSummarySchema,
} from '../../../shared/api/api.ts'
import { resultOf, run, start, untilSaid } from '../../cli/support/cli.ts'
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '../../support/providers/authorization-server.ts'
import { approve, browse, visit } from '../../support/desktop/browser.ts'
import { type RunningDaemon, startDaemon } from '../../support/daemon/daemon.ts'

describe('a login from its start to its end', () => {
  let server: AuthorizationServer
  let daemon: RunningDaemon

  before(async () => {
    server = await startAuthorizationServer()
    daemon = await startDaemon({
      env: `MINE_SECRET=${server.secret}\n`,
      gateway: `
oauth: { callback_port: 0 }
providers:
  mine:
    issuer: ${server.issuer}
    scopes: [openid, email, repo]
    client_id: confidential
    client_secret_env: MINE_SECRET
`,
    })
  })
  after(async () => {
    assert.equal(await daemon.stop(), 0)
    await server.close()
  })

  const tokenFile = () => join(daemon.home.tokens, 'mine.json')

  it('brings tokens into a file of the owner, by the command line and a browser', async () => {
    const login = start(['oauth', 'login', 'mine', '--no-browser', '--json'], { home: daemon.home })
    const ended = resultOf(login)
    const said = await untilSaid(login, 'stdout', /\n/)
    const started = startedLoginSchema.parse(JSON.parse(said.split('\n')[0] ?? ''))
    const page = await browse(started.authorizationUrl)
    assert.deepEqual([page.status, new URL(page.url).search], [200, ''])
    assert.match(page.text, /ada@example\.com/)

    const { code, stdout } = await ended
    assert.equal(code, 0)
    const outcome = loginSchema.parse(JSON.parse(stdout.trim().split('\n').at(-1) ?? ''))
    assert.equal(outcome.status, 'authorized')
    assert.equal((await stat(tokenFile())).mode & 0o777, 0o600)
    const record = JSON.parse(await readFile(tokenFile(), 'utf8')) as Record<string, string>
    assert.equal(await server.isAccessTokenAlive(record['accessToken'] ?? ''), true)

    const listed = await run(['oauth', 'list', '--json'], { home: daemon.home })
    const { tokens } = JSON.parse(listed.stdout) as { tokens: TokenSummary[] }
    const [token] = tokens.map((item) => tokenSummarySchema.parse(item))
    assert.deepEqual(
      [token?.provider, token?.status, token?.account?.name, token?.scopes],
      ['mine', 'ok', 'ada@example.com', ['openid', 'email', 'repo']],
    )
    const shown = (await run(['oauth', 'list'], { home: daemon.home })).stdout
    assert.match(shown, /mine .*ada@example\.com/)
    const status = statusSchema.parse(await daemon.client.get('/status'))
    assert.deepEqual(
      status.providers.find(({ provider }) => provider === 'mine'),
      {
        provider: 'mine',
        clientKnown: true,
        status: 'ok',
        account: { id: 'person-1', name: 'ada@example.com' },
      },
    )
    for (const secret of [record['accessToken'], record['refreshToken'], server.secret])
      for (const text of [stdout, listed.stdout, shown, JSON.stringify(status), page.text])
        assert.equal(text.includes(secret ?? ''), false)
  })

  it('survives a restart of the daemon', async () => {
    const { home } = daemon
    await daemon.stop()
    daemon = await startDaemon({ home })
    const { tokens } = await daemon.client.get<{ tokens: TokenSummary[] }>('/oauth/tokens')
    assert.equal(tokens[0]?.account?.name, 'ada@example.com')
  })

  it('ends by a logout that the provider confirms, and leaves no file', async () => {
    const record = JSON.parse(await readFile(tokenFile(), 'utf8')) as Record<string, string>
    const result = await run(['oauth', 'logout', 'mine', '--json'], { home: daemon.home })
    assert.equal(result.code, 0)
    assert.equal(logoutSchema.parse(JSON.parse(result.stdout)).revokedAtProvider, true)
    assert.equal(existsSync(tokenFile()), false)
    assert.equal(await server.isRefreshTokenAlive(record['refreshToken'] ?? ''), false)
    assert.equal(await server.isAccessTokenAlive(record['accessToken'] ?? ''), false)
    const again = await run(['oauth', 'logout', 'mine'], { home: daemon.home })
    assert.equal(again.code, 1)
  })

  it('keeps waiting while strangers call at its callback, and is cancelled by its owner', async () => {
    const started = await daemon.client.post<StartedLogin>('/oauth/start', { provider: 'mine' })
    const callback = await approve(started.authorizationUrl)
    const forged = new URL(callback)
    forged.searchParams.set('state', 'A'.repeat(43))
    assert.equal((await visit(forged.href)).status, 400)
    const path = `/oauth/logins/${started.loginId}`
    assert.equal((await daemon.client.get<Login>(path)).status, 'pending')
    await daemon.client.delete(path)
    assert.equal((await daemon.client.get<Login>(path)).status, 'cancelled')
    await assert.rejects(visit(callback), { code: 'ECONNREFUSED' })
    assert.equal(existsSync(tokenFile()), false)
  })

  it('is refused with the way out while another program holds the callback port', async () => {
    const squatter = createServer().listen(0, '127.0.0.1')
    await once(squatter, 'listening')
    const address = squatter.address()
    const port = typeof address === 'object' ? address?.port : undefined
    const other = await startDaemon({
      gateway: `oauth: { callback_port: ${port} }\nproviders: { mine: { issuer: "${server.issuer}", client_id: public } }\n`,
    })
    try {
      const { code, stderr } = await run(['oauth', 'login', 'mine', '--no-browser'], {
        home: other.home,
      })
      assert.equal(code, 1)
      assert.match(stderr, new RegExp(`port ${port} .*in use`))
      assert.match(stderr, /oauth\.callback_port/)
    } finally {
      await other.stop()
      squatter.close()
    }
  })
})
