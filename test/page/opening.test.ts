import assert from 'node:assert/strict'
import { after, before, describe, it } from 'mocha'
import { type RunningDaemon, startDaemon } from '../support/daemon/daemon.ts'
import { linkToView } from '../support/desktop/page.ts'
import { runAsOther } from '../support/other-user.ts'
import { type Reply, send } from '../support/servers/http.ts'

/** What a browser sends when a person opens an address. */
const typed = {
  'sec-fetch-site': 'none',
  'sec-fetch-dest': 'document',
  'sec-fetch-mode': 'navigate',
}

describe('opening the page', () => {
  let daemon: RunningDaemon

  before(async () => {
    daemon = await startDaemon({
      agents: 'agents:\n  echo: { kind: echo }\n',
      webhooks:
        'webhooks:\n  - { path: /webhook/echo, agent: echo, prompt_template: "{{event.text}}" }\n',
    })
  })
  after(async () => {
    assert.equal(await daemon.stop(), 0)
  })

  const get = async (path: string, headers = {}) =>
    send(new URL(path, daemon.url).href, { method: 'GET', headers: { ...typed, ...headers } })
  const cookieOf = (reply: Reply): string => {
    const [cookie = ''] = reply.headers['set-cookie'] ?? []
    return cookie.split(';', 1)[0] ?? ''
  }
  const openBrowser = async (): Promise<string> => cookieOf(await get(await linkToView(daemon)))

  it('takes a link once, and shows no code in an address afterwards', async () => {
    const link = await linkToView(daemon, '/ui/events?state=done')
    const opened = await get(link)
    assert.deepEqual([opened.status, opened.headers['location']], [303, '/ui/events?state=done'])
    const [cookie = ''] = opened.headers['set-cookie'] ?? []
    const port = new URL(daemon.url).port
    assert.match(
      cookie,
      new RegExp(`^doorward-${port}=[\\w-]{43}; path=/; samesite=strict; httponly$`),
    )
    const view = await get('/ui/events?state=done', { cookie: cookieOf(opened) })
    assert.equal(view.status, 200)
    assert.match(view.text, /<h1>Events<\/h1>/)
    assert.ok(!view.text.includes(link.split('/').at(-1) ?? '-'))
    const again = await get(link)
    assert.deepEqual([again.status, again.headers['set-cookie']], [410, undefined])
    assert.match(again.text, /doorward open/)
  })

  it('leads from / to the start while there is nothing', async () => {
    const opened = await get('/', { cookie: await openBrowser() })
    assert.deepEqual([opened.status, opened.headers['location']], [303, '/ui/start'])
  })

  it('uses a link up for nobody but a person', async () => {
    const link = await linkToView(daemon)
    const others = [
      { 'sec-purpose': 'prefetch' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-dest': 'iframe' },
      { 'sec-fetch-dest': 'image' },
      { 'sec-fetch-dest': 'script' },
    ]
    for (const headers of others) assert.equal((await get(link, headers)).status, 403)
    const head = await send(link, { method: 'HEAD', headers: typed })
    assert.equal(head.status, 200)
    assert.equal((await get(link)).status, 303)
  })

  it('refuses another host name, a proxy, another site and another user', async () => {
    const cookie = await openBrowser()
    const { host, port } = new URL(daemon.url)
    assert.equal((await get('/ui/events', { cookie, host: `evil.example:${port}` })).status, 403)
    assert.equal((await get('/ui/events', { cookie, 'x-forwarded-for': '1.2.3.4' })).status, 403)
    assert.equal((await get('/ui/events', { cookie, 'sec-fetch-site': 'same-site' })).status, 403)
    assert.equal((await get('/ui/events', { cookie, host })).status, 200)
    assert.equal((await get('/ui/events')).status, 401)
    assert.equal((await get('/ui/stream')).status, 401)
    const stolen = await runAsOther<{ status: number }>(
      `const [url, cookie] = process.argv.slice(-2)
       const { status } = await fetch(url, { headers: { cookie } })
       console.log(JSON.stringify({ status }))`,
      new URL('/ui/events', daemon.url).href,
      cookie,
    )
    assert.equal(stolen.status, 403)
  })

  it('lets a restart keep the key of a browser', async () => {
    const cookie = await openBrowser()
    await daemon.client.post('/daemon/restart')
    assert.equal((await get('/ui/events', { cookie })).status, 200)
  })
})
