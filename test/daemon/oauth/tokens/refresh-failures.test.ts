import assert from 'node:assert/strict'
import { mkdir, readFile, readdir, rename, unlink, writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { afterEach, describe, it } from 'mocha'
import { noteSent } from '../../../../daemon/oauth/tokens/refresh.ts'
import type { TokenRecord } from '../../../../daemon/oauth/tokens/token-record.ts'
import type { AccessToken, ProblemDocument } from '../../../../shared/api/api.ts'
import type { Home } from '../../../../shared/home/home.ts'
import { type OAuthApp, startOAuthApp } from '../../../support/providers/oauth-app.ts'
import { sendJson, startScriptedProvider } from '../../../support/providers/scripted-provider.ts'
import { temporaryHome } from '../../../support/temporary.ts'

type TokenEndpoint = (response: ServerResponse, body: string) => void
const path = '/oauth/tokens/mine/access'
const fresh = (accessToken: string) => ({
  access_token: accessToken,
  token_type: 'bearer',
  expires_in: 3600,
})

describe('a refresh that fails', () => {
  let provider: Awaited<ReturnType<typeof startScriptedProvider>>
  let app: OAuthApp
  let home: Home
  let answer: TokenEndpoint

  const startWith = async (secondsLeft: number, tokenEndpoint: TokenEndpoint) => {
    answer = tokenEndpoint
    provider = await startScriptedProvider(() => ({
      '/token': (response, _, body) => answer(response, body),
    }))
    home = await temporaryHome()
    await mkdir(home.tokens, { recursive: true, mode: 0o700 })
    const now = Date.now()
    const record: TokenRecord = {
      version: 1,
      provider: 'mine',
      account: null,
      scopes: ['a'],
      tokenType: 'Bearer',
      accessToken: 'stored-access-token',
      refreshToken: 'stored-refresh-token',
      expiresAt: new Date(now + secondsLeft * 1000).toISOString(),
      obtainedAt: new Date(now - 3_600_000 + secondsLeft * 1000).toISOString(),
      clientId: 'id',
    }
    await writeFile(join(home.tokens, 'mine.json'), JSON.stringify(record), { mode: 0o600 })
    app = await startApp()
  }
  const startApp = () =>
    startOAuthApp({
      home,
      gateway: {
        providers: {
          mine: {
            issuer: provider.origin,
            authorization_endpoint: `${provider.origin}/authorize`,
            token_endpoint: `${provider.origin}/token`,
          },
        },
      },
    })
  const ask = <Body = AccessToken & ProblemDocument>(query = '') =>
    app.send<Body>('GET', path + query)
  const stored = async (): Promise<TokenRecord> =>
    JSON.parse(await readFile(join(home.tokens, 'mine.json'), 'utf8')) as TokenRecord

  afterEach(async () => {
    await app.close()
    provider.close()
  })

  const passing: Readonly<Record<string, TokenEndpoint>> = {
    'a 500': (response) => sendJson(response, 500, { error: 'server_error' }),
    'a 429': (response) => sendJson(response, 429, {}),
    'a page': (response) => response.end('<h1>Welcome to the airport</h1>'),
    'a broken connection': (response) => void response.destroy(),
    invalid_client: (response) => sendJson(response, 401, { error: 'invalid_client' }),
    temporarily_unavailable: (response) =>
      sendJson(response, 400, { error: 'temporarily_unavailable' }),
  }
  for (const [what, tokenEndpoint] of Object.entries(passing)) {
    it(`by ${what} leaves a token in service that is still good`, async () => {
      await startWith(30, tokenEndpoint)
      const { status, body } = await ask()
      assert.deepEqual([status, body.accessToken], [200, 'stored-access-token'])
      assert.equal((await app.oauth.tokens())[0]?.status, 'ok')
    })

    it(`by ${what} is an error for one that has ended, and never a need to log in`, async () => {
      await startWith(-10, tokenEndpoint)
      const { status, body } = await ask()
      assert.equal(status, 502)
      assert.match(body.code, /^provider-(unavailable|refused)$/)
      assert.ok(body.hint)
      assert.equal((await stored()).ended, undefined)
    })
  }

  it('by a slow provider keeps no one from a token that is still valid', async () => {
    const waiting: ServerResponse[] = []
    await startWith(30, (response) => void waiting.push(response))
    const { status, body } = await ask()
    assert.deepEqual([status, body.accessToken], [200, 'stored-access-token'])
    for (const response of waiting) sendJson(response, 200, fresh('new-access-token'))
    assert.equal((await ask('?min_validity=600')).body.accessToken, 'new-access-token')
  })

  it('works again once the provider is back, and that is reported', async () => {
    await startWith(-10, (response) => sendJson(response, 503, {}))
    assert.equal((await ask()).body.code, 'provider-unavailable')
    answer = (response) => sendJson(response, 200, fresh('new-access-token'))
    // What nobody causes comes by itself after two seconds.
    const back = await app.untilEvent(({ what }) => what === 'refresh')
    assert.equal(back.detail, 'the token could be renewed again')
    assert.equal((await ask()).body.accessToken, 'new-access-token')
    assert.deepEqual(
      app.events.filter(({ what }) => what === 'refresh-failed').map(({ code }) => code),
      ['provider-unavailable'],
    )
  })

  it('is tried immediately for the next reader, since the provider may be back', async () => {
    await startWith(-10, (response) => sendJson(response, 503, {}))
    assert.equal((await ask()).body.code, 'provider-unavailable')
    answer = (response) => sendJson(response, 200, fresh('new-access-token'))
    assert.equal((await ask()).body.accessToken, 'new-access-token')
  })

  it('is asked once a second at most when it stays away', async () => {
    await startWith(-10, (response) => sendJson(response, 503, {}))
    const start = performance.now()
    for (let count = 0; count < 20; count += 1)
      assert.equal((await ask()).body.code, 'provider-unavailable')
    const seconds = Math.ceil((performance.now() - start) / 1000)
    assert.ok(provider.requests.length <= 4 + seconds, `${provider.requests.length} requests`)
  })

  it('is not repeated for every reader, nor before the provider wants it', async () => {
    await startWith(-10, (response) => {
      response.setHeader('retry-after', '120')
      sendJson(response, 429, {})
    })
    for (let count = 0; count < 5; count += 1)
      assert.equal((await ask()).body.code, 'provider-unavailable')
    assert.equal(provider.requests.length, 1)
  })

  // With 200 it is of no standard, and common.
  for (const withStatus of [400, 200])
    it(`by invalid_grant with ${withStatus} ends the login with its cause, after the file was read again`, async () => {
      await startWith(-10, (response) => sendJson(response, withStatus, { error: 'invalid_grant' }))
      const { status, body } = await ask()
      assert.deepEqual([status, body.code], [409, 'needs-login'])
      assert.match((await stored()).ended?.cause ?? '', /revoked at mine/)
      assert.deepEqual(await readdir(home.tokens), ['mine.json'])
      const [problem] = await app.oauth.problems()
      assert.deepEqual([problem?.code, problem?.hint], ['needs-login', 'doorward oauth login mine'])
      assert.match(problem?.detail ?? '', /revoked at mine/)
    })

  it('by invalid_grant is not one when another program has renewed the file', async () => {
    await startWith(-10, (response) => {
      void (async () => {
        const theirs = {
          ...(await stored()),
          accessToken: 'their-access-token',
          refreshToken: 'their-refresh-token',
          expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
        }
        await writeFile(join(home.tokens, 'mine.json'), JSON.stringify(theirs))
        sendJson(response, 400, { error: 'invalid_grant' })
      })()
    })
    assert.equal((await ask()).body.accessToken, 'their-access-token')
  })

  it('by a refused answer after a lost one says that the answer was lost', async () => {
    await startWith(-10, (response) => void response.destroy())
    await ask()
    answer = (response) => sendJson(response, 400, { error: 'invalid_grant' })
    await app.untilEvent(({ what }) => what === 'needs-login')
    assert.match((await stored()).ended?.cause ?? '', /no token came of the renewal/)
  })

  it('is not caused by an id token that looks old to a wrong clock: the new tokens are kept', async () => {
    const part = (document: object) => Buffer.from(JSON.stringify(document)).toString('base64url')
    const claims = { iss: 'https://elsewhere.example', aud: 'id', sub: 'u', iat: 1, exp: 2 }
    await startWith(-10, (response) =>
      sendJson(response, 200, {
        ...fresh('new-access-token'),
        refresh_token: 'new',
        id_token: `${part({ alg: 'RS256' })}.${part(claims)}.c2ln`,
      }),
    )
    assert.equal((await ask()).body.accessToken, 'new-access-token')
    assert.equal((await stored()).refreshToken, 'new')
  })

  for (const refreshToken of [null, ''])
    it(`is not caused by an answer with ${JSON.stringify(refreshToken)} for a missing field`, async () => {
      await startWith(-10, (response) =>
        sendJson(response, 200, {
          access_token: 'new-access-token',
          token_type: 'bearer',
          expires_in: null,
          scope: null,
          refresh_token: refreshToken,
        }),
      )
      assert.equal((await ask()).body.accessToken, 'new-access-token')
      const { scopes, ...record } = await stored()
      assert.deepEqual(
        [record.refreshToken, record.expiresAt, scopes],
        ['stored-refresh-token', null, ['a']],
      )
    })

  it('keeps the old refresh token and scopes where the answer names none', async () => {
    await startWith(-10, (response) => sendJson(response, 200, fresh('new-access-token')))
    assert.equal((await ask()).body.accessToken, 'new-access-token')
    const { refreshToken, scopes } = await stored()
    assert.deepEqual([refreshToken, scopes], ['stored-refresh-token', ['a']])
  })

  describe('to save', () => {
    const away = () => `${home.tokens}.away`
    const breakDisk = async () => {
      // A file where the folder was stops anybody from writing, root too.
      await rename(home.tokens, away())
      await writeFile(home.tokens, '')
    }
    const mendDisk = async () => {
      await unlink(home.tokens)
      await rename(away(), home.tokens)
    }
    const breakWhileRenewing: TokenEndpoint = (response) => {
      void (async () => {
        await breakDisk()
        sendJson(response, 200, { ...fresh('new-access-token'), refresh_token: 'new' })
      })()
    }

    it('keeps the new tokens until the disk takes them', async () => {
      await startWith(-10, breakWhileRenewing)
      const refused = await ask()
      assert.deepEqual([refused.status, refused.body.code], [500, 'home-unusable'])
      assert.equal(JSON.stringify(refused.body).includes('new-access-token'), false)
      await mendDisk()
      await app.untilEvent(({ what }) => what === 'refresh')
      assert.equal((await ask()).body.accessToken, 'new-access-token')
      assert.equal((await stored()).refreshToken, 'new')
      assert.equal(provider.requests.length, 1)
    })

    it('gives out neither the new token nor the one that it has most likely ended', async () => {
      await startWith(30, breakWhileRenewing)
      assert.equal((await ask()).body.code, 'home-unusable')
      await mendDisk()
    })

    it('writes the new tokens at the latest when the daemon stops', async () => {
      await startWith(-10, breakWhileRenewing)
      assert.equal((await ask()).body.code, 'home-unusable')
      await mendDisk()
      await app.oauth.close()
      assert.equal((await stored()).refreshToken, 'new')
    })
  })

  it('without a journal sends no request, and a valid token is still issued', async () => {
    await startWith(30, (response) => sendJson(response, 200, fresh('new-access-token')))
    await mkdir(join(home.tokens, 'mine.json.refresh', 'in-the-way'), { recursive: true })
    assert.equal((await ask()).body.accessToken, 'stored-access-token')
    assert.equal(provider.requests.length, 0)
  })

  it('reports a login that ended in a daemon that was killed before it reported it', async () => {
    await startWith(30, (response) => sendJson(response, 200, fresh('new-access-token')))
    await app.close()
    const ended = { at: new Date().toISOString(), cause: 'the provider said so' }
    const record = { ...(await stored()), ended }
    await writeFile(join(home.tokens, 'mine.json'), JSON.stringify(record), { mode: 0o600 })
    await noteSent(home, 'mine', 'stored-refresh-token', Date.now())
    const tellings = async (): Promise<string[]> => {
      app = await startApp()
      await app.oauth.start()
      return app.events.map(({ code, detail }) => `${code}: ${detail}`)
    }
    assert.deepEqual(await tellings(), [
      'needs-login: the login to mine has ended: the provider said so',
    ])
    assert.deepEqual(await readdir(home.tokens), ['mine.json'])
    await app.close()
    assert.deepEqual(await tellings(), [])
    assert.equal(provider.requests.length, 0)
  })

  it('writes no secret of the provider’s answer to log and events', async () => {
    await startWith(-10, (response) =>
      sendJson(response, 400, {
        error: 'invalid_client',
        error_description: 'made up: leak-0f-a-secret stored-refresh-token',
      }),
    )
    await ask()
    const texts = [...app.logLines, JSON.stringify(app.events), JSON.stringify((await ask()).body)]
    for (const text of texts)
      for (const secret of ['leak-0f-a-secret', 'stored-refresh-token', 'stored-access-token'])
        assert.equal(text.includes(secret), false, text)
  })
})
