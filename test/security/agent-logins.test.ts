import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chmod, copyFile, mkdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { delimiter, dirname, join } from 'node:path'
import { runCli } from '../../daemon/agents/cli-agent.ts'
import {
  type LoginKind,
  takeRenewed,
  withoutRefreshTokens,
} from '../../daemon/agents/logins/login-file.ts'
import { runProcess } from '../../daemon/agents/process.ts'
import { cancelled } from '../../daemon/util/concurrency.ts'
import type { CliAgent } from '../../shared/agents/schema.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { findSandbox } from '../../shared/sandbox/probe.ts'
import { fixtureAgent } from '../support/fixtures.ts'
import { hasOtherUser, runAsOther } from '../support/other-user.ts'
import { temporaryFolder } from '../support/temporary.ts'

/*
 * The owner's login of an agent program, and an agent that wants it: scripts of the programs' names, in the real
 * sandbox. test/agent-clis has a real program that renews its login.
 */

const hourMs = 60 * 60_000

const jwt = (endsAt: number, name: string): string =>
  ['{"alg":"none"}', JSON.stringify({ exp: Math.floor(endsAt / 1000), name })]
    .map((part) => Buffer.from(part).toString('base64url'))
    .concat('signature')
    .join('.')

/** Where each program has its login in a home, and the file. */
const files: Readonly<
  Record<LoginKind, { path: string; write: (refresh: string, endsAt: number) => object }>
> = {
  claude: {
    path: '.claude/.credentials.json',
    write: (refreshToken, expiresAt) => ({
      claudeAiOauth: { accessToken: 'access-1', refreshToken, expiresAt, scopes: ['a'] },
      mcpOAuth: { tracker: { accessToken: 'mcp-canary', refreshToken: 'mcp-canary' } },
    }),
  },
  codex: {
    path: '.codex/auth.json',
    write: (refresh_token, endsAt) => ({
      OPENAI_API_KEY: null,
      tokens: {
        id_token: 'x',
        access_token: jwt(endsAt, 'access-1'),
        refresh_token,
        account_id: 'me',
      },
      last_refresh: '2026-01-01T00:00:00Z',
    }),
  },
  opencode: {
    path: '.local/share/opencode/auth.json',
    write: (refresh, expires) => ({
      openai: { type: 'oauth', access: 'access-1', refresh, expires, accountId: 'me' },
      other: { type: 'api', key: 'key' },
    }),
  },
}
const kinds = ['claude', 'codex', 'opencode'] as const

type Seen = { readonly prompt: string; readonly given: string; readonly access: string }

/** A server whose refresh tokens work once; it ends the login of one that is used again, as OpenAI's and Anthropic's. */
const startLoginServer = async () => {
  const seen: Seen[] = []
  let renewals = 0
  let current = 'refresh-1'
  let isCodex = false
  let valid = /access-1/
  const onToken: (() => Promise<unknown>)[] = []
  const server = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = []
      for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
      const body: unknown = JSON.parse(Buffer.concat(chunks).toString())
      const answer = (value: object) => response.end(JSON.stringify(value))
      if (request.url === '/seen') {
        seen.push(body as Seen)
        const payload = Buffer.from((body as Seen).access.split('.')[1] ?? '', 'base64url')
        return answer({ isValid: valid.test((body as Seen).access + payload.toString()) })
      }
      renewals += 1
      await onToken.shift()?.()
      if (body !== current) {
        current = 'ended'
        return answer({})
      }
      current = `refresh-${renewals + 1}`
      const access = `access-${renewals + 1}`
      valid = new RegExp(access)
      const expiresAt = Date.now() + 8 * hourMs
      const accessToken = isCodex ? jwt(expiresAt, access) : access
      return answer({ accessToken, refreshToken: current, expiresAt })
    })()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    onToken,
    renewals: () => renewals,
    /** Codex reads the end of its access token in it. */
    forCodex: () => (isCodex = true),
    /** The first refresh token is valid again. */
    restart: () => (current = 'refresh-1'),
    refuse: () => (valid = /nothing/),
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

describe('the login of an agent program', function () {
  this.timeout(60_000)
  let person: string
  let programs: string
  let server: Awaited<ReturnType<typeof startLoginServer>>

  before(async function () {
    // CI has bubblewrap; elsewhere these tests need it.
    if (process.platform !== 'linux') this.skip()
    if (!process.env['CI'] && 'missing' in (await findSandbox(process.env))) this.skip()
    programs = await temporaryFolder()
    const [, fixture = ''] = fixtureAgent('has-login')
    const script = await readFile(fixture, 'utf8')
    await writeFile(join(programs, 'package.json'), '{"type":"module"}')
    for (const kind of kinds) {
      await writeFile(join(programs, kind), `#!${process.execPath}\n${script}`)
      await chmod(join(programs, kind), 0o755)
    }
  })
  beforeEach(async () => {
    person = await temporaryFolder()
    server = await startLoginServer()
  })
  afterEach(() => server.close())

  const pathOf = (kind: LoginKind) => join(person, files[kind].path)

  const logIn = async (kind: LoginKind, endsAt: number): Promise<string> => {
    if (kind === 'codex') server.forCodex()
    const text = JSON.stringify(files[kind].write('refresh-1', endsAt))
    await mkdir(dirname(pathOf(kind)), { recursive: true })
    await writeFile(pathOf(kind), text, { mode: 0o600 })
    return text
  }

  const run = async (
    kind: LoginKind,
    act = '',
    more: Partial<CliAgent> = {},
    { signal } = new AbortController(),
  ) =>
    runCli(
      {
        kind,
        timeout: 30_000,
        concurrency: 1,
        output_limit: 10_000,
        sandbox: kind === 'codex' ? 'off' : 'required',
        env: { SERVER: server.origin, ACT: act },
        ...more,
      },
      'a text of a stranger',
      {
        env: {
          PATH: [programs, process.env['PATH']].join(delimiter),
          HOME: person,
        },
        homeFolder: join(person, '.doorward'),
        run: runProcess,
        getToken: async () => 'none',
        signal,
      },
    )

  for (const kind of kinds) {
    describe(`of the name ${kind}`, () => {
      it('stays as it is, whatever an agent writes there, and shows it no refresh token', async () => {
        const text = await logIn(kind, Date.now() + 8 * hourMs)
        await Promise.all(['replaces', 'links', 'removes'].map(async (act) => run(kind, act)))
        assert.equal(await readFile(pathOf(kind), 'utf8'), text)
        assert.equal(server.renewals(), 0)
        assert.equal(server.seen.length, 3)
        for (const { prompt, given, access } of server.seen) {
          assert.equal(prompt, 'a text of a stranger')
          assert.ok(given.includes(access))
          assert.doesNotMatch(given, /refresh-|mcp-canary/)
        }
      })

      it('is renewed once for all runs that need it, with no text of an event, and saved for its owner alone', async () => {
        await logIn(kind, Date.now() - hourMs)
        const answers = await Promise.all([run(kind), run(kind), run(kind, 'replaces')])
        assert.equal(answers.length, 3)
        assert.equal(server.renewals(), 1)
        const isRenewal = ({ prompt }: Seen) => prompt === 'Answer with the word ok.'
        const runs = server.seen.filter((one) => !isRenewal(one))
        assert.equal(runs.length, 3)
        for (const { given } of runs) assert.doesNotMatch(given, /refresh-/)
        const saved = await readFile(pathOf(kind), 'utf8')
        assert.match(saved, /refresh-2/)
        assert.doesNotMatch(saved, /refresh-1|evil/)
        const before = files[kind].write('', 0)
        assert.deepEqual(Object.keys(JSON.parse(saved) as object), Object.keys(before))
        assert.equal((await stat(pathOf(kind))).mode & 0o777, 0o600)
        // The next run finds it renewed.
        await run(kind)
        assert.equal(server.renewals(), 1)
      })
    })
  }

  it('is saved as soon as it is renewed, and its program stopped', async () => {
    await logIn('claude', Date.now() - hourMs)
    await run('claude', 'hangs', { timeout: 3000 })
    assert.match(await readFile(pathOf('claude'), 'utf8'), /refresh-2/)
  })

  it('is saved also where the event is cancelled while its program renews it', async () => {
    await logIn('claude', Date.now() - hourMs)
    const control = new AbortController()
    server.onToken.push(async () => control.abort(cancelled))
    await assert.rejects(run('claude', '', {}, control), { code: 'agent-stopped' })
    assert.match(await readFile(pathOf('claude'), 'utf8'), /refresh-2/)
  })

  it('stays as its owner leaves it, who renews or removes it at the same time', async () => {
    await logIn('claude', Date.now() - hourMs)
    const own = JSON.stringify(files.claude.write('refresh-own', Date.now() + hourMs))
    server.onToken.push(async () => writeFile(pathOf('claude'), own))
    await run('claude').catch(() => undefined)
    assert.equal(await readFile(pathOf('claude'), 'utf8'), own)
    await logIn('opencode', Date.now() - hourMs)
    server.restart()
    server.onToken.push(async () => rm(pathOf('opencode')))
    await assert.rejects(run('opencode'))
    await assert.rejects(stat(pathOf('opencode')), { code: 'ENOENT' })
  })

  it('is taken from no link, and written where a link of its owner leads', async () => {
    const text = await logIn('claude', Date.now() - hourMs)
    await run('claude', 'links').catch(() => undefined)
    assert.equal(await readFile(pathOf('claude'), 'utf8'), text)
    await logIn('opencode', Date.now() - hourMs)
    const real = join(person, 'real.json')
    await copyFile(pathOf('opencode'), real)
    await rm(pathOf('opencode'))
    await symlink(real, pathOf('opencode'))
    server.restart()
    await run('opencode')
    assert.match(await readFile(real, 'utf8'), /refresh-3/)
  })

  it('is saved where only its file can be written, and not renewed where nothing can', async function () {
    // Root writes whatever the mode.
    if (!hasOtherUser()) this.skip()
    const place = await temporaryFolder()
    await chmod(place, 0o777)
    const seen = await runAsOther(
      `import { chmodSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
       const [place, logins] = process.argv.slice(-2)
       const { LoginRenewals } = await import(logins)
       const folder = mkdtempSync(place + '/own-')
       const owner = folder + '/auth.json'
       const file = (refresh, expires) => ({ a: { type: 'oauth', access: 'a', refresh, expires } })
       writeFileSync(owner, JSON.stringify(file('one', 1)))
       chmodSync(folder, 0o555)
       const renew = async () => new LoginRenewals().renew({ kind: 'opencode', owner }, 1000, async () => file('two', 2))
       await renew()
       const saved = readFileSync(owner, 'utf8')
       writeFileSync(owner, JSON.stringify(file('one', 1)))
       chmodSync(owner, 0o444)
       await renew()
       const left = readFileSync(owner, 'utf8')
       chmodSync(folder, 0o755)
       console.log(JSON.stringify([saved, left].map((text) => JSON.parse(text).a.refresh)))`,
      place,
      new URL('../../daemon/agents/logins/logins.js', import.meta.url).href,
    )
    assert.deepEqual(seen, ['two', 'one'])
  })

  it('is renewed before its end where the service no longer accepts it', async () => {
    await logIn('claude', Date.now() + 8 * hourMs)
    server.refuse()
    const error = await run('claude').catch((error: unknown) => error)
    assert.ok(error instanceof DoorwardError)
    assert.match(error.localDetail ?? '', /401 Unauthorized \(run claude in a terminal/)
    await run('claude')
    assert.match(await readFile(pathOf('claude'), 'utf8'), /refresh-2/)
  })

  it('is not used, and so not renewed, by an agent that has a key or no network', async () => {
    await logIn('claude', Date.now() - hourMs)
    const env = { SERVER: server.origin, ANTHROPIC_API_KEY: 'key' }
    await run('claude', '', { env })
    await assert.rejects(run('claude', '', { network: 'off' }))
    assert.deepEqual([server.renewals(), server.seen.length], [0, 1])
  })
})

describe('a login that a program renewed', () => {
  const lent = [{ key: 'openai', refreshToken: 'one', endsAt: 1000 }]
  const login = { type: 'oauth', access: 'a', refresh: 'one', expires: 1000, accountId: 'me' }
  const other = { type: 'oauth', access: 'b', refresh: 'other', expires: 5, enterpriseUrl: 'u' }
  const later = { ...login, access: 'c', refresh: 'two', expires: 2000 }
  const take = (renewed: object, owner: object = { openai: login, other }) =>
    takeRenewed('opencode', { ...owner }, lent, { openai: renewed, other: later, evil: later })

  it('is taken where it is a later one of the same account, and nothing else with it', () => {
    assert.deepEqual(take(later), { openai: later, other })
  })

  it('has its refresh token in no copy, also where its end is not known', () => {
    const copilot = { type: 'oauth', access: '', refresh: 'gho_1', expires: 0 }
    assert.deepEqual(withoutRefreshTokens('opencode', { openai: login, copilot }), {
      openai: { ...login, refresh: '' },
      copilot,
    })
    const opaque = { access_token: 'opaque', refresh_token: 'one' }
    const empty = { access_token: 'opaque', refresh_token: '' }
    assert.deepEqual(withoutRefreshTokens('codex', { tokens: opaque }), { tokens: empty })
    assert.deepEqual(
      withoutRefreshTokens('claude', { claudeAiOauth: { refreshToken: 'one' }, other: 'secret' }),
      { claudeAiOauth: { refreshToken: '' } },
    )
  })

  it('is left where it is none, ends earlier, or is of another account or kind', () => {
    for (const renewed of [
      login,
      { ...later, expires: 999 },
      { ...later, accountId: 'you' },
      { ...later, type: 'wellknown' },
      { ...later, refresh: '' },
      { ...later, access: 7 },
      { ...later, expires: '2000' },
    ])
      assert.equal(take(renewed), undefined, JSON.stringify(renewed))
    assert.equal(take(later, { openai: { ...login, refresh: 'newer' } }), undefined)
    assert.equal(take(later, { other }), undefined)
  })
})
