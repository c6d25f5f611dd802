import type { Page } from 'playwright-core'
import { killDaemons, type RunningDaemon, startDaemon } from '../test/support/daemon/daemon.ts'
import { launchChromium } from '../test/support/desktop/chromium.ts'
import { openView } from '../test/support/desktop/page.ts'
import { send } from '../test/support/servers/http.ts'
import { removeTemporaryFolders } from '../test/support/temporary.ts'
import { memoryOf } from './process-stat.ts'
import { median } from './quantile.ts'

/*
 * What the page costs, in headless Chromium: its first view with 1,000 events, from the address to all of it on the
 * screen; a live change, from a delivery to the screen; and the memory of the daemon with 8 tabs open, which share
 * one stream.
 */

const rounds = Number(process.env['BENCH_ROUNDS'] ?? 9)
const events = 1000
const tabs = 8

const main = async (): Promise<void> => {
  const browser = await launchChromium()
  try {
    const daemon = await startDaemon({
      gateway: `events: { keep: ${events} }\n`,
      webhooks: webhook,
    })
    for (let index = 0; index < events; index += 1) await deliver(daemon, `event ${index}`)
    const before = await memoryOf(daemon.process.pid ?? 0)
    const { page } = await openView(browser, daemon, '/ui/events')
    const first: number[] = []
    const live: number[] = []
    for (let round = 0; round < rounds; round += 1) first.push(await measureView(page, daemon))
    for (let round = 0; round < rounds; round += 1)
      live.push(await measureChange(page, daemon, `seen in round ${round}`))
    for (let tab = 1; tab < tabs; tab += 1)
      await (await page.context().newPage()).goto(`${daemon.url}/ui/events`)
    await deliver(daemon, 'seen by all tabs')
    await page.getByText('seen by all tabs').waitFor()
    const after = await memoryOf(daemon.process.pid ?? 0)
    const rows = [
      ['first view with 1,000 events, ms', median(first)],
      ['a live change on the screen, ms', median(live)],
      ['RSS of the daemon before, MB', before.now],
      ['RSS of the daemon with 8 tabs, MB', after.now],
    ] as const
    for (const [what, value] of rows) console.log(`${what.padEnd(36)} ${value.toFixed(1)}`)
    await daemon.stop()
  } finally {
    await browser.close()
    killDaemons()
    await removeTemporaryFolders()
  }
}

const webhook =
  'webhooks:\n  - { path: /bench, agent: echo, prompt_template: "{{event.text}}", rate_limit: 1000/s }\n'

const deliver = async ({ url }: RunningDaemon, text: string): Promise<void> => {
  await send(`${url}/bench`, {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ text }),
  })
}

const measureView = async (page: Page, { url }: RunningDaemon): Promise<number> => {
  const start = performance.now()
  await page.goto(`${url}/ui/events`)
  return performance.now() - start
}

const measureChange = async (page: Page, daemon: RunningDaemon, text: string): Promise<number> => {
  const start = performance.now()
  await deliver(daemon, text)
  await page.getByText(text).waitFor()
  return performance.now() - start
}

await main()
