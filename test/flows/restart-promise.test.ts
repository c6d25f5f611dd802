import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { AccessToken, Login, StartedLogin } from '../../shared/api.ts'
import { type Client, connect } from '../../shared/client/client.ts'
import { browse } from '../support/browser.ts'
import { type RunningDaemon, startDaemon } from '../support/daemon.ts'
import { type GitHubProvider, startGitHubProvider } from '../support/github-provider.ts'
import { restart, stopHome } from '../support/restart.ts'

const minute = 60_000
const hour = 60 * minute

describe('a token that was handed out before a restart', () => {
  let github: GitHubProvider
  let daemon: RunningDaemon

  before(async () => {
    github = await startGitHubProvider({ app: 'github-app' })
    const entry = { ...github.gatewayEntry, client_secret_env: 'GITHUB_SECRET' }
    daemon = await startDaemon({
      gateway: `oauth: { callback_port: 0 }\nproviders: { github: ${JSON.stringify(entry)} }\n`,
      variables: { GITHUB_SECRET: github.client.secret },
    })
  })
  after(async () => {
    await stopHome(daemon.home)
    github.close()
  })

  /** Makes the stored token one of eight hours that ends in so many minutes. */
  const endsIn = async (minutes: number): Promise<void> => {
    const path = join(daemon.home.tokens, 'github.json')
    const record = JSON.parse(await readFile(path, 'utf8')) as object
    const end = Date.now() + minutes * minute
    const [obtainedAt, expiresAt] = [end - 8 * hour, end].map((ms) => new Date(ms).toISOString())
    await writeFile(path, JSON.stringify({ ...record, obtainedAt, expiresAt }))
  }
  const ask = async (client: Client, query = '') =>
    (await client.get<AccessToken>(`/oauth/tokens/github/access${query}`)).accessToken

  it('is not ended by the new daemon while whoever has it may go on with it', async () => {
    const { client } = daemon
    const login = await client.post<StartedLogin>('/oauth/start', { provider: 'github' })
    await browse(login.authorizationUrl)
    const ended = await client.get<Login>(`/oauth/logins/${login.loginId}?wait=10`)
    assert.equal(ended.status, 'authorized')
    await endsIn(10)
    const given = await ask(client)
    await restart(client)
    const now = await connect(daemon.home)
    // Without the promise that would be one which its renewal in five minutes does not end.
    assert.equal(await ask(now, '?min_validity=300'), given)
    assert.equal(github.isAlive(given), true)
    now.close()
  })
})
