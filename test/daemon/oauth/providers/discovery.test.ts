import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { type Discover, createDiscover } from '../../../../daemon/oauth/providers/discovery.ts'
import { findProvider } from '../../../../daemon/oauth/providers/providers.ts'
import { gatewayOf } from '../../../support/providers/oauth-app.ts'
import {
  type ProviderAnswer,
  type ProviderServer,
  startProviderServer,
} from '../../../support/providers/provider-server.ts'

const hourMs = 60 * 60 * 1000
const oidc = '/.well-known/openid-configuration'
const rfc8414 = '/.well-known/oauth-authorization-server'

describe('discovery', () => {
  let server: ProviderServer
  let pages: Record<string, ProviderAnswer>
  let now: number
  let discover: Discover

  beforeEach(async () => {
    pages = {}
    now = 0
    server = await startProviderServer(({ path }) => pages[path])
    pages[oidc] = { status: 200, body: metadata() }
    discover = createDiscover(() => now)
  })
  afterEach(() => server.close())

  const metadata = (change: object = {}) => ({
    issuer: server.origin,
    authorization_endpoint: `${server.origin}/authorize`,
    token_endpoint: `${server.origin}/token`,
    ...change,
  })
  const ask = (entry: object = {}, signal = new AbortController().signal) => {
    const gateway = gatewayOf({ providers: { mine: { issuer: server.origin, ...entry } } })
    return discover(findProvider('mine', gateway), signal)
  }
  const asked = () => server.requests.length

  it('asks once an hour', async () => {
    await ask()
    now += hourMs - 1
    await ask()
    assert.equal(asked(), 1)
    now += 1
    pages[oidc] = { status: 200, body: metadata({ token_endpoint: `${server.origin}/new` }) }
    assert.equal((await ask()).server.token_endpoint, `${server.origin}/new`)
    assert.equal(asked(), 2)
  })

  it('aborts the request with the caller, and asks again the next time', async () => {
    const held = server.hold('/')
    const control = new AbortController()
    const aborted = ask({}, control.signal)
    await held.arrived
    control.abort()
    await assert.rejects(aborted, { code: 'provider-unavailable' })
    held.release()
    await ask()
    assert.equal(asked(), 2)
  })

  it('sends no request with an aborted signal', async () => {
    await assert.rejects(ask({}, AbortSignal.abort()), { code: 'provider-unavailable' })
    assert.equal(asked(), 0)
  })

  it('goes on with what it knew while the issuer is down, and asks again after a minute', async () => {
    await ask()
    now += hourMs
    server.fail({ status: 503, times: 2 })
    assert.equal((await ask()).server.token_endpoint, `${server.origin}/token`)
    await ask()
    assert.equal(asked(), 2)
    now += 60_000
    await ask()
    now += 60_000
    await ask()
    assert.equal(asked(), 4)
    now += 60_000
    await ask()
    assert.equal(asked(), 4)
  })

  it('does not wait long for an issuer that hangs when it knows enough', async () => {
    discover = createDiscover(() => now, 50)
    await ask()
    now += hourMs
    const held = server.hold('/')
    assert.equal((await ask()).server.token_endpoint, `${server.origin}/token`)
    held.release()
  })

  it('does not go on when the issuer answers, and what it answers is wrong', async () => {
    await ask()
    now += hourMs
    pages[oidc] = { status: 200, body: metadata({ token_endpoint: 'http://id.example/token' }) }
    await assert.rejects(ask(), { code: 'provider-misconfigured' })
  })

  it('does not ask when both endpoints are given', async () => {
    const { isIssuerKnown } = await ask({
      authorization_endpoint: `${server.origin}/a`,
      token_endpoint: `${server.origin}/t`,
    })
    assert.deepEqual([isIssuerKnown, asked()], [true, 0])
  })

  it('lets a single endpoint that is given win', async () => {
    const given = `${server.origin}/mine`
    const { server: found } = await ask({ device_authorization_endpoint: given })
    assert.equal(found.device_authorization_endpoint, given)
    assert.equal(found.token_endpoint, `${server.origin}/token`)
  })

  it('takes endpoints of another origin, and nothing of the metadata but what it knows', async () => {
    pages[oidc] = {
      status: 200,
      body: metadata({
        token_endpoint: 'https://tokens.example/t',
        device_authorization_endpoint: 'https://device.example/d',
        userinfo_endpoint: null,
        mtls_endpoint_aliases: { token_endpoint: 'http://evil.example/' },
        authorization_response_iss_parameter_supported: 'yes',
        token_endpoint_auth_methods_supported: 'client_secret_basic',
      }),
    }
    const { server: found } = await ask()
    assert.equal(found.token_endpoint, 'https://tokens.example/t')
    assert.equal(found.device_authorization_endpoint, 'https://device.example/d')
    assert.equal(found.userinfo_endpoint, undefined)
    assert.equal('mtls_endpoint_aliases' in found, false)
    assert.equal(found.authorization_response_iss_parameter_supported, false)
    assert.deepEqual(found.token_endpoint_auth_methods_supported, ['client_secret_basic'])
  })

  it('knows where to push a request only where the server demands it', async () => {
    const pushed_authorization_request_endpoint = `${server.origin}/par`
    const require_pushed_authorization_requests = true
    const read = async (change: object) => {
      pages[oidc] = { status: 200, body: metadata(change) }
      return (await createDiscover(() => now)(findMine(), new AbortController().signal)).server
    }
    const findMine = () =>
      findProvider('mine', gatewayOf({ providers: { mine: { issuer: server.origin } } }))
    const offered = await read({ pushed_authorization_request_endpoint })
    assert.equal(offered.pushed_authorization_request_endpoint, undefined)
    const demanded = await read({
      pushed_authorization_request_endpoint,
      require_pushed_authorization_requests,
    })
    assert.equal(
      demanded.pushed_authorization_request_endpoint,
      pushed_authorization_request_endpoint,
    )
    await assert.rejects(
      read({
        require_pushed_authorization_requests,
        pushed_authorization_request_endpoint: 'http://id.example/par',
      }),
      { code: 'provider-misconfigured', hint: /ask who runs/ },
    )
  })

  const unsafe: readonly unknown[] = [
    'http://id.example/x',
    'javascript:alert(1)',
    'file:///etc/passwd',
    'https://user:secret@id.example/',
    '/relative',
    '',
    7,
    {},
    ['https://id.example/'],
  ]
  for (const name of [
    'authorization_endpoint',
    'token_endpoint',
    'revocation_endpoint',
    'userinfo_endpoint',
    'device_authorization_endpoint',
  ])
    it(`refuses a ${name} that is no https address`, async () => {
      for (const value of unsafe) {
        pages[oidc] = { status: 200, body: metadata({ [name]: value }) }
        await assert.rejects(ask(), { code: 'provider-misconfigured', message: new RegExp(name) })
      }
    })

  const misconfigured: readonly (readonly [string, ProviderAnswer, RegExp])[] = [
    ['no page', { status: 404 }, /there is no such page/],
    ['a page', { status: 200, body: '<!doctype html><p>Log in' }, /not a JSON document/],
    ['a list', { status: 200, body: [] }, /not a JSON document/],
    ['broken JSON', { status: 200, body: '{"issuer":' }, /not a JSON document/],
    ['a redirect', { status: 302, headers: { location: '/x' } }, /it answered 302/],
    ['a refusal', { status: 403, body: {} }, /it answered 403/],
    ['no issuer', { status: 200, body: { token_endpoint: 'x' } }, /name no issuer/],
    ['an issuer that is none', { status: 200, body: { issuer: 'me' } }, /name no issuer/],
    [
      'those of a stranger',
      { status: 200, body: { issuer: 'https://evil.example/\u001b[2J' } },
      /an issuer on another host$/,
    ],
    ['nothing', { status: 200, body: '' }, /not a JSON document/],
  ]
  for (const [what, answer, message] of misconfigured)
    it(`says what is wrong when the issuer answers with ${what}`, async () => {
      pages[oidc] = answer
      await assert.rejects(ask(), {
        code: 'provider-misconfigured',
        message,
        hint: /issuer|gateway\.yaml/,
      })
      pages[oidc] = { status: 404 }
      pages[rfc8414] = answer
      await assert.rejects(ask(), { code: 'provider-misconfigured', message })
    })

  it('tries the second place whatever the first one says', async () => {
    pages[rfc8414] = { status: 200, body: metadata() }
    for (const [, answer] of misconfigured) {
      pages[oidc] = answer
      discover = createDiscover()
      assert.equal((await ask()).server.token_endpoint, `${server.origin}/token`)
    }
  })

  const unavailable: readonly (readonly [string, () => void])[] = [
    ['answers 500', () => server.fail({ status: 500 })],
    ['wants to be asked later', () => server.fail({ status: 429 })],
    ['breaks the connection', () => server.fail({ isAnswerLost: true })],
    ['sends two megabytes', () => (pages[oidc] = { status: 200, body: 'x'.repeat(2 ** 21) })],
  ]
  for (const [what, prepare] of unavailable)
    it(`says that the issuer is not available when it ${what}`, async () => {
      prepare()
      await assert.rejects(ask(), { code: 'provider-unavailable' })
    })
})
