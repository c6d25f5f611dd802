import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { after, before, describe, it } from 'mocha'
import type { Browser, Page } from 'playwright-core'
import type { EventRecord } from '../../shared/api/api.ts'
import { run } from '../cli/support/cli.ts'
import { makeClaudeStandIn } from '../support/claude-stand-in.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../support/daemon/daemon.ts'
import { newQueueKey } from '../support/daemon/machines.ts'
import { chromiumPath, launchChromium, takePicture } from '../support/desktop/chromium.ts'
import { isTooWide, narrow, openView } from '../support/desktop/page.ts'
import { send } from '../support/servers/http.ts'
import { type Broker, startBroker } from '../support/servers/nats.ts'
import { temporaryFolder, temporaryHome } from '../support/temporary.ts'

const dayMs = 86_400_000
const hostile = '<img src=x onerror=alert(1)> $(id) \u202efdp.exe'

const files = {
  agents: `agents:
  echo: { kind: echo }
  claude: { kind: claude }
  missing: { kind: command, command: [no-such-program-of-this-test] }
`,
  webhooks: `webhooks:
  - { path: /talk, agent: claude, prompt_template: 'say:hello {{event.text}}', session: '{{event.thing}}' }
  - { path: /broken, agent: missing, prompt_template: x }
`,
  gateway: `queue: { engine: nats, role: both, servers_env: NATS_URL, key_env: QUEUE_KEY }
oauth: { callback_port: 0 }
`,
  schedules: `schedules:
  - { name: digest, cron: '0 9 * * 1', timezone: Asia/Tokyo, agent: echo, prompt_template: x, missed: ask }
  - { name: nightly, every: 24h, agent: echo, prompt_template: x, missed: ask, deliver_to: 'file:night.md' }
`,
}

/** Schedules, sessions, machines and problems: views of one document each. */
const describeViews = (): void => {
  let browser: Browser
  let broker: Broker
  let daemon: RunningDaemon

  before(async () => {
    const [owner, home] = await Promise.all([temporaryFolder(), temporaryHome(files)])
    const claude = await makeClaudeStandIn(owner)
    await mkdir(home.state, { recursive: true })
    const lastDue = Date.now() - 15.5 * dayMs
    await writeFile(
      join(home.state, 'schedules.json'),
      JSON.stringify({
        digest: { text: 'cron 0 9 * * 1 Asia/Tokyo', lastDue },
        nightly: { text: `every ${dayMs}`, lastDue },
      }),
      { mode: 0o600 },
    )
    broker = await startBroker()
    ;[browser, daemon] = await Promise.all([
      launchChromium(),
      startDaemon({
        home,
        variables: {
          HOME: owner,
          PATH: [claude.folder, process.env['PATH']].join(delimiter),
          NATS_URL: broker.url,
          QUEUE_KEY: newQueueKey(),
        },
      }),
    ])
  })
  after(async () => {
    await browser.close()
    assert.equal(await daemon.stop(), 0)
    await broker.stop()
  })

  const press = async (page: Page, name: string): Promise<string> => {
    await page.getByRole('button', { name }).click()
    return page.locator('#notice').innerText()
  }

  it('show schedules, which run now, pause, go on, and answer for what was missed', async () => {
    const { page, complaints, close } = await openView(browser, daemon, '/ui/schedules')
    const digest = page.getByRole('region', { name: 'digest' })
    assert.match(await digest.innerText(), /runs were missed.*Its time zone\nAsia\/Tokyo/s)
    assert.equal(await digest.locator('dl time').count(), 4)
    assert.match(await press(page, 'Leave it: what digest has missed'), /digest has missed is left/)
    assert.doesNotMatch(await digest.innerText(), /missed/)
    const nightly = page.getByRole('region', { name: 'nightly' })
    assert.match(await nightly.innerText(), /missed/)
    await takePicture(page, 'page-schedules-wide')
    assert.match(await press(page, 'Run it now: what nightly has missed'), /nightly runs: event/i)
    assert.doesNotMatch(await nightly.innerText(), /missed/)
    assert.match(await press(page, 'Pause: digest'), /digest is paused/i)
    assert.match(await digest.innerText(), /paused.*no time ahead/s)
    assert.match(await press(page, 'Resume: digest'), /digest runs again/i)
    assert.match(await press(page, 'Run now: digest'), /digest runs: event/i)
    const { events } = await daemon.client.get<{ events: EventRecord[] }>(
      '/events?webhook=schedule:digest',
    )
    assert.ok(events.some(({ source }) => source === 'schedule'))
    assert.deepEqual(complaints, [])
    await close()
  })

  it('list sessions, which are opened at the terminal by their id, and forgotten', async () => {
    const reply = await send(`${daemon.url}/talk`, {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ text: 'hello', thing: hostile }),
    })
    await untilFinished(daemon, String(reply.json()['id']))
    const { page, complaints, close } = await openView(browser, daemon, '/ui/sessions', narrow)
    const row = page.getByRole('row').filter({ hasText: 'onerror' })
    assert.equal(await page.locator('main img').count(), 0)
    const command = await row.locator('code').innerText()
    assert.match(command, /^doorward session open [0-9a-f]+$/)
    const shown = await run(['session', 'show', command.split(' ').at(-1) ?? ''], {
      home: daemon.home,
    })
    assert.match(shown.stdout, /onerror/)
    await takePicture(page, 'page-sessions-narrow')
    assert.equal(await isTooWide({ page }), false)
    await row.getByRole('button').click()
    assert.match(await page.locator('#notice').innerText(), /^Forgot .*new conversation$/)
    assert.match(await page.locator('main').innerText(), /No conversation goes on/)
    assert.deepEqual(complaints, [])
    await close()
  })

  it('show the machines and their broker', async () => {
    const { page, complaints, close } = await openView(browser, daemon, '/ui/machines')
    assert.match(await page.getByRole('region', { name: 'Broker' }).innerText(), /connected/)
    const row = page.locator('tbody tr')
    assert.match(await row.innerText(), /both.*echo 0 of \d+ at work/s)
    await takePicture(page, 'page-machines-wide')
    assert.deepEqual(complaints, [])
    await close()
  })

  it('name each problem with what fixes it', async () => {
    const { page, complaints, close } = await openView(browser, daemon, '/ui/problems', narrow)
    const problem = page.getByRole('listitem').filter({ hasText: 'no-such-program-of-this-test' })
    assert.match(await problem.innerText(), /agent-program-missing/)
    await takePicture(page, 'page-problems-narrow')
    assert.equal(await isTooWide({ page }), false)
    assert.deepEqual(complaints, [])
    await close()
  })
}

if (chromiumPath !== undefined) describe('small views of the page', describeViews).timeout(60_000)
