import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, it } from 'mocha'
import type { TokenRecord } from '../../../../daemon/oauth/tokens/token-record.ts'
import { type Logout, loginSchema } from '../../../../shared/api/api.ts'
import { browse, visit } from '../../../support/desktop/browser.ts'
import { startGitHubProvider } from '../../../support/providers/github-provider.ts'
import { startGoogleProvider } from '../../../support/providers/google-provider.ts'
import { type OAuthApp, startOAuthApp } from '../../../support/providers/oauth-app.ts'
import type { ProviderServer } from '../../../support/providers/provider-server.ts'
import { filesIn } from '../../../support/temporary.ts'

/** The fakes know who it is by this one, or without any. */
const scope = 'https://www.googleapis.com/auth/gmail.modify'

type Fake = ProviderServer & {
  readonly client: { readonly id: string; readonly secret: string }
  readonly gatewayEntry: object
  readonly isAlive: (token: string) => boolean
}

describe('a login that replaces another', () => {
  let app: OAuthApp
  let provider: Fake

  afterEach(async () => {
    await app.close()
    provider.close()
  })

  const startWith = async (fake: Fake) => {
    provider = fake
    app = await startOAuthApp({
      gateway: { providers: { mine: { ...fake.gatewayEntry, client_secret_env: 'MINE_SECRET' } } },
      env: { MINE_SECRET: fake.client.secret },
    })
  }
  const logIn = async () => {
    const { loginId, authorizationUrl } = await app.start({ provider: 'mine', scopes: [scope] })
    await browse(authorizationUrl)
    const login = loginSchema.parse(await app.ended(loginId))
    assert.equal(login.status, 'authorized', JSON.stringify(login))
    const text = await readFile(join(app.home.tokens, 'mine.json'), 'utf8')
    return { login, record: JSON.parse(text) as TokenRecord }
  }
  const logOutInVain = async (path: string) => {
    provider.fail({ path })
    const { body } = await app.send<Logout>('DELETE', '/oauth/tokens/mine')
    assert.equal(body.revokedAtProvider, false)
    assert.match(body.detail ?? '', /it is tried again until/)
    assert.equal((await filesIn(app.home.tokens)).length, 1)
  }
  const isAlive = ({ accessToken, refreshToken }: TokenRecord) =>
    [accessToken, refreshToken].flatMap((token) =>
      token === undefined ? [] : [provider.isAlive(token)],
    )
  const revocations = (path: string) =>
    provider.requests.filter((request) => request.path.includes(path)).length

  it('leaves the tokens of the old one alone', async () => {
    await startWith(await startGoogleProvider())
    const first = await logIn()
    const second = await logIn()
    assert.equal(second.login.replaced, undefined)
    assert.equal(revocations('/revoke'), 0)
    assert.deepEqual(
      [...isAlive(first.record), ...isAlive(second.record)],
      [true, true, true, true],
    )
  })

  it('says whose login it replaces', async () => {
    const google = await startGoogleProvider()
    await startWith(google)
    await logIn()
    google.person = 'bob@example.com'
    assert.equal((await logIn()).login.replaced?.name, 'ada@example.com')
  })

  it('drops what a logout of the same person at Google has still to revoke', async () => {
    await startWith(await startGoogleProvider())
    await logIn()
    await logOutInVain('/revoke')
    const asked = revocations('/revoke')
    const { record } = await logIn()
    await app.oauth.close()
    assert.deepEqual(isAlive(record), [true, true])
    assert.deepEqual(await filesIn(app.home.tokens), ['mine.json'])
    assert.equal(revocations('/revoke'), asked)
  })

  it('and is cancelled too late leaves a login of the same person at Google alone', async () => {
    await startWith(await startGoogleProvider())
    const { record } = await logIn()
    const exchange = provider.hold('/token')
    const { loginId, authorizationUrl } = await app.start({ provider: 'mine', scopes: [scope] })
    const callback = await browse(authorizationUrl, (url) => url.includes('/callback'))
    const page = visit(callback.url)
    await exchange.arrived
    await app.send('DELETE', `/oauth/logins/${loginId}`)
    await page
    exchange.release()
    await app.oauth.close()
    assert.equal(revocations('/revoke'), 0)
    assert.deepEqual(isAlive(record), [true, true])
    assert.deepEqual(await filesIn(app.home.tokens), ['mine.json'])
  })

  it('at GitHub is not ended by a logout that has still to revoke everything', async () => {
    await startWith(await startGitHubProvider())
    const first = await logIn()
    await logOutInVain('/applications')
    assert.equal(revocations('/grant'), 1)
    const second = await logIn()
    await app.untilEvent(({ what }) => what === 'revoked')
    assert.deepEqual(isAlive(first.record), [false])
    assert.deepEqual(isAlive(second.record), [true])
    assert.equal(revocations('/grant'), 1)
    assert.deepEqual(await filesIn(app.home.tokens), ['mine.json'])
  })
})
