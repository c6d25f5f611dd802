import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { after, before, describe, it } from 'mocha'
import type { Browser, Page } from 'playwright-core'
import type { Usage } from '../../shared/api/api.ts'
import { stopHome } from '../support/daemon/restart.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../support/daemon/daemon.ts'
import { chromiumPath, launchChromium, takePicture } from '../support/desktop/chromium.ts'
import { isTooWide, linkToView, narrow, openView, wide } from '../support/desktop/page.ts'
import { sendJson, startScriptedProvider } from '../support/providers/scripted-provider.ts'
import { send } from '../support/servers/http.ts'

const views = [
  'events',
  'schedules',
  'sessions',
  'logins',
  'start',
  'usage',
  'machines',
  'problems',
]

/** A title as senders send them: long, from right to left, with emoji, and with what would be markup. */
const titles = [
  'Update the README',
  `${'extraordinarily-long-word-'.repeat(12)}end`,
  '\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd: \u05ea\u05d9\u05e7\u05d5\u05df (1, 2)',
  '\ud83d\udc69\u200d\ud83d\udc69\u200d\ud83d\udc67 \ud83d\ude80 ship it',
  '<img src=x onerror="document.title=1"> [x](javascript:alert(1))',
]

const describeWhole = (): void => {
  let browser: Browser
  let daemon: RunningDaemon
  let model: Awaited<ReturnType<typeof startScriptedProvider>>
  let axe: string

  before(async () => {
    const usage: Usage = { inputTokens: 12_000, outputTokens: 340, costUsd: 0.42, model: 'a-model' }
    model = await startScriptedProvider(() => ({
      '/ask': (response) =>
        sendJson(response, 200, { text: 'The change is safe to merge.', usage }),
    }))
    axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
    browser = await launchChromium()
    daemon = await startDaemon({
      agents: `agents:\n  echo: { kind: echo }\n  reviewer: { kind: http, url: "${model.origin}/ask", answer_path: text, usage_path: usage }\n`,
      webhooks: `webhooks:
  - { path: /webhook/review, agent: reviewer, prompt_template: "{{event.text}}", deliver_to: "file:answers.md" }
  - { path: /webhook/echo, agent: echo, prompt_template: "{{event.text}}" }
  - { path: /webhook/asks, agent: reviewer, prompt_template: "{{event.text}}", deliver_to: "file:answers.md", approve: true }
`,
    })
    await untilFinished(daemon, await post('/webhook/review', 'a run that costs'))
    for (const text of titles) await untilFinished(daemon, await post('/webhook/echo', text))
    await post('/webhook/asks', 'May this leave?')
  })
  after(async () => {
    await browser.close()
    model.close()
    daemon.client.close()
    await stopHome(daemon.home)
  })

  const post = async (path: string, text: string): Promise<string> => {
    const reply = await send(`${daemon.url}${path}`, {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ text }),
    })
    return String(reply.json()['id'])
  }
  /** What axe-core finds: the rule, and where. */
  const findFaults = async (page: Page): Promise<readonly string[]> => {
    await page.evaluate(axe)
    return page.evaluate(`axe.run(document).then(({ violations }) =>
      violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => id + ' ' + target.join(' ') + ' ' + failureSummary)))`)
  }

  for (const look of [wide, narrow])
    it(`is right for every reader, ${look.colorScheme}, ${look.width} pixels wide`, async () => {
      const { page, complaints, close } = await openView(browser, daemon, '/ui/events', look)
      const faults: string[] = []
      for (const view of views) {
        const response = await page.goto(`${daemon.url}/ui/${view}`)
        assert.equal(response?.status(), 200, view)
        for (const fault of await findFaults(page)) faults.push(`${view}: ${fault}`)
        if (await isTooWide({ page })) faults.push(`${view}: too wide`)
        assert.equal(await page.locator('h1').count(), 1, view)
        await takePicture(page, `page-${view}-${look.colorScheme}-${look.width}`)
      }
      assert.deepEqual([faults, complaints], [[], []])
      await close()
    })

  it('can be used with the keyboard alone', async () => {
    const { page, close } = await openView(browser, daemon, '/ui/events')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    assert.equal(await page.evaluate('document.activeElement.id'), 'content')
    await close()
  })

  it('shows a new event in all tabs, over one stream, and a daemon that goes and comes back', async () => {
    const { page, complaints, close } = await openView(browser, daemon, '/ui/events')
    const context = page.context()
    let streams = 0
    context.on('request', (request) => {
      if (request.url().endsWith('/ui/stream')) streams += 1
    })
    const tabs = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const tab = await context.newPage()
        await tab.goto(`${daemon.url}/ui/events`)
        return tab
      }),
    )
    await post('/webhook/echo', 'seen live')
    for (const tab of [page, ...tabs]) {
      await tab.bringToFront()
      await tab.getByText('seen live').first().waitFor()
    }
    assert.ok(streams <= 1, `${streams} streams`)
    await daemon.client.post('/daemon/restart')
    await page.bringToFront()
    await post('/webhook/echo', 'after the restart')
    await page.getByText('after the restart').first().waitFor()
    await page.locator('#connection').waitFor({ state: 'hidden' })
    // The connection that a restart closes.
    assert.ok(complaints.every((text) => /ERR_|Failed to load/.test(text)))
    await close()
  })

  it('opens by a link in a browser, whose history has no code', async () => {
    const { page, close } = await openView(browser, daemon, '/ui/usage')
    assert.equal(page.url(), `${daemon.url}/ui/usage`)
    const link = await linkToView(daemon)
    assert.equal((await page.goto(link))?.status(), 200)
    assert.equal((await page.goto(link))?.status(), 410)
    await close()
  })
}

if (chromiumPath !== undefined)
  describe('the page as a whole in Chromium', describeWhole).timeout(120_000)
