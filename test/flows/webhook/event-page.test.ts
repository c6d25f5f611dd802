import assert from 'node:assert/strict'
import { chmod, readFile, readdir, stat, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import {
  type EventDetail,
  type EventLink,
  type EventRecord,
  type Status,
  eventLinkSchema,
} from '../../../shared/api/api.ts'
import { run } from '../../cli/support/cli.ts'
import { textOf } from '../../support/desktop/browser.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { followEvents } from '../../support/daemon/events.ts'
import { type Reply, send } from '../../support/servers/http.ts'
import { type Reports, startReports } from '../../support/daemon/reports.ts'
import { temporaryFolder } from '../../support/temporary.ts'

type Headers = Readonly<Record<string, string | string[]>>

const json = { 'content-type': 'application/json' }

describe('the page of an event', () => {
  let daemon: RunningDaemon
  let reports: Reports
  let publicUrl: string
  /** Every code that was ever made, to be looked for where none may be. */
  const codes = new Set<string>()
  const noteCodes = (text: string): void => {
    for (const [, code = ''] of text.matchAll(/\/events\/view\/([\w-]{43})/g)) codes.add(code)
  }

  before(async () => {
    reports = await startReports()
    daemon = await startDaemon({
      variables: { DOORWARD_LOG_LEVEL: 'trace' },
      gateway: 'server: { public_port: 0 }\noauth: { callback_port: 0 }\nevents: { keep: 3 }\n',
      agents: `
agents:
  echo: { kind: echo }
  slow: { kind: command, command: ${reports.command} }
  fails: { kind: command, command: ["${process.execPath}", -e, "process.exit(3)"] }
`,
      webhooks: `
webhooks:
  - { path: /hook, agent: echo, prompt_template: "{{event.a}}" }
  - { path: /slow, agent: slow, prompt_template: "{{event.a}}" }
  - { path: /fails, agent: fails, prompt_template: "{{event.a}}" }
`,
    })
    publicUrl = (await daemon.client.get<Status>('/status')).publicUrl ?? ''
  })
  after(async () => {
    reports.close()
    await daemon.stop()
  })

  const post = async (path: string, a: string): Promise<string> => {
    const reply = await send(`${daemon.url}${path}`, { headers: json, body: JSON.stringify({ a }) })
    return String(reply.json()['id'])
  }
  const finished = async (path: string, a: string): Promise<EventDetail> =>
    untilFinished(daemon, await post(path, a))
  const linkTo = async (id: string): Promise<string> => {
    const link = await daemon.client.post<EventLink>(`/events/${id}/link`)
    noteCodes(link.url)
    return link.url
  }
  const ask = async (url: string, headers: Headers = {}, method = 'GET'): Promise<Reply> => {
    const reply = await send(url, { method, headers: { connection: 'close', ...headers } })
    noteCodes(reply.text + String(reply.headers.location))
    return reply
  }
  const getCookie = ({ headers }: Reply): string => {
    const [cookie = ''] = headers['set-cookie'] ?? []
    return cookie.split(';')[0] ?? ''
  }
  const getButtonPath = ({ text }: Reply): string =>
    /<form method="post" action="([^"]+)">/.exec(text)?.[1] ?? ''
  const getAttempts = async (id: string): Promise<number> =>
    (await daemon.client.get<EventRecord>(`/events/${id}`)).attempts

  it('is shown once, without scripts, and with headers that isolate it', async () => {
    const { id } = await finished('/hook', 'the answer')
    const url = await linkTo(id)
    const reply = await ask(url)
    assert.equal(reply.status, 200)
    assert.match(textOf(reply.text), /the answer/)
    assert.match(textOf(reply.text), /Signature\s*none: no secret is set/)
    assert.doesNotMatch(reply.text, /<script|<iframe| on\w+=| style=/)
    const policy = String(reply.headers['content-security-policy'])
    assert.match(policy, /^default-src 'none'; style-src 'sha256-[^']+'; img-src data:;/)
    assert.match(policy, /base-uri 'none'; form-action 'self'; frame-ancestors 'none'$/)
    for (const [name, value] of [
      ['cache-control', 'no-store'],
      ['referrer-policy', 'same-origin'],
      ['x-content-type-options', 'nosniff'],
      ['x-frame-options', 'DENY'],
      ['cross-origin-opener-policy', 'same-origin'],
      ['cross-origin-resource-policy', 'same-origin'],
      ['content-type', 'text/html; charset=utf-8'],
    ] as const)
      assert.equal(reply.headers[name], value, name)
    const again = await ask(url)
    assert.deepEqual([again.status, /the answer/.test(again.text)], [410, false])
    assert.match(textOf(again.text), /works once and for one minute[^]*in the tray again/)
  })

  it('loads again only with its key, a cookie for this one path', async () => {
    const { id } = await finished('/hook', 'x')
    const url = await linkTo(id)
    const first = await ask(url)
    const [cookie = ''] = first.headers['set-cookie'] ?? []
    assert.match(cookie, /^doorward-page=[\w-]{43}; path=\/events\/view\/[\w-]{43}; expires=[^;]+;/)
    assert.ok(cookie.includes(new URL(url).pathname))
    assert.match(cookie, /; samesite=strict; httponly$/)
    const key = getCookie(first)
    codes.add(key.split('=')[1] ?? '')
    assert.equal((await ask(url, { cookie: key })).status, 200)
    for (const wrong of [`${key}x`, 'doorward-page=', `doorward-page=${'x'.repeat(43)}`])
      assert.equal((await ask(url, { cookie: wrong })).status, 410)
    const other = await linkTo(id)
    await ask(other)
    assert.equal((await ask(other, { cookie: key })).status, 410)
  })

  it('is not used up by prefetches, frames, links of other pages and HEAD requests', async () => {
    const { id } = await finished('/hook', 'the secret answer')
    const url = await linkTo(id)
    const port = new URL(url).port
    const others: readonly Headers[] = [
      { 'sec-purpose': 'prefetch;prerender', 'sec-fetch-site': 'none' },
      { purpose: 'prefetch' },
      { 'x-purpose': 'preview' },
      { 'x-moz': 'prefetch' },
      {
        'sec-fetch-site': 'cross-site',
        'sec-fetch-mode': 'navigate',
        'sec-fetch-dest': 'document',
      },
      { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
      { 'sec-fetch-site': 'same-origin', 'sec-fetch-dest': 'iframe' },
      { 'sec-fetch-site': 'none', 'sec-fetch-dest': 'image' },
      { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'cors' },
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { host: 'evil.example' },
      { host: `evil.example:${port}` },
      { host: `127.0.0.1:${Number(port) - 1}` },
      { 'x-forwarded-for': '127.0.0.1' },
      { 'cf-ray': '1' },
      { via: '1.1 proxy' },
    ]
    for (const headers of others) {
      const reply = await ask(url, headers)
      assert.deepEqual([headers, reply.status], [headers, 403])
      assert.doesNotMatch(reply.text, /the secret answer/)
      assert.equal(reply.headers['set-cookie'], undefined)
    }
    const head = await ask(url, {}, 'HEAD')
    assert.deepEqual([head.status, head.text, head.headers['set-cookie']], [200, '', undefined])
    assert.equal((await ask(url, {}, 'POST')).status, 403)
    for (const method of ['PUT', 'DELETE', 'OPTIONS'])
      assert.deepEqual([method, (await ask(url, {}, method)).status], [method, 405])
    const typed = { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate' }
    assert.equal((await ask(url, { ...typed, 'sec-fetch-dest': 'document' })).status, 200)
    assert.equal((await ask(url, {}, 'HEAD')).status, 410)
  })

  it('is not served on the public port, and a guessed code discloses nothing', async () => {
    const { id } = await finished('/hook', 'x')
    const url = await linkTo(id)
    const { pathname } = new URL(url)
    for (const method of ['GET', 'POST', 'HEAD']) {
      const reply = await ask(`${publicUrl}${pathname}`, {}, method)
      assert.deepEqual([method, reply.status], [method, 404])
    }
    for (const path of [`/events/${id}/link`, '/events/view', '/events/view/short'])
      for (const method of ['GET', 'POST']) {
        assert.equal((await ask(`${publicUrl}${path}`, {}, method)).status, 404)
        assert.equal((await ask(`${daemon.url}${path}`, {}, method)).status, 401)
      }
    assert.equal((await ask(`${daemon.url}/events/view/${'x'.repeat(43)}`)).status, 410)
    assert.equal((await ask(url)).status, 200)
  })

  it('reloads while the event runs, once something has changed', async () => {
    const changes = await followEvents(daemon)
    const id = await post('/slow', 'question')
    const report = await reports.next()
    await changes.next((record) => record.id === id && record.state === 'running')
    const url = await linkTo(id)
    const first = await ask(url)
    const [, target = ''] = /http-equiv="refresh" content="1; url=([^"]+)"/.exec(first.text) ?? []
    assert.match(target, /^\/events\/view\/[\w-]{43}\?seen=[\w-]{16}$/)
    let isAnswered = false
    const second = ask(new URL(target, url).href, { cookie: getCookie(first) }).finally(() => {
      isAnswered = true
    })
    // A page that says something else was seen is answered at once; by then the other one waits.
    await ask(`${url}?seen=other`, { cookie: getCookie(first) })
    assert.equal(isAnswered, false)
    report.release()
    assert.match((await second).text, /data-state="(delivering|done)"/)
    await changes.next((record) => record.id === id && record.state === 'done')
    changes.close()
    const last = await ask(url, { cookie: getCookie(first) })
    assert.match(textOf(last.text), /answer to question/)
    assert.doesNotMatch(last.text, /http-equiv="refresh"/)
  })

  it('does not delay the stop of the daemon', async () => {
    const own = await startDaemon({
      agents: `agents:\n  slow: { kind: command, command: ${reports.command} }\n`,
      webhooks: 'webhooks:\n  - { path: /slow, agent: slow, prompt_template: x }\n',
    })
    const posted = await send(`${own.url}/slow`, { headers: json, body: '{}' })
    const report = await reports.next()
    const id = String(posted.json()['id'])
    const { url } = await own.client.post<EventLink>(`/events/${id}/link`)
    const first = await send(url, { method: 'GET' })
    const [, target = ''] = /content="1; url=([^"]+)"/.exec(first.text) ?? []
    const cookie = getCookie(first)
    const second = send(new URL(target, url).href, { method: 'GET', headers: { cookie } })
    const stopped = own.stop()
    report.release()
    assert.equal((await second).status, 200)
    assert.equal(await stopped, 0)
  })

  it('reports an event that is no longer in memory', async () => {
    const { id } = await finished('/hook', 'old')
    const unused = await linkTo(id)
    const used = await linkTo(id)
    const cookie = getCookie(await ask(used))
    for (let count = 0; count < 3; count += 1) await finished('/hook', String(count))
    for (const reply of [await ask(unused), await ask(used, { cookie })]) {
      assert.equal(reply.status, 404)
      assert.match(textOf(reply.text), /no longer in memory/)
    }
  })

  it('has a button that runs the event again, once, from its own form only', async () => {
    const { id } = await finished('/fails', 'x')
    const first = await ask(await linkTo(id))
    const path = getButtonPath(first)
    const url = `${daemon.url}${path}`
    const origin = daemon.url
    const others: readonly Headers[] = [
      {},
      { origin: 'null' },
      { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
      { origin, 'sec-fetch-site': 'cross-site' },
      { origin, 'sec-fetch-site': 'same-origin', 'sec-fetch-dest': 'empty' },
      { origin: `http://localhost:${new URL(origin).port}` },
    ]
    for (const headers of others) {
      const reply = await ask(url, headers, 'POST')
      assert.deepEqual([headers, reply.status], [headers, 403])
    }
    // A code of one kind is none of the other.
    assert.equal((await ask(url)).status, 410)
    assert.equal((await ask(await linkTo(id), { origin }, 'POST')).status, 410)
    assert.equal(await getAttempts(id), 1)

    const changes = await followEvents(daemon)
    const form = { origin, 'sec-fetch-site': 'same-origin', 'sec-fetch-dest': 'document' }
    const pressed = await ask(url, form, 'POST')
    assert.deepEqual([pressed.status, pressed.text], [303, ''])
    await changes.next((record) => record.id === id && record.state === 'failed')
    changes.close()
    const shown = await ask(new URL(String(pressed.headers.location), url).href)
    assert.match(textOf(shown.text), /event runs again/)
    const twice = await ask(url, form, 'POST')
    const last = await ask(new URL(String(twice.headers.location), url).href)
    assert.deepEqual([last.status, /event runs again/.test(last.text)], [200, false])
    assert.equal(await getAttempts(id), 2)
    assert.notEqual(getButtonPath(last), path)
  })

  it('has a button that cancels an event that waits or runs', async () => {
    const changes = await followEvents(daemon)
    const id = await post('/slow', 'x')
    await reports.next()
    const first = await ask(await linkTo(id))
    assert.match(first.text, /<button>Cancel</)
    const form = {
      origin: daemon.url,
      'sec-fetch-site': 'same-origin',
      'sec-fetch-dest': 'document',
    }
    const pressed = await ask(`${daemon.url}${getButtonPath(first)}`, form, 'POST')
    assert.equal(pressed.status, 303)
    await changes.next((record) => record.id === id && record.state === 'failed')
    changes.close()
    const shown = await ask(new URL(String(pressed.headers.location), daemon.url).href)
    assert.match(textOf(shown.text), /event is being cancelled/)
    assert.match(textOf(shown.text), /failed at agent · event-cancelled/)
    assert.match(shown.text, /<button>Run again</)
  })

  it('is opened or printed by the command line', async function () {
    if (process.platform !== 'linux') return this.skip()
    const { id } = await finished('/hook', 'from the command line')
    const { home } = daemon
    const printed = await run(['events', 'open', id, '--no-browser'], { home })
    assert.equal(printed.code, 0)
    noteCodes(printed.stdout)
    assert.match(textOf((await ask(printed.stdout.trim())).text), /from the command line/)
    const asJson = await run(['events', 'open', id, '--json'], { home })
    noteCodes(asJson.stdout)
    eventLinkSchema.parse(JSON.parse(asJson.stdout))
    const none = await run(['events', 'open', 'evt_nothing'], { home })
    assert.equal(none.code, 1)
    assert.match(none.stderr, /no such event in memory/)

    const folder = await temporaryFolder()
    const opened = join(folder, 'opened')
    await writeFile(
      join(folder, 'browser'),
      `#!/bin/sh\nprintf '%s' "$1" > '${opened}.part'\nmv '${opened}.part' '${opened}'\n`,
    )
    await chmod(join(folder, 'browser'), 0o700)
    const env = { BROWSER: 'browser', PATH: `${folder}${delimiter}${process.env['PATH']}` }
    const { code, stdout, stderr } = await run(['events', 'open', id], { home, env })
    assert.deepEqual([code, stdout], [0, ''])
    const exists = async () =>
      stat(opened).then(
        () => true,
        () => false,
      )
    while (!(await exists())) await new Promise((resolve) => setImmediate(resolve))
    const url = await readFile(opened, 'utf8')
    noteCodes(url)
    assert.ok(stderr.includes(url))
    assert.equal((await ask(url)).status, 200)
    return undefined
  })

  it('leaves no code in any file of the home', async () => {
    await daemon.stop()
    assert.ok(codes.size > 30, String(codes.size))
    for (const entry of await readdir(daemon.home.root, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue
      const text = await readFile(join(entry.parentPath, entry.name), 'utf8')
      const found = [...codes].filter((code) => text.includes(code))
      assert.deepEqual([entry.name, found], [entry.name, []])
    }
    assert.match(await readFile(daemon.home.log, 'utf8'), /"msg":"event"/)
  })
})
