import assert from 'node:assert/strict'
import { ResponseBodyError } from 'oauth4webapi'
import { describe, it } from 'mocha'
import {
  providerError,
  refusalError,
  type Refusal,
  toRegisterHint,
} from '../../../../daemon/oauth/providers/errors.ts'
import { findProvider } from '../../../../daemon/oauth/providers/providers.ts'
import { gatewayOf } from '../../../support/providers/oauth-app.ts'

const own = {
  mine: {
    authorization_endpoint: 'https://id.example/authorize',
    token_endpoint: 'https://id.example/token',
  },
}
const providerOf = (name: string, entry?: object) =>
  findProvider(name, gatewayOf({ providers: { ...own, ...(entry && { [name]: entry }) } }))
const redirectUri = 'http://127.0.0.1:53174/callback'

const refusedWith = (body: Record<string, string>, status = 400) =>
  new ResponseBodyError('refused', {
    cause: body as { error: string },
    response: new Response(null, { status }),
  })

describe('refusal of a token endpoint', () => {
  const table: [string, string, object, Refusal, RegExp, RegExp][] = [
    [
      'a client that needs its secret',
      'github',
      {},
      { code: 'invalid_client', ownCode: 'incorrect_client_credentials' },
      /^GitHub does not accept the client id without a secret \(incorrect_client_credentials\)$/,
      /copy its secret, then: doorward oauth login github --client-secret-stdin$/,
    ],
    [
      'a secret that is wrong',
      'slack',
      { clientSecret: 'x' },
      { code: 'invalid_client', ownCode: 'bad_client_secret' },
      /^Slack does not accept the client id and secret \(bad_client_secret\)$/,
      /compare both .*api\.slack\.com\/apps/,
    ],
    [
      'a secret that Google misses',
      'google',
      {},
      { code: 'invalid_request', explanation: 'client_secret is missing' },
      /^Google does not accept the client id without a secret \(invalid_request: client_secret is missing\)$/,
      /copy its secret, then: doorward oauth login google --client-secret-stdin$/,
    ],
    [
      'a redirect URI that Slack does not know',
      'slack',
      {},
      { code: 'redirect_uri_mismatch', ownCode: 'bad_redirect_uri' },
      /redirect URI of this login \(bad_redirect_uri\)$/,
      /register exactly http:\/\/127\.0\.0\.1:53174\/callback as redirect URL of the app at https/,
    ],
    [
      'an app without PKCE',
      'slack',
      {},
      { code: 'unauthorized_client', ownCode: 'pkce_not_allowed' },
      /\(pkce_not_allowed\)$/,
      /settings of the app at https:\/\/api\.slack\.com\/apps that it is a desktop app with PKCE$/,
    ],
    [
      'an approval that is used',
      'google',
      {},
      { code: 'invalid_grant' },
      /\(invalid_grant\)$/,
      /^doorward oauth login google$/,
    ],
  ]
  for (const [what, name, secret, refusal, message, hint] of table)
    it(`says what to do about ${what}`, () => {
      const client = { clientId: 'me', ...secret }
      const refused = { provider: providerOf(name), client, redirectUri }
      const error = refusalError(refused, refusal)
      assert.equal(error.code, 'provider-refused')
      assert.match(error.message, message)
      assert.match(error.hint ?? '', hint)
    })

  it('names the environment variable that is configured', () => {
    const entry = { client_id: 'me', client_secret_env: 'MY_SECRET' }
    const refused = { provider: providerOf('github', entry), client: { clientId: 'me' } }
    const { hint } = refusalError(refused, { code: 'invalid_client' })
    assert.match(hint ?? '', /set MY_SECRET in \.env$/)
  })

  it('shows what the provider says, as one line, and without what was sent', () => {
    const client = { clientId: 'me', clientSecret: 'sesame open' }
    const refused = { provider: providerOf('mine'), client, secrets: ['the-code'] }
    const shown: [string, string][] = [
      ['nonce is required.', 'nonce is required'],
      [
        'AADSTS50011: no\r\nTrace ID: 72f988bf-86f1-41af-91ab-2d7cd011db47',
        'AADSTS50011: no Trace ID: …',
      ],
      ['a <b>bad</b> \u202e\u001b[31mscope', 'a <b>bad</b> [31mscope'],
      ['the-code and sesame open and eyJ\u200bhbGciOiJSUzI1NiJ9', '… and … and …'],
      ['x '.repeat(300), 'x '.repeat(100).trim()],
    ]
    for (const [error_description, expected] of shown) {
      const body = { error: 'invalid_request', error_description }
      const { message } = providerError(refusedWith(body), 'refused', refused)
      assert.equal(message, `mine refused the request (invalid_request: ${expected})`)
    }
    const denied = { code: 'access_denied', explanation: 'the person said no' }
    assert.match(refusalError(refused, denied).message, /at mine \(the person said no\)$/)
  })

  it('shows no code that could be something else', () => {
    const refused = { provider: providerOf('google'), client: { clientId: 'me' } }
    for (const error of ['gho_secretsecret1', 'x'.repeat(60), 'a b', '\u001b[2J']) {
      const known = providerError(refusedWith({ error }), 'Google refused the login', refused)
      assert.deepEqual(
        [known.code, known.message],
        ['provider-refused', 'Google refused the login: an error with status 400'],
      )
    }
  })

  it('is one for later where the provider says so', () => {
    const refused = { provider: providerOf('slack'), client: { clientId: 'me' } }
    const error = refusalError(refused, {
      code: 'temporarily_unavailable',
      ownCode: 'ratelimited',
    })
    assert.deepEqual(
      [error.code, error.message],
      ['provider-unavailable', 'Slack answered ratelimited'],
    )
    assert.equal(refusalError(refused, { code: 'server_error' }).code, 'provider-unavailable')
    assert.equal(refusalError(refused, { code: 'access_denied' }).code, 'login-denied')
  })

  it('names what each provider takes as redirect URI', () => {
    const hintOf = (name: string) => toRegisterHint(providerOf(name), redirectUri)
    assert.match(hintOf('google'), /type desktop app/)
    assert.match(
      hintOf('github'),
      /register exactly http:\/\/127\.0\.0\.1\/callback as callback URL/,
    )
    assert.equal(hintOf('mine'), `register exactly ${redirectUri} as redirect URI of the app`)
  })
})
