import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'mocha'
import type { Browser, Page } from 'playwright-core'
import type { EventLink, EventRecord } from '../../shared/api/api.ts'
import {
  chromiumPath,
  launchChromium,
  openWindow,
  takePicture,
} from '../support/desktop/chromium.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../support/daemon/daemon.ts'
import { followEvents } from '../support/daemon/events.ts'
import { send } from '../support/servers/http.ts'
import { type Reports, startReports } from '../support/daemon/reports.ts'

const json = { 'content-type': 'application/json' }

const describePage = (): void => {
  let browser: Browser
  let daemon: RunningDaemon
  let reports: Reports

  const agents = (fixed: boolean) => `
agents:
  echo: { kind: echo }
  slow: { kind: command, command: ${reports.command} }
  reviewer: { kind: command, command: ${JSON.stringify(
    fixed
      ? [process.execPath, '-e', 'console.log("Looks good to me.")']
      : [
          process.execPath,
          '-e',
          'console.error("error: cannot reach the model\\nhelp: check the key"); process.exitCode = 3',
        ],
  )} }
`

  before(async () => {
    reports = await startReports()
    browser = await launchChromium()
    daemon = await startDaemon({
      env: 'HOOK_SECRET=a secret of this test\n',
      agents: agents(false),
      webhooks: `
webhooks:
  - { path: /webhook/echo, agent: echo, prompt_template: "{{event.text}}", deliver_to: ["file:answers.md", notify:desktop] }
  - { path: /webhook/review, agent: reviewer, prompt_template: "Review this: {{event.text}}" }
  - { path: /webhook/slow, agent: slow, prompt_template: "Summarise this issue: {{event.text}}", deliver_to: ["file:answers.md"] }
  - { path: /webhook/github, agent: echo, prompt_template: x, secret_env: HOOK_SECRET }
`,
    })
  })
  after(async () => {
    await browser.close()
    reports.close()
    assert.equal(await daemon.stop(), 0)
  })

  const post = async (path: string, text: string): Promise<string> => {
    const reply = await send(`${daemon.url}${path}`, {
      headers: { ...json, 'x-github-delivery': randomUUID() },
      body: JSON.stringify({ text }),
    })
    return String(reply.json()['id'])
  }
  const linkTo = async (id: string): Promise<string> =>
    (await daemon.client.post<EventLink>(`/events/${id}/link`)).url
  const newest = async (path: string): Promise<EventRecord> => {
    const { events } = await daemon.client.get<{ events: EventRecord[] }>(
      `/events?limit=1&webhook=${encodeURIComponent(path)}`,
    )
    assert.ok(events[0])
    return events[0]
  }
  const stateOn = (page: Page) => page.locator('.state').innerText()
  const overflows = (page: Page) =>
    page.locator('html').evaluate((html) => html.scrollWidth > html.clientWidth)

  const prose = 'The change is safe to merge.\n\n  - it has a test\n  - nothing else changes'
  const looks = [
    { width: 1000, colorScheme: 'light', card: 'rgb(255, 255, 255)' },
    { width: 400, colorScheme: 'dark', card: 'rgb(24, 28, 34)' },
  ] as const
  const states: readonly (readonly [string, () => Promise<string>, RegExp])[] = [
    [
      'done',
      async () => {
        const id = await post('/webhook/echo', prose)
        return (await untilFinished(daemon, id)).id
      },
      /The change is safe to merge[^]*/,
    ],
    [
      'failed',
      async () => (await untilFinished(daemon, await post('/webhook/review', prose))).id,
      /failed at agent[^]*cannot reach the model[^]*Run again/,
    ],
    [
      'rejected',
      async () => {
        await post('/webhook/github', 'not signed')
        return (await newest('/webhook/github')).id
      },
      /rejected at verify · signature-invalid[^]*refused at signature/,
    ],
    [
      'daemon',
      async () => {
        const { events } = await daemon.client.get<{ events: EventRecord[] }>('/events?state=done')
        return events.find(({ kind }) => kind === 'daemon')?.id ?? ''
      },
      /Daemon[^]*started/,
    ],
  ]
  for (const look of looks)
    for (const [name, make, text] of states)
      it(`shows an event of the kind ${name}, ${look.colorScheme}, ${look.width} pixels wide`, async () => {
        const { page, complaints, close } = await openWindow(browser, look)
        const response = await page.goto(await linkTo(await make()))
        assert.equal(response?.status(), 200)
        assert.match(await page.locator('body').innerText(), text)
        const card = await page
          .locator('main')
          .evaluate(
            (main) => main.ownerDocument.defaultView?.getComputedStyle(main).backgroundColor,
          )
        // The style was let in by its hash; were it not, the card would have no colour.
        assert.deepEqual([card, await overflows(page), complaints], [look.card, false, []])
        await takePicture(page, `event-${name}-${look.colorScheme}-${look.width}`)
        await close()
      })

  it('follows a running event without a reload', async () => {
    const changes = await followEvents(daemon)
    const id = await post('/webhook/slow', prose)
    const report = await reports.next()
    await changes.next((record) => record.id === id && record.state === 'running')
    changes.close()
    const { page, complaints, close } = await openWindow(browser, looks[1])
    await page.goto(await linkTo(id))
    assert.equal(await stateOn(page), 'running')
    await takePicture(page, 'event-running')
    report.release()
    await page.getByText('answer to Summarise this issue').first().waitFor()
    await page.locator('main[data-state=done]').waitFor()
    assert.deepEqual([await overflows(page), complaints], [false, []])
    // What was shown on the way is no step back.
    assert.equal(await page.evaluate('history.length'), 2)
    await close()
  })

  it('can be reloaded only by the browser that opened it', async () => {
    const id = await post('/webhook/echo', 'once')
    await untilFinished(daemon, id)
    const url = await linkTo(id)
    const { page, close } = await openWindow(browser, looks[0])
    await page.goto(url)
    for (let round = 0; round < 3; round += 1) {
      assert.equal((await page.reload())?.status(), 200)
      assert.equal(await stateOn(page), 'done')
    }
    const other = await openWindow(browser, looks[1])
    assert.equal((await other.page.goto(url))?.status(), 410)
    assert.match(await other.page.locator('body').innerText(), /click the event in the tray again/i)
    await takePicture(other.page, 'event-used')
    await other.close()
    await close()
  })

  it('retries an event by its button, and says why when it cannot', async () => {
    const id = await post('/webhook/review', 'again')
    await untilFinished(daemon, id)
    const { page, complaints, close } = await openWindow(browser, looks[0])
    await page.goto(await linkTo(id))
    const stale = await openWindow(browser, looks[0])
    await stale.page.goto(await linkTo(id))
    await writeFile(join(daemon.home.config, 'agents.yaml'), agents(true))
    await daemon.client.post('/daemon/reload')
    await page.getByRole('button', { name: 'Run again' }).click()
    await page.getByText('Looks good to me.').waitFor()
    assert.equal(await stateOn(page), 'done')
    assert.deepEqual(complaints, [])

    await stale.page.getByRole('button', { name: 'Run again' }).click()
    await stale.page.getByRole('status').waitFor()
    assert.match(
      await stale.page.getByRole('status').innerText(),
      /it is done: nothing of it failed/,
    )
    assert.equal((await daemon.client.get<EventRecord>(`/events/${id}`)).attempts, 2)
    await takePicture(stale.page, 'event-not-retried')
    await stale.close()
    await close()
    await writeFile(join(daemon.home.config, 'agents.yaml'), agents(false))
    await daemon.client.post('/daemon/reload')
  })

  it('shows what a sender or an agent writes as plain text', async () => {
    const hostile = [
      '</pre><script>document.title = "owned"</script>',
      '<img src=x onerror="document.title = \'owned\'"><style>* { display: none }</style>',
      '"><form action="https://evil.example"><button>Run again</button></form>',
      '{{style}} {{content}} $& $1',
      '\u001b[31mred\u001b[0m \u001b]8;;https://evil.example\u0007link\u001b]8;;\u0007 \u0007\u0000',
      'access_level != "user\u202e \u2066// only for admins\u2069 \u2066"',
      '\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd (1, 2, 3)',
      `a${'\u0300'.repeat(400)}`,
      'x'.repeat(5000),
    ].join('\n')
    const id = await post('/webhook/echo', hostile)
    await untilFinished(daemon, id)
    for (const look of looks) {
      const { page, complaints, close } = await openWindow(browser, look)
      await page.goto(await linkTo(id))
      const shown = await page.locator('pre').first().innerText()
      assert.match(shown, /^<\/pre><script>document\.title/)
      assert.match(shown, /\{\{style\}\} \{\{content\}\} \$& \$1\nred link/)
      assert.doesNotMatch(shown, /[\u0000-\u0008\u001b\u202a-\u202e\u2066-\u2069]/)
      assert.equal(await page.title(), '/webhook/echo: done · Doorward')
      assert.equal(await page.locator('script, img, pre *').count(), 0)
      // The page's own form runs the event once more.
      assert.equal(await page.locator('form').count(), 1)
      assert.equal(await page.locator('form[action*="evil"]').count(), 0)
      assert.deepEqual([await overflows(page), complaints], [false, []])
      await takePicture(page, `event-hostile-${look.colorScheme}-${look.width}`)
      await close()
    }
  })

  it('is not shown in a frame or by a link of another page, and stays unused then', async () => {
    const id = await post('/webhook/echo', 'framed')
    await untilFinished(daemon, id)
    const url = await linkTo(id)
    const { page, close } = await openWindow(browser, looks[0])
    await page.route('https://evil.example/**', (route) =>
      route.fulfill({
        contentType: 'text/html',
        body: `<iframe src="${url}"></iframe><img src="${url}"><a href="${url}">look</a>`,
      }),
    )
    await page.goto('https://evil.example/')
    for (const frame of page.frames().slice(1))
      assert.doesNotMatch(await frame.locator('body').innerText(), /framed/)
    await page.getByText('look').click()
    await page.getByRole('heading', { level: 1 }).waitFor()
    assert.match(await page.locator('body').innerText(), /Open this link yourself/)
    await takePicture(page, 'event-other-site')
    assert.equal((await page.goto(url))?.status(), 200)
    await close()
  })
}

if (chromiumPath !== undefined)
  describe('page of an event in Chromium', describePage).timeout(60_000)
