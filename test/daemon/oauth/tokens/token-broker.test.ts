import assert from 'node:assert/strict'
import { readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { type TokenRecord } from '../../../../daemon/oauth/tokens/token-record.ts'
import { type AccessToken, accessTokenSchema } from '../../../../shared/api/api.ts'
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '../../../support/providers/authorization-server.ts'
import { browse } from '../../../support/desktop/browser.ts'
import { type OAuthApp, startOAuthApp } from '../../../support/providers/oauth-app.ts'

const path = '/oauth/tokens/mine/access'

describe('a token that is asked for', () => {
  let server: AuthorizationServer
  let app: OAuthApp

  const startWith = async (accessTokenTtl: number): Promise<void> => {
    server = await startAuthorizationServer({ accessTokenTtl })
    app = await startOAuthApp({ gateway: gatewayFor(server) })
    const { authorizationUrl, loginId } = await app.start({ provider: 'mine' })
    await browse(authorizationUrl)
    await app.ended(loginId)
  }
  const gatewayFor = ({ issuer }: AuthorizationServer) => ({
    providers: { mine: { issuer, scopes: ['openid', 'email'], client_id: 'public' } },
  })
  const record = async (): Promise<TokenRecord> =>
    JSON.parse(await readFile(join(app.home.tokens, 'mine.json'), 'utf8')) as TokenRecord
  /** Makes the stored token one that ended a second ago, as it would be after a night. */
  const expire = async (): Promise<void> => {
    const file = { ...(await record()), expiresAt: new Date(Date.now() - 1000).toISOString() }
    await writeFile(join(app.home.tokens, 'mine.json'), JSON.stringify(file))
  }
  /** Makes the stored token one that came while the clock was a day ahead. */
  const comeTomorrow = async (): Promise<void> => {
    const day = 24 * 3_600_000
    const file = await record()
    const [obtainedAt, expiresAt] = [file.obtainedAt, file.expiresAt ?? ''].map((time) =>
      new Date(Date.parse(time) + day).toISOString(),
    )
    await writeFile(
      join(app.home.tokens, 'mine.json'),
      JSON.stringify({ ...file, obtainedAt, expiresAt }),
    )
  }
  const ask = (query = '') => app.send<AccessToken>('GET', `${path}${query}`)
  const refreshes = () =>
    server.tokenRequests.filter((request) => request.get('grant_type') === 'refresh_token').length

  afterEach(async () => {
    await app.close()
    await server.close()
  })

  describe('of an hour', () => {
    beforeEach(() => startWith(3600))

    it('is renewed once where the clock was ahead when it came, for its end is not known', async () => {
      await comeTomorrow()
      assert.equal((await ask()).status, 200)
      assert.equal((await ask()).status, 200)
      assert.equal(refreshes(), 1)
      assert.ok(Date.parse((await record()).obtainedAt) <= Date.now())
    })

    it('is renewed in the background where the clock was ahead when it came', async () => {
      await comeTomorrow()
      await app.oauth.start()
      await server.untilTokenRequests(2)
      assert.equal(refreshes(), 1)
    })

    it('is the stored one, in the shape of the contract and never cached', async () => {
      const { status, headers, body } = await ask()
      assert.equal(status, 200)
      assert.equal(headers.get('cache-control'), 'no-store')
      const token = accessTokenSchema.parse(body)
      const { accessToken, expiresAt } = await record()
      assert.deepEqual(token, {
        provider: 'mine',
        accessToken,
        tokenType: 'Bearer',
        expiresAt,
        scopes: ['openid', 'email'],
      })
      assert.equal(refreshes(), 0)
    })

    it('is renewed first when it does not last as long as asked', async () => {
      const before = await record()
      const { body } = await ask('?min_validity=7200')
      assert.notEqual(body.accessToken, before.accessToken)
      assert.equal(await server.isAccessTokenAlive(body.accessToken), true)
      const after = await record()
      assert.deepEqual([after.accessToken, after.account], [body.accessToken, before.account])
      assert.equal(after.loggedInAt, before.loggedInAt)
      assert.notEqual(after.refreshToken, before.refreshToken)
      assert.deepEqual(await readdir(app.home.tokens), ['mine.json'])
    })

    it('is renewed once for 200 who ask after it has ended', async () => {
      await expire()
      const answers = await Promise.all(Array.from({ length: 200 }, () => ask()))
      assert.equal(refreshes(), 1)
      const tokens = new Set(answers.map(({ body }) => body.accessToken))
      assert.deepEqual([...tokens], [(await record()).accessToken])
      assert.ok(answers.every(({ status }) => status === 200))
    })

    it('needs a login once the provider has ended it, and says so ever after', async () => {
      const { refreshToken = '' } = await record()
      await server.revokeGrantOf(refreshToken)
      const refused = await app.send('GET', `${path}?min_validity=7200`)
      assert.deepEqual([refused.status, refused.body.code], [409, 'needs-login'])
      assert.match(refused.body.detail, /revoked/)
      assert.equal(refused.body.hint, 'doorward oauth login mine')
      assert.equal((await app.oauth.tokens())[0]?.status, 'needs-login')
      assert.equal((await app.oauth.tokens())[0]?.refreshable, false)
      // What is left of the access token is still given out.
      assert.equal((await ask()).status, 200)
      await app.send('GET', `${path}?min_validity=7200`)
      assert.equal(refreshes(), 1)
      const told = app.events.filter(({ what }) => what === 'needs-login')
      assert.deepEqual(
        told.map(({ code }) => code),
        ['needs-login'],
      )
    })

    it('is what another program has written to the file', async () => {
      await ask()
      await writeFile(
        join(app.home.tokens, 'mine.json'),
        JSON.stringify({ ...(await record()), accessToken: 'of-another-program' }),
      )
      assert.equal((await ask()).body.accessToken, 'of-another-program')
    })

    it('is removed by the logout, also from memory', async () => {
      await ask()
      await app.send('DELETE', '/oauth/tokens/mine')
      const refused = await app.send('GET', path)
      assert.deepEqual([refused.status, refused.body.code], [404, 'not-logged-in'])
    })

    it('is reported in the events: who asked, not the token', async () => {
      const { body } = await ask()
      await ask()
      const told = app.events.filter(({ what }) => what === 'token')
      assert.equal(told.length, 1)
      assert.match(told[0]?.detail ?? '', /^token issued to node/)
      assert.equal(JSON.stringify(app.events).includes(body.accessToken), false)
    })

    for (const [query, why] of [
      ['?min_validity=soon', 'no number'],
      ['?min_validity=-1', 'less than nothing'],
      ['?min_validity=1&min_validity=2', 'twice'],
    ] as const)
      it(`is refused for a min_validity that is ${why}`, async () => {
        const refused = await app.send('GET', path + query)
        assert.deepEqual([refused.status, refused.body.code], [400, 'request-invalid'])
      })
  })

  it('of two seconds is renewed for who asks', async () => {
    await startWith(2)
    await expire()
    const { status, body } = await ask()
    assert.deepEqual([status, refreshes()], [200, 1])
    assert.equal(await server.isAccessTokenAlive(body.accessToken), true)
  })
})
