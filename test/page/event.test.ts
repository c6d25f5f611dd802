import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'mocha'
import type { Browser } from 'playwright-core'
import type { EventLink, EventRecord } from '../../shared/api/api.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../support/daemon/daemon.ts'
import { followEvents } from '../support/daemon/events.ts'
import { type Reports, startReports } from '../support/daemon/reports.ts'
import {
  chromiumPath,
  launchChromium,
  openWindow,
  takePicture,
} from '../support/desktop/chromium.ts'
import { isTooWide, narrow, openView, wide } from '../support/desktop/page.ts'
import { send } from '../support/servers/http.ts'

const describeView = (): void => {
  let browser: Browser
  let daemon: RunningDaemon
  let reports: Reports

  const agents = (reviewer: string) => `
agents:
  echo: { kind: echo }
  slow: { kind: command, command: ${reports.command} }
  reviewer: { kind: command, command: ${JSON.stringify([process.execPath, '-e', reviewer])} }
`
  const broken = 'console.error("error: cannot reach the model"); process.exitCode = 3'
  const review = [
    '## The change is **not** safe',
    '',
    '1. it has no test for `retry()`',
    '2. see [the rule](https://example.com/rule)',
    '',
    '| file | risk |',
    '| --- | --- |',
    '| a.ts | high |',
    '',
    '```json',
    '{"comments": [{"path": "a.ts", "line": 3, "body": "Keep **this**"}, {"path": "b.ts", "line": 7, "body": "Drop this"}]}',
    '```',
  ].join('\n')

  before(async () => {
    reports = await startReports()
    browser = await launchChromium()
    daemon = await startDaemon({
      agents: agents(broken),
      webhooks: `
webhooks:
  - { path: /webhook/echo, agent: echo, prompt_template: "{{event.text}}", deliver_to: ["file:answers.md"] }
  - { path: /webhook/review, agent: reviewer, prompt_template: "Review: {{event.text}}" }
  - { path: /webhook/slow, agent: slow, prompt_template: "Summarise: {{event.text}}" }
  - { path: /webhook/ask, agent: echo, prompt_template: "{{event.text}}", deliver_to: ["file:asked.md"], approve: { by: [desktop], when: [file] } }
  - { path: /webhook/many, agent: echo, prompt_template: "{{event.text}}" }
  - { path: /webhook/dry, agent: echo, prompt_template: "{{event.text}}", deliver_to: ["file:dry.md"], dry_run: true }
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
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ text }),
    })
    return String(reply.json()['id'])
  }
  const waiting = async (text: string): Promise<string> => {
    const changes = await followEvents(daemon)
    const id = await post('/webhook/ask', text)
    await changes.next((record) => record.id === id && record.state === 'waiting')
    changes.close()
    return id
  }
  const record = async (id: string) => daemon.client.get<EventRecord>(`/events/${id}`)

  it('shows an answer as its agent meant it, opened by the link of an event', async () => {
    const { id } = await untilFinished(daemon, await post('/webhook/echo', review))
    const { url } = await daemon.client.post<EventLink>(`/events/${id}/link`)
    for (const look of [wide, narrow]) {
      const { page, complaints, close } =
        look === wide
          ? await openWindow(browser, look)
          : await openView(browser, daemon, `/ui/events/${id}`, look)
      if (look === wide) await page.goto(url)
      assert.equal(new URL(page.url()).pathname, `/ui/events/${id}`)
      const prose = page.locator('.prose').first()
      assert.equal(await prose.locator('h3 strong').innerText(), 'not')
      assert.equal(await prose.locator('ol > li code').innerText(), 'retry()')
      assert.equal(await prose.getByRole('cell', { name: 'high' }).count(), 1)
      assert.match(await prose.innerText(), /the rule \(https:\/\/example\.com\/rule\)/)
      assert.equal(await page.locator('.comment').count(), 2)
      assert.match(await page.locator('.targets').innerText(), /file:answers\.md done/)
      assert.equal(await page.locator('.stages li').count(), 4)
      assert.equal(await page.locator('#prompt').count(), 0)
      await takePicture(page, `page-event-${look.colorScheme}`)
      await page.getByRole('link', { name: 'Show the prompt' }).click()
      assert.match(await page.locator('#prompt pre').innerText(), /^## The change/)
      assert.deepEqual([await isTooWide({ page }), complaints], [false, []])
      await close()
    }
  })

  it('follows a run, cancels it, and runs it again', async () => {
    const changes = await followEvents(daemon)
    const id = await post('/webhook/slow', 'an issue')
    const report = await reports.next()
    await changes.next((one) => one.id === id && one.state === 'running')
    const { page, complaints, close } = await openView(browser, daemon, `/ui/events/${id}`, narrow)
    assert.equal(await page.locator('h1 ~ p + .state, .view-head .state').innerText(), 'running')
    report.release()
    await page.locator('.prose', { hasText: 'answer to Summarise' }).waitFor()
    await page.locator('.view-head .state[data-state=done]').waitFor()
    // One load, and no step back to what was shown on the way.
    assert.equal(await page.evaluate('performance.getEntriesByType("navigation").length'), 1)
    await page.getByRole('button', { name: 'Run again' }).click()
    await page.getByText('runs again, as its webhook is now').waitFor()
    await reports.next()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.locator('.reason', { hasText: 'event-cancelled' }).waitFor()
    assert.match(await page.locator('.reason').innerText(), /event-cancelled/)
    assert.deepEqual(complaints, [])
    changes.close()
    await close()
  })

  it('says why a run failed, runs it again by its button, and only once', async () => {
    const { id } = await untilFinished(daemon, await post('/webhook/review', 'x'))
    const { page, complaints, close } = await openView(browser, daemon, `/ui/events/${id}`)
    const stale = await page.context().newPage()
    await stale.goto(page.url())
    assert.match(
      await page.locator('.reason').innerText(),
      /failed at agent[^]*cannot reach the model/,
    )
    await takePicture(page, 'page-event-failed')
    await writeFile(join(daemon.home.config, 'agents.yaml'), agents('console.log("Good.")'))
    await daemon.client.post('/daemon/reload')
    await page.getByRole('button', { name: 'Run again' }).click()
    await page.locator('.prose', { hasText: 'Good.' }).waitFor()
    assert.equal((await record(id)).attempts, 2)
    assert.deepEqual(complaints, [])
    await close()
  })

  it('sends an answer without the comments that were left out, and says who has approved', async () => {
    const id = await waiting(review)
    const { page, complaints, close } = await openView(browser, daemon, `/ui/events/${id}`, narrow)
    await takePicture(page, 'page-event-waiting')
    assert.deepEqual(await isTooWide({ page }), false)
    await page.getByLabel('b.ts').uncheck()
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.locator('#notice', { hasText: 'It is being sent' }).waitFor()
    await untilFinished(daemon, id)
    await page.locator('.view-head .state[data-state=done]').waitFor()
    const { approval } = await record(id)
    assert.deepEqual([approval?.by, approval?.where], ['owner', 'page'])
    assert.match(await page.locator('.comment').innerText(), /a\.ts line 3[^]*Keep this/)
    assert.deepEqual(complaints, [])
    await close()
  })

  it('sends nothing that a person has not seen, and nothing where they say so', async () => {
    const id = await waiting('first answer')
    const { page, close } = await openView(browser, daemon, `/ui/events/${id}`)
    await page
      .locator('input[name=digest]')
      .first()
      .evaluate((field) => {
        field.setAttribute('value', 'a'.repeat(64))
        // As after a first word of a remark: the form is not replaced meanwhile.
        field.closest('form')?.setAttribute('data-touched', '1')
      })
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.locator('#notice', { hasText: 'you have seen an older answer' }).waitFor()
    assert.equal((await record(id)).state, 'waiting')
    await page.getByLabel('with your words').fill('shorter')
    const changes = await followEvents(daemon)
    await page.getByRole('button', { name: 'Run again' }).click()
    await changes.next((one) => one.id === id && one.state === 'waiting')
    changes.close()
    await page.locator('.prose', { hasText: 'shorter' }).waitFor()
    await page.getByRole('button', { name: 'Do not send' }).click()
    await page.locator('.view-head .state[data-state=declined]').waitFor()
    await close()
  })

  it('delivers a dry run after all, and forgets the texts of an event', async () => {
    const { id } = await untilFinished(daemon, await post('/webhook/dry', 'held back'))
    const { page, complaints, close } = await openView(browser, daemon, `/ui/events/${id}`)
    await page.getByText('What it gets').click()
    assert.match(await page.locator('.targets pre').innerText(), /held back/)
    const changes = await followEvents(daemon)
    await page.getByRole('button', { name: 'Send it after all' }).click()
    await changes.next((one) => one.id === id && one.state === 'done')
    changes.close()
    await takePicture(page, 'page-event-dry')
    await page.locator('.targets [data-state=done]').waitFor()
    await page.getByText('Forget', { exact: true }).click()
    await page.getByRole('button', { name: 'Forget its texts' }).click()
    await page.locator('#notice', { hasText: 'forgotten' }).waitFor()
    assert.doesNotMatch(await page.locator('main').innerText(), /held back/)
    assert.deepEqual(complaints, [])
    await close()
  })

  it('lists events by filter and search, page after page, and follows new ones', async () => {
    const texts = Array.from({ length: 60 }, (_, number) => `needle ${number}`)
    const ids = await Promise.all(texts.map(async (text) => post('/webhook/many', text)))
    for (const id of ids) await untilFinished(daemon, id)
    for (const look of [wide, narrow]) {
      const { page, complaints, close } = await openView(browser, daemon, '/ui/events', look)
      assert.equal(await page.locator('tbody tr').count(), 50)
      await takePicture(page, `page-events-${look.colorScheme}`)
      await page.getByLabel('From').selectOption('/webhook/many')
      await page.getByRole('button', { name: 'Show', exact: true }).click()
      await page.getByRole('link', { name: 'Older' }).click()
      await page.getByRole('link', { name: 'Newest' }).waitFor()
      // The first window has made one more.
      assert.equal(await page.locator('tbody tr').count(), look === wide ? 10 : 11)
      await page.getByLabel('Search').fill('needle 59')
      await page.getByRole('button', { name: 'Show', exact: true }).click()
      await page.waitForURL(/q=needle\+59/)
      assert.match(await page.locator('tbody').innerText(), /needle 59/)
      assert.equal(await page.locator('tbody tr').count(), 1)
      await page.getByLabel('State').selectOption('failed')
      await page.getByRole('button', { name: 'Show', exact: true }).click()
      await page.getByText('No such event').waitFor()
      await page.getByRole('link', { name: 'Show all' }).click()
      await page.locator('tbody tr').first().waitFor()
      const id = await post('/webhook/many', 'the newest')
      await page.locator(`#event-${id} [data-state=done]`).waitFor()
      assert.deepEqual([await isTooWide({ page }), complaints], [false, []])
      await close()
    }
  })

  it('leaves reloads of the configuration out of the list, and says so', async () => {
    await daemon.client.post('/daemon/reload')
    const { page, close } = await openView(browser, daemon, '/ui/events')
    await page.getByText(/^Not shown: \d+ reloads? of the configuration\.$/).waitFor()
    assert.doesNotMatch(await page.locator('tbody').innerText(), /reloaded/)
    await close()
  })

  it('shows what waits, and takes the answers there', async () => {
    const ids = [await waiting('send this one'), await waiting('not this one')]
    const { page, complaints, close } = await openView(browser, daemon, '/ui/waiting', narrow)
    await takePicture(page, 'page-waiting')
    const [sent, declined] = ids.map((id) => page.locator(`#waiting-${id}`))
    assert.ok(sent && declined)
    assert.match(await sent.locator('pre').innerText(), /send this one/)
    await sent.getByRole('button', { name: 'Send', exact: true }).click()
    await page.locator('#notice', { hasText: 'It is being sent' }).waitFor()
    assert.equal(new URL(page.url()).pathname, '/ui/waiting')
    await declined.getByRole('button', { name: 'Do not send' }).click()
    await page.getByText('Nothing waits for you').waitFor()
    assert.deepEqual(
      await Promise.all(ids.map(async (id) => (await untilFinished(daemon, id)).state)),
      ['done', 'declined'],
    )
    assert.deepEqual([await isTooWide({ page }), complaints], [false, []])
    await close()
  })

  it('runs nothing and leads nowhere by what a sender or an agent writes', async () => {
    const hostile = [
      '<script>document.title = "owned"</script>',
      '<img src=x onerror="document.title = \'owned\'"><style>* { display: none }</style>',
      '"><form action="https://evil.example"><button>Run again</button></form>',
      '[x](javascript:alert(1)) [y](http://evil.example/) ![z](https://evil.example/pixel.png)',
      '[https://github.com](https://evil.example/login) <https://user:pass@evil.example/>',
      '[a](http://127.0.0.1:18789/ui/events) [b](/ui/events/x/forget) [c](data:text/html,x)',
      '\u001b[31mred\u001b[0m \u001b]8;;https://evil.example\u0007link\u001b]8;;\u0007 \u0000',
      'access != "user\u202e \u2066// only for admins\u2069 \u2066"',
      `a${'\u0300'.repeat(400)} \u05e9\u05dc\u05d5\u05dd ${'x'.repeat(5000)}`,
    ].join('\n\n')
    const { id } = await untilFinished(daemon, await post('/webhook/echo', hostile))
    for (const look of [wide, narrow]) {
      const { page, complaints, close } = await openView(
        browser,
        daemon,
        `/ui/events/${id}?prompt=1`,
        look,
      )
      const main = page.locator('main')
      const text = await main.innerText()
      assert.match(text, /<script>document\.title/)
      assert.doesNotMatch(text, /[\u0000-\u0008\u001b\u202a-\u202e\u2066-\u2069]/)
      assert.equal(await page.title(), '/webhook/echo: done · Doorward')
      assert.equal(await main.locator('script, img, style, iframe, [onerror]').count(), 0)
      const links = await main
        .locator('.prose a')
        .evaluateAll((all) => all.map((link) => [link.textContent, link.getAttribute('href')]))
      // A link shows the address that it leads to, and only pages of the web are links.
      for (const [shown, href] of links) assert.equal(shown, href)
      assert.deepEqual(
        links.map(([shown]) => shown),
        [
          'https://evil.example/',
          'https://evil.example/pixel.png',
          'https://github.com/',
          'https://evil.example/login',
        ],
      )
      const targets = await main
        .locator('form')
        .evaluateAll((all) => all.map((form) => form.getAttribute('action')))
      assert.deepEqual(targets, [`/ui/events/${id}/run-again`, `/ui/events/${id}/forget`])
      assert.deepEqual([await isTooWide({ page }), complaints], [false, []])
      await takePicture(page, `page-event-hostile-${look.colorScheme}`)
      await close()
    }
  })
}

if (chromiumPath !== undefined) describe('the view of an event', describeView).timeout(60_000)
