import assert from 'node:assert/strict'
import type { Login } from '../../shared/api/api.ts'
import { approve, visit } from '../support/desktop/browser.ts'
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '../support/providers/authorization-server.ts'
import { type OAuthApp, startOAuthApp } from '../support/providers/oauth-app.ts'
import { type TargetServer, startTargetServer } from '../support/servers/target-server.ts'

/*
 * A provider that means harm sends the browser on to an honest one, with the state of its own login: the
 * honest one's code would then be brought to it by the client (RFC 9700 section 4.4).
 */
describe('a login at a provider that sends the browser on to another', () => {
  let honest: AuthorizationServer
  let attacker: TargetServer
  let app: OAuthApp

  before(async () => {
    honest = await startAuthorizationServer()
    attacker = await startTargetServer()
    app = await startOAuthApp({
      gateway: {
        providers: {
          honest: { issuer: honest.issuer, scopes: ['openid'], client_id: 'public' },
          attacker: {
            authorization_endpoint: `${attacker.origin}/authorize`,
            token_endpoint: `${attacker.origin}/token`,
            client_id: 'ours',
          },
        },
      },
    })
  })
  after(async () => {
    await app.close()
    attacker.close()
    await honest.close()
  })

  const statusOf = async (id: string) => (await app.send<Login>('GET', `/oauth/logins/${id}`)).body

  it('brings that one no code of the other', async () => {
    const login = await app.start({ provider: 'attacker' })
    const asked = new URL(login.authorizationUrl)
    const address = new URL(`${honest.issuer}/auth`)
    for (const [name, value] of asked.searchParams) address.searchParams.set(name, value)
    address.searchParams.set('client_id', 'public')
    address.searchParams.set('scope', 'openid')
    const callback = await approve(address.href)
    assert.match(callback, /[?&]code=/)
    assert.match(callback, new RegExp(`state=${asked.searchParams.get('state')}`))

    const page = await visit(callback)
    assert.equal(page.status, 400)
    assert.match(page.text, /comes from another provider/)
    assert.deepEqual(attacker.requests, [])
    assert.equal((await statusOf(login.loginId)).status, 'pending')
    await app.send('DELETE', `/oauth/logins/${login.loginId}`)
  })

  it('is distinguished from another pending one by state, issuer and port', async () => {
    const [mine, theirs] = [
      await app.start({ provider: 'honest' }),
      await app.start({ provider: 'attacker' }),
    ]
    const callback = new URL(await approve(mine.authorizationUrl))
    const swapped = new URL(callback)
    swapped.searchParams.set(
      'state',
      new URL(theirs.authorizationUrl).searchParams.get('state') ?? '',
    )
    assert.equal((await visit(swapped.href)).status, 400)
    assert.deepEqual(attacker.requests, [])
    assert.equal((await visit(callback.href)).status, 303)
    assert.equal((await app.ended(mine.loginId)).status, 'authorized')
    assert.equal((await statusOf(theirs.loginId)).status, 'pending')
  })
})

/* The same attack where the honest provider sends no `iss`. Its rules for redirect URIs are those of a real one. */
describe('a login with a redirect path of its own', () => {
  let honest: AuthorizationServer
  let attacker: TargetServer
  let app: OAuthApp

  before(async () => {
    honest = await startAuthorizationServer()
    attacker = await startTargetServer()
    const withoutIssuer = {
      authorization_endpoint: `${honest.issuer}/auth`,
      token_endpoint: `${honest.issuer}/token`,
      client_id: 'public',
      scopes: ['email'],
    }
    app = await startOAuthApp({
      gateway: {
        providers: {
          honest: withoutIssuer,
          own: { ...withoutIssuer, redirect_path: '/own/callback' },
          attacker: {
            authorization_endpoint: `${attacker.origin}/authorize`,
            token_endpoint: `${attacker.origin}/token`,
            client_id: 'ours',
            redirect_path: '/attacker/callback',
          },
        },
      },
    })
  })
  after(async () => {
    await app.close()
    attacker.close()
    await honest.close()
  })

  it('brings its provider no code of another that sends no iss', async () => {
    // Both callback paths are served.
    const waiting = await app.start({ provider: 'honest' })
    const login = await app.start({ provider: 'attacker' })
    assert.match(login.redirectUri, /:\d+\/attacker\/callback$/)
    const address = new URL(`${honest.issuer}/auth`)
    for (const [name, value] of new URL(login.authorizationUrl).searchParams)
      address.searchParams.set(name, value)
    address.searchParams.set('client_id', 'public')
    address.searchParams.set('scope', 'email')
    // The honest one sends no browser to a redirect URI that is not registered there.
    const refused = await visit(address.href)
    assert.equal(refused.status, 400)
    assert.match(refused.text, /redirect_uri/)

    address.searchParams.set('redirect_uri', waiting.redirectUri)
    const callback = new URL(await approve(address.href))
    assert.match(callback.search, /[?&]code=/)
    callback.searchParams.delete('iss')
    assert.equal((await visit(callback.href)).status, 400)
    const pasted = { url: callback.href }
    const path = `/oauth/logins/${login.loginId}/redirect`
    assert.equal((await app.send('POST', path, pasted)).body.code, 'callback-invalid')
    assert.deepEqual(attacker.requests, [])
    for (const { loginId } of [login, waiting]) {
      assert.equal(
        (await app.send<Login>('GET', `/oauth/logins/${loginId}`)).body.status,
        'pending',
      )
      await app.send('DELETE', `/oauth/logins/${loginId}`)
    }
  })

  it('works where that path is registered, and others keep /callback', async () => {
    for (const [provider, path] of [
      ['own', '/own/callback'],
      ['honest', '/callback'],
    ] as const) {
      const login = await app.start({ provider })
      const callback = new URL(await approve(login.authorizationUrl))
      assert.equal(callback.pathname, path)
      assert.equal((await visit(callback.href)).status, 303)
      assert.equal((await app.ended(login.loginId)).status, 'authorized')
    }
  })
})

describe('a login that a stranger has begun elsewhere', () => {
  it('cannot be put under this one: neither its code nor its state is taken', async () => {
    const server = await startAuthorizationServer()
    const gateway = {
      providers: { mine: { issuer: server.issuer, scopes: ['openid'], client_id: 'public' } },
    }
    const [victim, stranger] = [await startOAuthApp({ gateway }), await startOAuthApp({ gateway })]
    try {
      const ours = await victim.start({ provider: 'mine' })
      const theirs = await stranger.start({ provider: 'mine' })
      const callback = new URL(await approve(theirs.authorizationUrl))
      const ourCallback = new URL(await approve(ours.authorizationUrl))

      // As a page could have the browser load it: the stranger's whole answer at our port.
      const injected = new URL(callback)
      injected.port = ourCallback.port
      assert.equal((await visit(injected.href)).status, 400)
      // And by who knows our state, as a program of another user can: PKCE refuses the code.
      injected.searchParams.set('state', ourCallback.searchParams.get('state') ?? '')
      await visit(injected.href)
      const ended = await victim.ended(ours.loginId)
      assert.equal(ended.status, 'failed')
      const { body } = await victim.send<{ tokens: unknown[] }>('GET', '/oauth/tokens')
      assert.deepEqual(body.tokens, [])
    } finally {
      await victim.close()
      await stranger.close()
      await server.close()
    }
  })
})
