import assert from 'node:assert/strict'
import { chmod, readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'mocha'
import { type EventRecord, type Status, eventLinkSchema } from '../../shared/api/api.ts'
import { run } from '../cli/support/cli.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../support/daemon/daemon.ts'
import { linkToView } from '../support/desktop/page.ts'
import { runAsOther } from '../support/other-user.ts'
import { type Reply, send } from '../support/servers/http.ts'
import { temporaryFolder } from '../support/temporary.ts'

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
      variables: { DOORWARD_LOG_LEVEL: 'trace' },
      gateway: 'server: { public_port: 0 }\noauth: { callback_port: 0 }\n',
      agents: `agents:
  echo: { kind: echo }
  clock: { kind: command, command: ${JSON.stringify([process.execPath, '-p', 'process.hrtime.bigint()'])} }
`,
      webhooks: `webhooks:
  - { path: /webhook/echo, agent: echo, prompt_template: "{{event.text}}" }
  - { path: /webhook/dry, agent: clock, prompt_template: "{{event.text}}", deliver_to: ["file:sent.md"], dry_run: true }
`,
    })
  })
  after(async () => {
    // The daemon that a restart has put in its place.
    await daemon.client.post('/daemon/shutdown')
    assert.equal(await daemon.stop(), 0)
  })

  const get = async (path: string, headers = {}) =>
    send(new URL(path, daemon.url).href, { method: 'GET', headers: { ...typed, ...headers } })
  const cookieOf = (reply: Reply): string => {
    const [cookie = ''] = reply.headers['set-cookie'] ?? []
    return cookie.split(';', 1)[0] ?? ''
  }
  const deliver = async (path = '/webhook/echo'): Promise<string> => {
    const reply = await send(`${daemon.url}${path}`, {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ text: 'hello' }),
    })
    const id = String(reply.json()['id'])
    await untilFinished(daemon, id)
    return id
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

  it('does nothing for a form that is not its own, and once for a button', async () => {
    const [cookie, otherCookie] = [await openBrowser(), await openBrowser()]
    const id = await deliver()
    const path = `/ui/events/${id}`
    const shown = (await get(path, { cookie })).text
    const [, formKey = '', press = ''] =
      /name="form-key" value="([\w-]{43})"><input type="hidden" name="press" value="([\w-]{43})"/.exec(
        shown,
      ) ?? []
    assert.notEqual(formKey, '')
    const own = { ...typed, 'sec-fetch-site': 'same-origin', origin: daemon.url, cookie }
    const post = async (headers: object, key = formKey) =>
      send(new URL(`${path}/run-again`, daemon.url).href, {
        headers: { ...headers, 'content-type': 'application/x-www-form-urlencoded' },
        body: `form-key=${key}&press=${press}`,
      })
    const attempts = async () => (await daemon.client.get<EventRecord>(`/events/${id}`)).attempts
    const foreign = [
      { ...own, origin: 'https://evil.example' },
      { ...own, origin: 'null' },
      { ...own, origin: 'http://127.0.0.1:1' },
      { ...own, 'sec-fetch-site': 'same-site' },
      { ...own, 'sec-fetch-dest': 'empty' },
    ]
    for (const headers of foreign) assert.equal((await post(headers)).status, 403)
    const { origin: _, ...withoutOrigin } = own
    assert.equal((await post(withoutOrigin)).status, 403)
    assert.equal((await post(own, '')).status, 403)
    assert.equal((await post({ ...own, cookie: otherCookie })).status, 403)
    assert.equal((await post({ ...own, cookie: '' })).status, 401)
    assert.equal(await attempts(), 1)
    assert.equal((await post(own)).status, 303)
    await untilFinished(daemon, id)
    assert.equal(await attempts(), 2)
    // A double click sends two requests.
    assert.equal((await post(own)).status, 303)
    assert.equal(await attempts(), 2)
  })

  it('sends no other answer of a dry run than the one that was shown', async () => {
    const cookie = await openBrowser()
    const id = await deliver('/webhook/dry')
    const path = `/ui/events/${id}`
    const shown = (await get(path, { cookie })).text
    const fieldOf = (name: string, html = shown) =>
      new RegExp(`name="${name}" value="([\\w-]+)"`).exec(html)?.[1] ?? ''
    const own = { ...typed, 'sec-fetch-site': 'same-origin', origin: daemon.url, cookie }
    const press = async (fields: Readonly<Record<string, string>>) =>
      send(new URL(`${path}/deliver`, daemon.url).href, {
        headers: { ...own, 'content-type': 'application/x-www-form-urlencoded' },
        body: String(new URLSearchParams({ 'form-key': fieldOf('form-key'), ...fields })),
      })
    const stateOf = async () =>
      (await daemon.client.get<EventRecord>(`/events/${id}`)).targets[0]?.state
    await daemon.client.post(`/events/${id}/retry?again=true`)
    await untilFinished(daemon, id)
    // The letters of a field go back encoded: a header takes neither a line break nor all letters.
    const stale: readonly Readonly<Record<string, string>>[] = [
      { shown: '' },
      { shown: fieldOf('shown'), back: '?q=\u{1f600}\r\nset-cookie: a=b' },
    ]
    for (const fields of stale) {
      const reply = await press(fields)
      assert.equal(reply.status, 303)
      assert.match(String(reply.headers['location']), /^\/ui\/events\/[\w?=%:-]+$/)
      assert.equal(reply.headers['set-cookie'], undefined)
      assert.match((await get(path, { cookie })).text, /you have seen an older answer/)
    }
    assert.equal(await stateOf(), 'previewed')
    await press({ shown: fieldOf('shown', (await get(path, { cookie })).text) })
    await untilFinished(daemon, id)
    assert.equal(await stateOf(), 'done')
  })

  it('is not served at the public port', async () => {
    const { publicUrl = '' } = await daemon.client.get<Status>('/status')
    const cookie = await openBrowser()
    for (const path of [
      '/',
      '/ui/events',
      '/ui/stream',
      new URL(await linkToView(daemon)).pathname,
    ])
      for (const method of ['GET', 'POST'])
        assert.equal(
          (await send(`${publicUrl}${path}`, { method, headers: { cookie } })).status,
          404,
        )
    assert.equal((await get(`/ui/link/${'x'.repeat(43)}`)).status, 410)
  })

  it('opens or prints an event from the command line', async function () {
    if (process.platform !== 'linux') return this.skip()
    const id = await deliver()
    const { home } = daemon
    const printed = await run(['events', 'open', id, '--no-browser'], { home })
    assert.equal((await get(printed.stdout.trim())).headers['location'], `/ui/events/${id}`)
    const json = await run(['events', 'open', id, '--json'], { home })
    eventLinkSchema.parse(JSON.parse(json.stdout))
    const none = await run(['events', 'open', 'evt_nothing'], { home })
    assert.deepEqual([none.code, /no such event in memory/.test(none.stderr)], [1, true])
    const folder = await temporaryFolder()
    const opened = join(folder, 'opened')
    await writeFile(
      join(folder, 'browser'),
      `#!/bin/sh\nprintf '%s' "$1" > '${opened}.part'\nmv '${opened}.part' '${opened}'\n`,
    )
    await chmod(join(folder, 'browser'), 0o700)
    const env = { BROWSER: 'browser', PATH: `${folder}:${process.env['PATH']}` }
    const { code, stdout, stderr } = await run(['events', 'open', id], { home, env })
    assert.deepEqual([code, stdout], [0, ''])
    const read = async () => readFile(opened, 'utf8').catch(() => undefined)
    let url = await read()
    while (url === undefined) url = await read()
    assert.ok(stderr.includes(url))
    assert.equal((await get(url)).status, 303)
    return undefined
  })

  it('lets a restart keep the key of a browser', async () => {
    const cookie = await openBrowser()
    await daemon.client.post('/daemon/restart')
    assert.equal((await get('/ui/events', { cookie })).status, 200)
  })

  it('leaves no code and no key in a file of the home', async () => {
    const link = await linkToView(daemon)
    const opened = await get(link)
    const secrets = [link.split('/').at(-1) ?? '-', cookieOf(opened).split('=')[1] ?? '-']
    await get('/ui/events', { cookie: cookieOf(opened) })
    for (const entry of await readdir(daemon.home.root, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue
      const text = await readFile(join(entry.parentPath, entry.name), 'utf8')
      for (const secret of secrets) assert.ok(!text.includes(secret), entry.name)
    }
  })
})
