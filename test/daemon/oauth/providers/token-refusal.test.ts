import assert from 'node:assert/strict'
import { ResponseBodyError } from 'oauth4webapi'
import { describe, it } from 'mocha'
import {
  providerError,
  refusalError,
  registerHint,
  type TokenRefusal,
  tokenRefusalError,
  toTokenRefusal,
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
  const table: [string, string, object, TokenRefusal, RegExp, RegExp][] = [
    [
      'a client that needs its secret',
      'github',
      {},
      { code: 'invalid_client', ownCode: 'incorrect_client_credentials' },
      /^GitHub also requires the client secret of your app \(incorrect_client_credentials\)$/,
      /github\.com\/settings\/developers, then: doorward oauth login github --client-secret-stdin$/,
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
      'a client id that nobody knows',
      'slack',
      {},
      { code: 'invalid_client', ownCode: 'invalid_client_id', about: 'client-id' },
      /^Slack knows no app with this client id \(invalid_client_id\)$/,
      /doorward oauth login slack --client-id ID$/,
    ],
    [
      'a public client at a provider of which nothing is known',
      'mine',
      {},
      { code: 'invalid_client' },
      /^mine does not accept the client id without a secret \(invalid_client\)$/,
      /doorward oauth login mine --client-secret-stdin$/,
    ],
    [
      'a redirect URI that Slack does not know',
      'slack',
      {},
      { code: 'redirect_uri_mismatch', ownCode: 'bad_redirect_uri' },
      /redirect URI of this login \(bad_redirect_uri\)$/,
      /register exactly http:\/\/127\.0\.0\.1:53174\/callback .*host and port.*providers\.slack\.redirect_host: localhost/,
    ],
    [
      'an app without the device flow',
      'github',
      {},
      { code: 'unauthorized_client', ownCode: 'device_flow_disabled' },
      /\(device_flow_disabled\)$/,
      /turn on the device flow .*github\.com\/settings\/developers/,
    ],
    [
      'an approval that is used',
      'google',
      {},
      { code: 'invalid_grant' },
      /\(invalid_grant\)$/,
      /^doorward oauth login google$/,
    ],
    [
      'anything else',
      'google',
      {},
      { code: 'invalid_request' },
      /^Google refused the request \(invalid_request\)$/,
      /console\.cloud\.google\.com/,
    ],
  ]
  for (const [what, name, secret, refusal, message, hint] of table)
    it(`says what to do about ${what}`, () => {
      const client = { clientId: 'me', ...secret }
      const refused = { provider: providerOf(name), client, redirectUri }
      const error = tokenRefusalError(refusal, refused)
      assert.equal(error.code, 'provider-refused')
      assert.match(error.message, message)
      assert.match(error.hint ?? '', hint)
    })

  it('names the environment variable and the key that are configured', () => {
    const entry = { client_id: 'me', client_secret_env: 'MY_SECRET' }
    const refused = { provider: providerOf('github', entry), client: { clientId: 'me' } }
    const secret = tokenRefusalError({ code: 'invalid_client' }, refused)
    assert.match(secret.hint ?? '', /set MY_SECRET in \.env$/)
    const id = tokenRefusalError({ code: 'invalid_client', about: 'client-id' }, refused)
    assert.match(id.hint ?? '', /providers\.github\.client_id in gateway\.yaml$/)
  })

  it('reads from a description what it is about, and shows no token of it', () => {
    const bodies: [Record<string, string>, TokenRefusal['about']][] = [
      [
        { error: 'invalid_request', error_description: 'client_secret is missing.' },
        'client-secret',
      ],
      [
        { error: 'invalid_client', error_description: 'The OAuth client was not found.' },
        'client-id',
      ],
      [{ error: 'invalid_client', provider_error: 'Not Found' }, 'client-id'],
      [{ error: 'invalid_client', error_description: 'gho_secretsecret1 \u001b[2J' }, undefined],
    ]
    for (const [body, about] of bodies) {
      const error = refusedWith(body)
      assert.equal(toTokenRefusal(error)?.about, about)
      const refused = { provider: providerOf('google'), client: { clientId: 'me' } }
      const { message, hint, cause } = providerError(error, 'refused', refused)
      assert.equal(/secretsecret|\u001b/.test(`${message} ${hint}`), false)
      assert.equal(cause, undefined)
    }
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
    const denied = { error: 'access_denied', explanation: 'the person said no' }
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
    assert.equal(toTokenRefusal(new Error('x')), undefined)
  })

  it('is one for later where the provider says so', () => {
    const refused = { provider: providerOf('slack'), client: { clientId: 'me' } }
    const error = tokenRefusalError(
      { code: 'temporarily_unavailable', ownCode: 'ratelimited' },
      refused,
    )
    assert.deepEqual(
      [error.code, error.message],
      ['provider-unavailable', 'Slack answered ratelimited'],
    )
    assert.equal(refusalError(refused, { error: 'server_error' }).code, 'provider-unavailable')
    assert.equal(refusalError(refused, { error: 'access_denied' }).code, 'login-denied')
  })

  it('names what each provider takes as redirect URI', () => {
    assert.match(registerHint(providerOf('google'), redirectUri), /type desktop app/)
    assert.match(
      registerHint(providerOf('github'), redirectUri),
      /register http:\/\/127\.0\.0\.1\/callback /,
    )
    assert.match(
      registerHint(providerOf('mine'), redirectUri),
      /^register exactly http:\/\/127\.0\.0\.1:53174\/callback as redirect URL of the app$/,
    )
    const onLocalhost = providerOf('slack', { redirect_host: 'localhost' })
    assert.equal(registerHint(onLocalhost, redirectUri).includes('redirect_host'), false)
  })
})
