import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import type { Login, StartedLogin } from '../../../../shared/api/api.ts'
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '../../../support/providers/authorization-server.ts'
import { type VisitOptions, approve, visit } from '../../../support/desktop/browser.ts'
import { type OAuthApp, startOAuthApp } from '../../../support/providers/oauth-app.ts'

describe('callback listener', () => {
  let server: AuthorizationServer
  let app: OAuthApp
  let started: StartedLogin
  let callback: URL

  before(async () => {
    server = await startAuthorizationServer()
  })
  beforeEach(async () => {
    app = await startOAuthApp({
      gateway: {
        providers: { mine: { issuer: server.issuer, scopes: ['openid'], client_id: 'public' } },
      },
    })
    started = await app.start({ provider: 'mine' })
    callback = new URL(await approve(started.authorizationUrl))
  })
  afterEach(() => app.close())
  after(() => server.close())

  const changed = (change: (parameters: URLSearchParams) => void): string => {
    const url = new URL(callback)
    change(url.searchParams)
    return url.href
  }
  const statusOf = async () =>
    (await app.send<Login>('GET', `/oauth/logins/${started.loginId}`)).body.status
  const succeeds = async () => {
    const redirect = await visit(callback.href)
    assert.equal(redirect.status, 303)
    const page = await visit(new URL(redirect.headers.location ?? '', callback).href)
    assert.equal(page.status, 200)
    assert.equal(await statusOf(), 'authorized')
    return page
  }

  const hostile: [string, number, () => { url: string; options?: VisitOptions }][] = [
    ['a wrong state', 400, () => ({ url: changed((p) => p.set('state', 'x'.repeat(43))) })],
    ['a state cut short', 400, () => ({ url: changed((p) => p.set('state', cut(p))) })],
    ['a missing state', 400, () => ({ url: changed((p) => p.delete('state')) })],
    ['an empty state', 400, () => ({ url: changed((p) => p.set('state', '')) })],
    ['a doubled state', 400, () => ({ url: changed((p) => p.append('state', state(p))) })],
    [
      'the id of the login as state',
      400,
      () => ({ url: changed((p) => p.set('state', started.loginId)) }),
    ],
    ['a doubled code', 400, () => ({ url: changed((p) => p.append('code', 'other')) })],
    ['a missing code', 400, () => ({ url: changed((p) => p.delete('code')) })],
    ['a wrong iss', 400, () => ({ url: changed((p) => p.set('iss', 'https://evil.example')) })],
    ['a missing iss that was promised', 400, () => ({ url: changed((p) => p.delete('iss')) })],
    [
      'an error with a wrong iss',
      400,
      () => ({
        url: changed((p) => {
          p.set('error', 'access_denied')
          p.set('iss', 'https://evil.example')
        }),
      }),
    ],
    [
      'an error with a wrong state',
      400,
      () => ({
        url: changed((p) => {
          p.set('error', 'access_denied')
          p.set('state', 'x')
        }),
      }),
    ],
    ['POST', 400, () => ({ url: callback.href, options: { method: 'POST' } })],
    ['HEAD', 400, () => ({ url: callback.href, options: { method: 'HEAD' } })],
    [
      'a foreign Host',
      400,
      () => ({ url: callback.href, options: { headers: { host: 'evil.example' } } }),
    ],
    [
      'a Host without the port',
      400,
      () => ({ url: callback.href, options: { headers: { host: '127.0.0.1' } } }),
    ],
    [
      'the other loopback name',
      400,
      () => ({ url: callback.href, options: { headers: { host: `localhost:${callback.port}` } } }),
    ],
    [
      'an image',
      400,
      () => ({ url: callback.href, options: { headers: { 'sec-fetch-dest': 'image' } } }),
    ],
    [
      'a frame',
      400,
      () => ({ url: callback.href, options: { headers: { 'sec-fetch-dest': 'iframe' } } }),
    ],
    [
      'a prefetch',
      400,
      () => ({ url: callback.href, options: { headers: { 'sec-purpose': 'prefetch;prerender' } } }),
    ],
    [
      'a path below',
      404,
      () => ({ url: changed(() => undefined).replace('/callback', '/callback/x') }),
    ],
    ['an encoded path', 404, () => ({ url: callback.href.replace('/callback', '/%63allback') })],
    ['the favicon', 404, () => ({ url: new URL('/favicon.ico', callback).href })],
    ['a made-up result page', 404, () => ({ url: new URL('/done/AAAA', callback).href })],
  ]
  for (const [what, status, make] of hostile)
    it(`refuses ${what}, and the login still succeeds`, async () => {
      const exchanges = server.tokenRequests.length
      const { url, options } = make()
      assert.equal((await visit(url, options)).status, status)
      assert.equal(server.tokenRequests.length, exchanges)
      assert.equal(await statusOf(), 'pending')
      await succeeds()
    })

  it('refuses two Host headers', async () => {
    const socket = connect(Number(callback.port), '127.0.0.1')
    const { host, pathname, search } = callback
    socket.end(`GET ${pathname}${search} HTTP/1.1\r\nHost: ${host}\r\nHost: evil.example\r\n\r\n`)
    const [chunk] = (await once(socket, 'data')) as [Buffer]
    assert.match(chunk.toString(), /^HTTP\/1\.1 400 /)
    assert.equal(await statusOf(), 'pending')
  })

  it('lets the browser in although somebody holds more connections than there may be', async () => {
    const silent = Array.from({ length: 80 }, () =>
      connect(Number(callback.port), '127.0.0.1').on('error', () => undefined),
    )
    const ended = new Promise((resolve) => silent[0]?.once('close', resolve))
    await Promise.all(silent.map((socket) => once(socket, 'connect')))
    for (const socket of silent) socket.write('GET /callback HTTP/1.1\r\n')
    await succeeds()
    await ended
    for (const socket of silent) socket.destroy()
  })

  it('exchanges a code once, however often the address is opened', async () => {
    const exchanges = server.tokenRequests.length
    const answers = await Promise.all([1, 2, 3, 4].map(() => visit(callback.href)))
    assert.equal(answers.filter(({ status }) => status === 303).length, 1)
    assert.equal(answers.filter(({ status }) => status === 400).length, 3)
    assert.equal(server.tokenRequests.length, exchanges + 1)
    assert.equal(await statusOf(), 'authorized')
  })

  it('shows the result at an address without the code, not to be stored', async () => {
    const page = await succeeds()
    const { headers, url } = page
    assert.match(new URL(url).pathname, /^\/done\/[\w-]{22}$/)
    assert.equal(new URL(url).search, '')
    assert.equal(headers['cache-control'], 'no-store')
    assert.equal(headers['x-content-type-options'], 'nosniff')
    assert.equal(headers['referrer-policy'], 'no-referrer')
    assert.match(
      String(headers['content-security-policy']),
      /^default-src 'none'; style-src 'sha256-/,
    )
    for (const secret of [state(callback.searchParams), callback.searchParams.get('code') ?? ''])
      assert.equal(page.text.includes(secret), false)
  })

  it('stops listening once the result was shown', async () => {
    await succeeds()
    await assert.rejects(visit(callback.href), { code: 'ECONNREFUSED' })
  })

  it('stays for a second login that waits', async () => {
    const other = await app.start({ provider: 'mine' })
    assert.equal(other.redirectUri, started.redirectUri)
    await succeeds()
    const second = await visit(await approve(other.authorizationUrl))
    assert.equal(second.status, 303)
    assert.equal((await app.ended(other.loginId)).status, 'authorized')
  })
})

const state = (parameters: URLSearchParams): string => parameters.get('state') ?? ''
const cut = (parameters: URLSearchParams): string => state(parameters).slice(0, -1)
