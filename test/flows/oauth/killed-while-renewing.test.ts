import assert from 'node:assert/strict'
import { type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { type FSWatcher, watch } from 'node:fs'
import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type AccessToken, type EventRecord } from '../../../shared/api/api.ts'
import type { Home } from '../../../shared/home/home.ts'
import {
  type AuthorizationServer,
  type TokenStep,
  startAuthorizationServer,
} from '../../support/providers/authorization-server.ts'
import { spawnDaemon, startDaemon } from '../../support/daemon/daemon.ts'
import { isLong } from '../../support/daemon/fault-run.ts'
import { temporaryHome } from '../../support/temporary.ts'

/*
 * The provider rotates refresh tokens and ends the whole grant when an old one comes again. The daemon is
 * killed at every step of a refresh, and started again, which takes up what was left and is killed in
 * turn. A login may be lost only where the provider itself has used up a token whose answer the daemon
 * could not have saved.
 */

const providers = ['ada', 'bob'] as const
type FileStep = 'noting' | 'noted' | 'writing' | 'written'
type Step = FileStep | TokenStep
const steps: readonly Step[] = [
  'noting',
  'noted',
  'received',
  'processed',
  'half-answered',
  'answered',
  'writing',
  'written',
]

/** So many at each step. */
const rounds = steps.length * (isLong ? 60 : 2)

/** Which step of a refresh a change in the folder of tokens is. */
const fileStepOf = (name: string): FileStep | undefined => {
  if (name.endsWith('.json.refresh')) return 'noted'
  if (/\.json\.refresh\..*tmp$/.test(name)) return 'noting'
  if (name.endsWith('.json')) return 'written'
  return /\.json\..*tmp$/.test(name) ? 'writing' : undefined
}

type StoredToken = { readonly refreshToken: string; readonly ended?: { readonly cause: string } }

describe('a daemon that is killed while it refreshes tokens', function () {
  this.timeout(10 * 60_000)
  let server: AuthorizationServer
  let home: Home
  let watcher: FSWatcher
  let victim: { readonly child: ChildProcess; readonly at: Step } | undefined
  const killedAt = new Map<Step, number>()

  /** Kills the daemon if this is the step of the round; then nothing else may go on. */
  const reached = async (step: Step): Promise<void> => {
    const doomed = victim
    if (!doomed || doomed.at !== step) return
    victim = undefined
    killedAt.set(step, (killedAt.get(step) ?? 0) + 1)
    doomed.child.kill('SIGKILL')
    await once(doomed.child, 'exit')
  }

  before(async () => {
    server = await startAuthorizationServer({ onStep: reached })
    const entry = `{ issuer: "${server.issuer}", client_id: public }`
    home = await temporaryHome({
      gateway: `oauth: { callback_port: 0 }\nproviders:\n${providers.map((name) => `  ${name}: ${entry}\n`).join('')}`,
    })
    await mkdir(home.tokens, { mode: 0o700 })
    for (const provider of providers) await logIn(provider)
    watcher = watch(home.tokens, (_, name) => {
      const step = fileStepOf(name ?? '')
      if (step) void reached(step)
    })
  })
  after(async () => {
    watcher.close()
    await server.close()
  })

  const pathOf = (provider: string) => join(home.tokens, `${provider}.json`)
  const stored = async (provider: string): Promise<StoredToken> =>
    JSON.parse(await readFile(pathOf(provider), 'utf8')) as StoredToken

  /** Writes the file of a login whose access token has just ended, so that a start renews it. */
  const store = (provider: string, refreshToken: string) =>
    writeFile(
      pathOf(provider),
      JSON.stringify({
        version: 1,
        provider,
        // As it is once the login is tied to its server: the first write of a start is that of the refresh.
        server: { issuer: server.issuer },
        account: null,
        scopes: ['openid', 'email'],
        tokenType: 'Bearer',
        accessToken: 'ended',
        refreshToken,
        expiresAt: new Date(Date.now() - 1000).toISOString(),
        obtainedAt: new Date(Date.now() - 3_601_000).toISOString(),
        clientId: 'public',
      }),
      { mode: 0o600 },
    )
  const logIn = async (provider: string): Promise<void> => store(provider, await server.mint())

  const killAt = async (at: Step): Promise<void> => {
    const child = spawnDaemon(home)
    child.stdout?.resume()
    child.stderr?.resume()
    victim = { child, at }
    await once(child, 'exit')
    assert.equal(child.signalCode, 'SIGKILL')
  }

  it(`loses no login that the provider still accepts, in ${rounds} kills at every step`, async () => {
    let endedByProvider = 0
    for (let round = 0; round < rounds; round += 1) {
      await killAt(steps[round % steps.length] ?? 'noted')
      for (const provider of providers) {
        const token = await stored(provider)
        const state = await server.stateOf(token.refreshToken)
        if (state === 'alive') {
          assert.equal(token.ended, undefined, `${provider} in round ${round} was given up`)
          // The next start shall have something to do.
          await store(provider, token.refreshToken)
        } else if (state === 'gone') {
          endedByProvider += 1
          await logIn(provider)
        } else {
          // Used, and the answer lost: the next start has to know that.
          const names = await readdir(home.tokens)
          assert.ok(names.includes(`${provider}.json.refresh`), `round ${round}: no note`)
        }
      }
    }
    assert.deepEqual(
      steps.map((step) => killedAt.get(step) ?? 0),
      steps.map(() => rounds / steps.length),
    )
    assert.ok(endedByProvider < rounds)
  })

  it('reports the outcome of each login at the next start', async () => {
    const [alive, used] = providers
    await logIn(alive)
    await logIn(used)
    await killAt('processed')
    const daemon = await startDaemon({ home })
    try {
      for (const provider of providers) {
        const answer = await daemon.client
          .get<AccessToken>(`/oauth/tokens/${provider}/access`)
          .then(({ accessToken }) => server.isAccessTokenAlive(accessToken))
          .catch((error: { readonly code?: string }) => error.code)
        const { ended } = await stored(provider)
        assert.equal(answer, ended ? 'needs-login' : true)
        if (ended) assert.match(ended.cause, /no token came of the renewal/)
      }
      const { events } = await daemon.client.get<{ events: EventRecord[] }>('/events')
      const told = events.filter(({ kind }) => kind === 'oauth').map(({ detail }) => detail ?? '')
      assert.ok(
        told.some((detail) =>
          /no token came of the renewal|was cut off; nothing is lost/.test(detail),
        ),
        told.join('\n'),
      )
    } finally {
      await daemon.stop()
    }
  })

  it('leaves nothing but the token files after the next start', async () => {
    for (const provider of providers) await logIn(provider)
    await killAt('writing')
    const daemon = await startDaemon({ home })
    await daemon.client.get('/oauth/tokens/ada/access').catch(() => undefined)
    await daemon.client.get('/oauth/tokens/bob/access').catch(() => undefined)
    await daemon.stop()
    const names = await readdir(home.tokens)
    assert.deepEqual(names.toSorted(), ['ada.json', 'bob.json'])
  })
})
