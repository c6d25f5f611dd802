import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { afterEach, describe, it } from 'mocha'
import type { Account } from '../../../../shared/api/api.ts'
import type { DialectName } from '../../../../shared/config/schema.ts'
import type { Revocation } from '../../../../daemon/oauth/dialects/dialect.ts'
import { getDialect } from '../../../../daemon/oauth/dialects/dialects.ts'
import {
  type Script,
  sendJson,
  startScriptedProvider,
} from '../../../support/providers/scripted-provider.ts'

const paths = {
  google: '/gmail/v1/users/me/profile',
  github: '/user',
  slack: '/auth.test',
} as const
type Own = keyof typeof paths
const owns = Object.keys(paths) as Own[]

describe('provider that lies to its dialect', () => {
  let provider: Awaited<ReturnType<typeof startScriptedProvider>>

  afterEach(() => provider.close())

  const { signal } = new AbortController()
  const start = async (script: (origin: string) => Script) => {
    provider = await startScriptedProvider(script)
  }
  const identify = async (dialect: Own): Promise<Account | undefined> =>
    getDialect({ dialect }).identify?.('the-access-token', provider.origin, signal)
  const revoke = async (
    dialect: DialectName,
    clientSecret?: string,
    apiUrl: string | undefined = provider.origin,
  ): Promise<Revocation> =>
    getDialect({ dialect }).revoke({
      tokens: { accessToken: 'the-access-token', refreshToken: 'the-refresh-token' },
      client: { clientId: 'me', ...(clientSecret !== undefined && { clientSecret }) },
      endpoints: {
        isIssuerKnown: false,
        server: {
          issuer: provider.origin,
          authorization_endpoint: `${provider.origin}/authorize`,
          token_endpoint: `${provider.origin}/token`,
          revocation_endpoint: `${provider.origin}/revoke`,
        },
      },
      apiUrl,
      extent: 'grant',
      signal,
    })

  const evil = 'a\u001b[2J\u009bd\u202Ea\r\nX: y'
  it('gets no escape sequence, line break or turned text into a name', async () => {
    await start(() => ({
      [paths.google]: (response) => sendJson(response, 200, { emailAddress: evil }),
      [paths.github]: (response) => sendJson(response, 200, { id: evil, login: evil }),
      [paths.slack]: (response) =>
        sendJson(response, 200, { ok: true, user_id: evil, user: evil, team: evil }),
    }))
    const clean = 'a[2JdaX: y'
    assert.deepEqual(await identify('google'), { id: clean, name: clean })
    assert.deepEqual(await identify('github'), { id: clean, name: clean })
    assert.deepEqual(await identify('slack'), { id: clean, name: `${clean} (${clean})` })
  })

  const lies: [string, (response: ServerResponse) => void][] = [
    ['a fault', (response) => sendJson(response, 500, {})],
    ['too many requests', (response) => sendJson(response, 429, {})],
    ['a redirect', (r) => r.writeHead(302, { location: 'http://127.0.0.1:1/' }).end()],
    ['two megabytes', (response) => response.writeHead(200).end('x'.repeat(2 ** 21))],
    ['no JSON', (response) => response.writeHead(200).end('<p>hello')],
    ['a list', (response) => sendJson(response, 200, [{ id: 1 }])],
    ['null', (response) => sendJson(response, 200, null)],
    [
      'wrong types',
      (response) =>
        sendJson(response, 200, { ok: true, id: { a: 1 }, user_id: ['x'], emailAddress: true }),
    ],
    ['nothing', (response) => response.destroy()],
  ]
  for (const [what, lie] of lies)
    it(`names no account with ${what}`, async () => {
      await start(() => Object.fromEntries(Object.values(paths).map((path) => [path, lie])))
      for (const dialect of owns)
        assert.equal(await identify(dialect).catch(() => undefined), undefined, dialect)
      assert.equal(
        provider.requests.some(({ path }) => path.startsWith('/x')),
        false,
      )
    })

  const revocationPaths = [
    '/revoke',
    '/auth.revoke',
    '/credentials/revoke',
    '/applications/me/grant',
  ]
  const answers: [string, (response: ServerResponse) => void, boolean][] = [
    ['a fault', (response) => sendJson(response, 503, {}), true],
    ['too many requests', (response) => sendJson(response, 429, {}), true],
    ['nothing', (response) => response.destroy(), true],
    ['a redirect', (r) => r.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(), false],
    ['a refusal', (response) => sendJson(response, 403, { error: 'gho_secretsecret1' }), false],
    ['a page', (response) => response.writeHead(418).end('<p>the-access-token'), false],
  ]
  for (const [what, answer, isWorthRetry] of answers)
    it(`has revoked nothing with ${what}`, async () => {
      await start(() => Object.fromEntries(revocationPaths.map((path) => [path, answer])))
      for (const [dialect, secret] of [
        ['standard', undefined],
        ['google', undefined],
        ['github', undefined],
        ['github', 'the-secret'],
        ['slack', undefined],
      ] as const) {
        const revocation = await revoke(dialect, secret)
        assert.equal(revocation.revokedAtProvider, false, dialect)
        assert.equal(revocation.isWorthRetry ?? false, isWorthRetry, dialect)
        assert.match(revocation.detail ?? '', /not revoked: /)
        assert.equal(/secret|the-access|the-refresh/.test(revocation.detail ?? ''), false)
      }
    })

  it('is asked as the holder of the tokens when the secret is no longer right', async () => {
    await start(() => ({
      '/applications/me/grant': (response) => sendJson(response, 401, {}),
      '/credentials/revoke': (response) => sendJson(response, 202, {}),
    }))
    assert.deepEqual(await revoke('github', 'old-secret'), {
      revokedAtProvider: true,
      detail: 'refresh token and access token revoked',
    })
    const { credentials } = JSON.parse(provider.requests.at(-1)?.body ?? '') as {
      credentials: string[]
    }
    assert.deepEqual(credentials, ['the-refresh-token', 'the-access-token'])
  })

  for (const [what, status, body] of [
    ['404 of a server that is another one', 404, { error: 'no such page' }],
    ['422, which may say that it was asked too often', 422, { message: 'Validation Failed' }],
  ] as const)
    it(`is not believed to have ended a token by a ${what}`, async () => {
      await start(() => ({
        '/applications/me/grant': (response) => sendJson(response, status, body),
      }))
      const { revokedAtProvider, detail } = await revoke('github', 'the-secret')
      assert.equal(revokedAtProvider, false)
      assert.match(detail ?? '', /not revoked/)
    })

  it('is not believed about a refresh token that it only does not know', async () => {
    await start(() => ({
      '/auth.revoke': (response, request) => {
        const isAccess = request.headers.authorization === 'Bearer the-access-token'
        sendJson(response, 200, { ok: false, error: isAccess ? 'token_expired' : 'invalid_auth' })
      },
    }))
    const { revokedAtProvider, detail } = await revoke('slack')
    assert.equal(revokedAtProvider, false)
    assert.match(
      detail ?? '',
      /access token had ended before; refresh token not revoked: .* invalid_auth/,
    )
  })

  it('may leave an access token to expire once the refresh token is revoked', async () => {
    await start(() => ({
      '/revoke': (response, _, body) =>
        body.includes('the-refresh-token')
          ? response.writeHead(200).end()
          : sendJson(response, 400, { error: 'unsupported_token_type' }),
    }))
    assert.deepEqual(await revoke('standard'), {
      revokedAtProvider: true,
      detail:
        'refresh token revoked; access token left to expire, since the provider cannot revoke it',
    })
  })

  it('is sent nothing where an address is not https', async () => {
    await start(() => ({}))
    for (const dialect of ['github', 'slack'] as const) {
      const { revokedAtProvider, detail } = await revoke(dialect, undefined, 'http://api.example')
      assert.equal(revokedAtProvider, false)
      assert.match(detail ?? '', /api\.example needs https/)
    }
  })
})
