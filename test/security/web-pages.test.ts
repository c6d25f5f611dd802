import assert from 'node:assert/strict'
import type { EventLink, Login, StartedLogin } from '../../shared/api/api.ts'
import { startAuthorizationServer } from '../support/providers/authorization-server.ts'
import { approve, visit } from '../support/desktop/browser.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../support/daemon/daemon.ts'
import { send } from '../support/servers/http.ts'
import { sendOpen } from '../support/servers/raw.ts'

/** Every value that browsers send (Fetch Metadata, section 2.4), none at all, and some that none sends. */
const sites = [
  'cross-site',
  'same-site',
  'same-origin',
  'none',
  '',
  'Cross-Site',
  'x, none',
] as const
const foreign = (site: string): boolean => site !== 'same-origin' && site !== 'none'

describe('a request that a web page makes', () => {
  let daemon: RunningDaemon
  let server: Awaited<ReturnType<typeof startAuthorizationServer>>

  before(async () => {
    server = await startAuthorizationServer()
    daemon = await startDaemon({
      gateway: `oauth: { callback_port: 0 }
providers: { mine: { issuer: "${server.issuer}", scopes: [openid], client_id: public } }
`,
      webhooks: 'webhooks:\n  - { path: /open, agent: echo, prompt_template: "{{event.a}}" }\n',
    })
  })
  after(async () => {
    assert.equal(await daemon.stop(), 0)
    await server.close()
  })

  const json = { 'content-type': 'application/json' }
  const statusOf = async (path: string, headers: Record<string, string>, body?: string) =>
    (await send(`${daemon.url}${path}`, { method: body ? 'POST' : 'GET', headers, body })).status

  it('with two Sec-Fetch-Site, of which the first is that of a program, is kept out', async () => {
    const { host } = new URL(daemon.url)
    const request = (line: string, more: string) =>
      sendOpen(
        daemon.url,
        `${line} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\nSec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site\r\n${more}`,
      )
    const bearer = `Authorization: Bearer ${daemon.apiToken}\r\n\r\n`
    assert.match(await request('GET /status', bearer), /^HTTP\/1\.1 403 /)
    const body = 'Content-Type: application/json\r\nContent-Length: 7\r\n\r\n{"a":1}'
    assert.match(await request('POST /open', body), /^HTTP\/1\.1 403 /)
  })

  for (const site of sites)
    it(`with Sec-Fetch-Site "${site}" is ${foreign(site) ? 'kept out' : 'as one of a program'}`, async () => {
      const header = { 'sec-fetch-site': site }
      const bearer = { authorization: `Bearer ${daemon.apiToken}` }
      assert.equal(await statusOf('/status', { ...bearer, ...header }), foreign(site) ? 403 : 200)
      assert.equal(await statusOf('/status', header), foreign(site) ? 403 : 401)
      assert.equal(
        await statusOf('/open', { ...json, ...header }, '{"a":1}'),
        foreign(site) ? 403 : 202,
      )

      const { id } = (await send(`${daemon.url}/open`, { headers: json, body: '{"a":2}' })).json()
      await untilFinished(daemon, String(id))
      const { url } = await daemon.client.post<EventLink>(`/events/${String(id)}/link`)
      const page = await send(url, { method: 'GET', headers: header })
      assert.equal(page.status, foreign(site) ? 403 : 303)
      // Refused, it used nothing up.
      if (foreign(site)) assert.equal((await send(url, { method: 'GET' })).status, 303)
    })

  it('with an Origin of any kind is kept out, whatever Sec-Fetch-Site says', async () => {
    const bearer = { authorization: `Bearer ${daemon.apiToken}` }
    for (const origin of ['null', '', 'https://evil.example', daemon.url, 'chrome-extension://x'])
      for (const site of ['same-origin', 'none']) {
        const headers = { origin, 'sec-fetch-site': site }
        assert.equal(await statusOf('/status', { ...bearer, ...headers }), 403)
        assert.equal(await statusOf('/open', { ...json, ...headers }, '{"a":1}'), 403)
      }
  })

  it('to the callback, from wherever it comes, needs the state that only the login knows', async () => {
    const started = await daemon.client.post<StartedLogin>('/oauth/start', { provider: 'mine' })
    const callback = new URL(await approve(started.authorizationUrl))
    const login = async () => daemon.client.get<Login>(`/oauth/logins/${started.loginId}`)
    const state = callback.searchParams.get('state') ?? ''
    callback.searchParams.set('state', 'A'.repeat(state.length))
    for (const site of sites)
      for (const destination of ['document', 'image', 'iframe', 'script', 'empty', 'object']) {
        const headers = { 'sec-fetch-site': site, 'sec-fetch-dest': destination }
        assert.equal((await visit(callback.href, { headers })).status, 400)
      }
    callback.searchParams.set('state', state)
    for (const destination of ['image', 'iframe', 'script', 'empty', 'object', 'embed']) {
      const headers = { 'sec-fetch-dest': destination }
      assert.equal((await visit(callback.href, { headers })).status, 400, destination)
    }
    assert.equal((await login()).status, 'pending')
    // A provider's page sends the browser here: that is another site, and the usual case.
    const headers = { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'document' }
    assert.equal((await visit(callback.href, { headers })).status, 303)
    assert.equal(
      (await daemon.client.get<Login>(`/oauth/logins/${started.loginId}?wait=10`)).status,
      'authorized',
    )
  })
})
