import assert from 'node:assert/strict'
import { after, before, describe, it } from 'mocha'
import { type OAuthApp, startOAuthApp } from '../../support/providers/oauth-app.ts'

describe('oauth routes', () => {
  let app: OAuthApp

  before(async () => {
    app = await startOAuthApp({
      gateway: {
        providers: { mine: { client_secret_env: 'UNSET', issuer: 'https://id.example' } },
      },
    })
  })
  after(() => app.close())

  const bad: [string, unknown, number, string, RegExp][] = [
    ['no JSON', '{', 400, 'request-invalid', /not JSON/],
    ['null', 'null', 400, 'request-invalid', /the body/],
    ['a list', '[]', 400, 'request-invalid', /the body/],
    ['no provider', {}, 400, 'request-invalid', /^provider: /],
    ['an unknown key', { provider: 'github', extra: 1 }, 400, 'request-invalid', /"extra"/],
    [
      'a scope with a space',
      { provider: 'github', scopes: ['a b'] },
      400,
      'request-invalid',
      /^scopes\.0: not a scope/,
    ],
    [
      'a number for the id',
      { provider: 'github', clientId: 7 },
      400,
      'request-invalid',
      /^clientId: /,
    ],
    ['65 KiB', JSON.stringify({ provider: 'x'.repeat(66_000) }), 413, 'body-too-large', /65536/],
    ['an unknown provider', { provider: 'nope' }, 404, 'provider-unknown', /nope/],
    ['a path for a provider', { provider: '../x' }, 404, 'provider-unknown', /no provider$/],
    ['a provider without a client', { provider: 'github' }, 409, 'client-unknown', /github/],
    ['a configured provider without a client', { provider: 'mine' }, 409, 'client-unknown', /mine/],
  ]
  for (const [what, sent, status, code, detail] of bad)
    it(`refuses ${what}`, async () => {
      const { body, ...answer } = await app.send('POST', '/oauth/start', sent)
      assert.deepEqual([answer.status, body.code], [status, code])
      assert.match(body.detail, detail)
      if (code === 'client-unknown') assert.match(body.hint ?? '', /, then: doorward oauth login /)
    })

  it('takes nothing but plain application/json', async () => {
    const answer = await app.send('POST', '/oauth/start')
    assert.deepEqual([answer.status, answer.body.code], [415, 'media-type-unsupported'])
  })

  it('reaches no file outside the token folder', async () => {
    for (const name of ['..%2Frun%2Fapi', 'GitHub', 'a%00b']) {
      const { status, body } = await app.send('DELETE', `/oauth/tokens/${name}`)
      assert.deepEqual([status, body.code], [404, 'provider-unknown'], name)
    }
    const { status, body } = await app.send('DELETE', '/oauth/tokens/github')
    assert.deepEqual([status, body.code], [404, 'not-logged-in'])
  })

  it('lists no tokens before the first login', async () => {
    assert.deepEqual((await app.send<unknown>('GET', '/oauth/tokens')).body, { tokens: [] })
  })
})
