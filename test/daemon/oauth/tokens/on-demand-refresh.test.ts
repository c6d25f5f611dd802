import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, it } from 'mocha'
import type { AccessToken } from '../../../../shared/api/api.ts'
import { browse } from '../../../support/desktop/browser.ts'
import {
  type GitHubProvider,
  startGitHubProvider,
} from '../../../support/providers/github-provider.ts'
import { type OAuthApp, startOAuthApp } from '../../../support/providers/oauth-app.ts'

const tokenPath = '/login/oauth/access_token'
const minute = 60_000
const hour = 60 * minute

describe('a GitHub token, which a refresh ends', () => {
  let provider: GitHubProvider
  let app: OAuthApp

  afterEach(async () => {
    await app.close()
    provider.close()
  })

  const logIn = async () => {
    provider = await startGitHubProvider({ app: 'github-app' })
    app = await startOAuthApp({
      gateway: {
        providers: { github: { ...provider.gatewayEntry, client_secret_env: 'GITHUB_SECRET' } },
      },
      env: { GITHUB_SECRET: provider.client.secret },
    })
    const { authorizationUrl, loginId } = await app.start({ provider: 'github' })
    await browse(authorizationUrl)
    assert.equal((await app.ended(loginId)).status, 'authorized')
  }
  /** Makes the stored token one of eight hours that ends in so many minutes. */
  const endsIn = async (minutes: number) => {
    const path = join(app.home.tokens, 'github.json')
    const record = JSON.parse(await readFile(path, 'utf8')) as Record<string, unknown>
    const end = Date.now() + minutes * minute
    const [obtainedAt, expiresAt] = [end - 8 * hour, end].map((ms) => new Date(ms).toISOString())
    await writeFile(path, JSON.stringify({ ...record, obtainedAt, expiresAt }))
    return String(record['accessToken'])
  }
  const ask = async (seconds?: number) => {
    const query = seconds === undefined ? '' : `?min_validity=${seconds}`
    const { status, body } = await app.send<AccessToken>(
      'GET',
      `/oauth/tokens/github/access${query}`,
    )
    assert.equal(status, 200)
    return body.accessToken
  }

  it('is renewed when a program asks for more than is left', async () => {
    await logIn()
    const old = await endsIn(10)
    assert.equal(await ask(300), old)
    const given = await ask(3600)
    assert.notEqual(given, old)
    assert.deepEqual([provider.isAlive(old), provider.isAlive(given)], [false, true])
  })

  it('is not issued while it is being renewed', async () => {
    await logIn()
    const old = await endsIn(10)
    const renewal = provider.hold(tokenPath)
    const first = ask(3600)
    await renewal.arrived
    const request = { asker: 'test' }
    const second = app.oauth.access('github', request)
    renewal.release()
    const given = await first
    assert.notEqual(given, old)
    assert.equal((await second).accessToken, given)
  })

  it('is issued after a renewal that failed', async () => {
    await logIn()
    const old = await endsIn(10)
    provider.fail({ path: tokenPath, status: 503 })
    assert.equal(await ask(3600), old)
    assert.equal(await ask(), old)
  })
})
