import assert from 'node:assert/strict'
import { chmod, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'mocha'
import type { Browser } from 'playwright-core'
import type { EventRecord, Status } from '../../shared/api/api.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../support/daemon/daemon.ts'
import {
  chromiumPath,
  launchChromium,
  takePicture,
  type Window,
} from '../support/desktop/chromium.ts'
import { isTooWide, narrow, openView, wide } from '../support/desktop/page.ts'
import { type GithubAppServer, startGithubAppServer } from '../support/servers/github-app-server.ts'
import { type PullRequestScene, startPullRequest } from '../support/servers/pull-request.ts'
import { temporaryFolder } from '../support/temporary.ts'

/** A program named claude that answers as Claude Code does, without a model. */
const standIn = `#!${process.execPath}
const prompt = require('node:fs').readFileSync(0, 'utf8')
const result = prompt.includes('the one word: ok') ? 'ok <b>' : 'It greets someone else.'
console.log(JSON.stringify({ type: 'result', subtype: 'success', result, num_turns: 1, session_id: 's',
  total_cost_usd: 0.01, usage: { input_tokens: 10, output_tokens: 1 } }))
`

const describeStart = (): void => {
  let apps: GithubAppServer
  let scene: PullRequestScene
  let daemon: RunningDaemon
  let browser: Browser
  let window: Window
  const file = async (name: string) => readFile(join(daemon.home.config, `${name}.yaml`), 'utf8')
  const firstRules = '# Mine.\nwebhooks: []\n'

  before(async () => {
    const folder = await temporaryFolder()
    await writeFile(join(folder, 'claude'), standIn)
    await chmod(join(folder, 'claude'), 0o755)
    apps = await startGithubAppServer()
    scene = await startPullRequest(
      (given) => apps.minted.some(({ token }) => token === given),
      {},
      apps,
    )
    browser = await launchChromium()
    daemon = await startDaemon({
      gateway: scene.gateway.replace('github: {', `github: { api_url: "${apps.apiUrl}",`),
      webhooks: firstRules,
      variables: { PATH: `${folder}:${process.env['PATH'] ?? ''}` },
    })
    window = await openView(browser, daemon, '/', wide)
  })
  after(async () => {
    await browser.close()
    assert.equal(await daemon.stop(), 0)
    scene.close()
    apps.close()
  })

  const step = (name: string) => window.page.locator(`#step-${name}`)
  const isDone = async (name: string) =>
    step(name).locator('.state[data-state=done]').first().waitFor()

  it('leads a new user to the start, and tries the agent', async () => {
    const { page } = window
    assert.equal(new URL(page.url()).pathname, '/ui/start')
    await takePicture(page, 'start-new')
    await step('agent').getByRole('button', { name: 'Try it: claude' }).click()
    assert.match(await page.locator('.notice').innerText(), /claude works: it answered “ok <b>”/i)
    await isDone('agent')
  })

  it('makes a bot at GitHub, and sees it come', async () => {
    const { page } = window
    await step('bot').getByRole('button', { name: 'Make a bot at GitHub' }).click()
    const [opened] = await Promise.all([
      page.waitForEvent('popup'),
      step('bot').getByRole('link', { name: 'Open the page with the button' }).click(),
    ])
    await opened.getByRole('button').first().click()
    await opened.getByRole('button', { name: 'Create GitHub App' }).click()
    await opened.getByRole('heading', { name: 'Your bot is made' }).waitFor()
    await step('bot').getByText('The bot is made.').waitFor()
    await isDone('bot')
    await opened.close()
    const [made] = apps.apps
    apps.install(made?.slug ?? '', ['acme/door'])
    const path = join(daemon.home.clients, `github@${made?.slug}.json`)
    const record = await readFile(path, 'utf8')
    await writeFile(path, record.replace(apps.apiUrl, `${scene.git.origin}/api/v3`))
  })

  it('shows a rule before it is written, and writes it held back', async () => {
    const { page } = window
    await step('rule').getByRole('link', { name: 'github-review' }).click()
    await step('rule').getByLabel('Repository').fill('acme/door')
    await step('rule').getByRole('button', { name: 'Show the rule' }).click()
    const shown = await step('rule').locator('pre').innerText()
    assert.match(shown, /dry_run: true\nbudget: \{ day: 2 \}|dry_run: true\n +budget: \{ day: 2 \}/)
    assert.match(shown, /repository\.full_name: acme\/door/)
    assert.equal(await file('webhooks'), firstRules)
    await takePicture(page, 'start-rule')
    await step('rule').getByRole('button', { name: 'Write this rule' }).click()
    await isDone('rule')
    const text = await file('webhooks')
    assert.match(text, /^# Mine\.\n/)
    assert.match(text, /rules:\n[^]*dry_run: true\n +budget: \{ day: 2 \}\n$/)
    assert.match(await file('agents'), /claude:\n +kind: claude/)
  })

  it('waits for the first event, and shows it live', async () => {
    const { page } = window
    await step('event').getByText('Waiting for the first event.').waitFor()
    await step('event').getByRole('button', { name: 'Send a sample' }).click()
    await step('event').locator('a[href^="/ui/events/"]').first().waitFor()
    await daemon.client.get('/events/missed?fresh=true')
    const payload = await scene.push({ 'hello.txt': 'hello\nyou\n' }, 'opened')
    await apps.happen(apps.apps[0]?.slug ?? '', 'pull_request', JSON.parse(payload) as object)
    await daemon.client.get('/events/missed?fresh=true')
    const { events } = await daemon.client.get<{ events: EventRecord[] }>('/events?limit=9')
    const found = events.find(({ source }) => source === 'api')
    assert.ok(found, JSON.stringify(events))
    const { state, targets, detail } = await untilFinished(daemon, found.id)
    assert.equal(state, 'done', detail)
    assert.deepEqual(
      targets.map((target) => target.state),
      ['previewed'],
    )
    const link = step('event').locator(`a[href="/ui/events/${found.id}"]`)
    await link.waitFor()
    await step('event').locator('.state[data-state=done]').first().waitFor()
    await takePicture(page, 'start-done')
    const dark = await openView(browser, daemon, new URL(page.url()).pathname, narrow)
    await takePicture(dark.page, 'start-narrow')
    assert.equal(await isTooWide(dark), false)
    const button = await dark.page.getByRole('button', { name: 'Try it: claude' }).boundingBox()
    assert.ok(button && button.x >= 0 && button.x + button.width <= narrow.width)
    await dark.close()
  })

  it('knows the rule of its owner, whatever its address says', async () => {
    const again = await openView(browser, daemon, '/ui/start?bot=none', wide)
    const rule = again.page.locator('#step-rule')
    await rule.locator('.state[data-state=done]').waitFor()
    assert.match(await rule.innerText(), /There are rules already: /)
    assert.deepEqual(again.complaints, [])
    await again.close()
  })

  it('takes back the rule that it wrote, and nothing else', async () => {
    const before = await file('agents')
    await step('rule').getByText('Undo').click()
    await step('rule')
      .getByRole('button', { name: /Remove this rule/ })
      .click()
    await window.page.getByText('The rule is removed.').waitFor()
    const text = await file('webhooks')
    assert.match(text, /^# Mine\.\n[^]*rules: \[\]\n$/)
    assert.equal(await step('rule').locator('.state[data-state=done]').count(), 0)
    assert.equal(await file('agents'), before)
  })

  it('keeps secrets in .env, and never shows them again', async () => {
    const { page } = window
    await step('rule').getByRole('link', { name: 'sentry-fix' }).click()
    await step('rule').getByLabel('Repository of the code').fill('acme/shop')
    await step('rule').getByRole('button', { name: 'Show the rule' }).click()
    await step('rule').getByLabel('Client secret').fill('a-secret-of-sentry')
    await step('rule').getByRole('button', { name: 'Write this rule' }).click()
    await isDone('rule')
    const env = await readFile(daemon.home.env, 'utf8')
    assert.match(env, /^SENTRY_WEBHOOK_SECRET=a-secret-of-sentry$/m)
    assert.equal((await stat(daemon.home.env)).mode & 0o777, 0o600)
    assert.ok(!(await page.content()).includes('a-secret-of-sentry'))
    assert.match(await file('webhooks'), /agent: fixer[^]*dry_run: true/)
  })

  it('writes nothing while a file is broken', async () => {
    const good = await file('webhooks')
    await writeFile(join(daemon.home.config, 'webhooks.yaml'), `${good}\n  broken: [\n`)
    const again = await openView(browser, daemon, '/ui/start', wide)
    await again.page.goto(
      new URL('/ui/start?agent=claude&bot=none&recipe=github-mention', daemon.url).href,
    )
    await again.page.locator('#step-rule [role=alert]').waitFor()
    assert.equal(await again.page.getByRole('button', { name: 'Write this rule' }).count(), 0)
    await writeFile(join(daemon.home.config, 'webhooks.yaml'), good)
    const { path = '' } = (await daemon.client.get<Status>('/status')).webhooks[0] ?? {}
    const query = new URLSearchParams({
      agent: 'claude',
      bot: 'none',
      recipe: 'github-review',
      path,
    })
    await again.page.goto(new URL(`/ui/start?${query.toString()}`, daemon.url).href)
    const command = `doorward webhook connect github OWNER/REPO --path ${path} --poll`
    assert.equal(await again.page.locator('#step-rule pre').innerText(), command)
    assert.deepEqual([...window.complaints, ...again.complaints], [])
    await again.close()
  })
}

if (chromiumPath !== undefined) describe('the start of a new user', describeStart)
