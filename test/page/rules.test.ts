import assert from 'node:assert/strict'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'mocha'
import type { Browser, Locator, Page } from 'playwright-core'
import { type RunningDaemon, startDaemon, untilFinished } from '../support/daemon/daemon.ts'
import { chromiumPath, launchChromium, takePicture } from '../support/desktop/chromium.ts'
import { isTooWide, narrow, openView } from '../support/desktop/page.ts'
import { send } from '../support/servers/http.ts'
import { githubHeaders } from '../support/servers/sign.ts'
import { temporaryHome } from '../support/temporary.ts'

const secret = 'the secret of this test'
const dayMs = 86_400_000
const webhooks = `# Mine: this comment stays.
webhooks:
  - path: /webhook/github # the shop
    signature_scheme: github
    secret_env: HOOK_SECRET
    agent: echo
    prompt_template: 'Say {{event.action}}'
    rules:
      # Reviews.
      - name: review
        on: pull_request.opened
        dry_run: true # for a day
        filter: { pull_request.draft: false }
        deliver_to: 'file:answers.md'
      - { name: quiet, on: issues, deliver_to: 'file:other.md' }
  - { path: /plain, agent: echo, prompt_template: "{{event.text}}" }
  - { path: /mac, signature_scheme: hmac, secret_env: HOOK_SECRET, signature_header: X-Mine, agent: echo, prompt_template: "{{event.text}}" }
  - { path: /slack, signature_scheme: slack, secret_env: HOOK_SECRET, on: app_mention, agent: echo, prompt_template: "{{event.event.text}}" }
`

/** The rules, their switches in webhooks.yaml, and what a delivery would do. */
const describeRules = (): void => {
  let browser: Browser
  let daemon: RunningDaemon
  let file: string

  before(async () => {
    const home = await temporaryHome({ webhooks, env: `HOOK_SECRET=${secret}\n` })
    file = join(home.config, 'webhooks.yaml')
    await writeOldEvent(join(home.root, 'history'))
    ;[browser, daemon] = await Promise.all([launchChromium(), startDaemon({ home })])
  })
  after(async () => {
    await browser.close()
    assert.equal(await daemon.stop(), 0)
  })

  /** An event of the rule `review` that came three days ago. */
  const writeOldEvent = async (folder: string): Promise<void> => {
    const receivedAt = new Date(Date.now() - 3 * dayMs).toISOString()
    const line = {
      id: 'evt_0123456789abcdef01',
      receivedAt,
      kind: 'webhook',
      webhook: '/webhook/github',
      rule: 'review',
      state: 'done',
      agent: 'echo',
      attempts: 1,
      durations: {},
      endedAt: receivedAt,
    }
    await mkdir(folder, { mode: 0o700 })
    const name = join(folder, `${receivedAt.slice(0, 10)}.jsonl`)
    await writeFile(name, `${JSON.stringify(line)}\n`, { mode: 0o600 })
  }
  const onDisk = () => readFile(file, 'utf8')
  const press = async (page: Page, name: string): Promise<string> => {
    await page.getByRole('button', { name, exact: true }).click()
    return page.locator('#notice').innerText()
  }

  it('show where each comes from, its last events, and what was refused', async () => {
    const body = JSON.stringify({ text: '<script>alert(1)</script> \u202etxt' })
    const plain = await send(`${daemon.url}/plain`, {
      headers: { 'content-type': 'application/json' },
      body,
    })
    await untilFinished(daemon, String(plain.json()['id']))
    const forged = await send(`${daemon.url}/webhook/github`, {
      headers: githubHeaders(body, 'another secret'),
      body,
    })
    assert.equal(forged.status, 401)
    for (const look of [undefined, narrow]) {
      const { page, complaints, close } = await openView(browser, daemon, '/ui/rules', look)
      const github = page.getByRole('region', { name: '/webhook/github' })
      assert.match(await github.innerText(), /From\nGitHub\nSignature\nchecked/)
      assert.match(await github.innerText(), /Refused\n.*signature/is)
      const own = page.getByRole('region', { name: '/plain' }).first()
      assert.match(await own.innerText(), /not checked: .*1 done.*Last events/s)
      await takePicture(page, `page-rules-${look ? 'narrow' : 'wide'}`)
      assert.equal(await isTooWide({ page }), false)
      assert.deepEqual(complaints, [])
      await close()
    }
  })

  it('pause and resume by one line of the file, which keeps all else', async () => {
    const { page, complaints, close } = await openView(browser, daemon, '/ui/rules')
    const quiet = page.getByRole('region', { name: 'quiet' })
    assert.match(await press(page, 'Pause: quiet'), /rule quiet is paused/i)
    assert.match(await quiet.innerText(), /paused/)
    assert.equal(
      await onDisk(),
      webhooks.replace('{ name: quiet, on', '{ name: quiet, enabled: false, on'),
    )
    const body = JSON.stringify({ action: 'opened', issue: { number: 1 } })
    const reply = await send(`${daemon.url}/webhook/github`, {
      headers: githubHeaders(body, secret, { 'x-github-event': 'issues' }),
      body,
    })
    const ignored = await untilFinished(daemon, String(reply.json()['id']))
    assert.equal(ignored.state, 'filtered')
    assert.match(ignored.detail ?? '', /quiet: it is paused/)
    assert.match(await press(page, 'Resume: quiet'), /rule quiet runs again/i)
    assert.equal(await onDisk(), webhooks)
    assert.match(await press(page, 'Pause: /plain'), /webhook \/plain is paused/i)
    assert.equal((await send(`${daemon.url}/plain`, { body: '{}' })).status, 404)
    assert.match(await press(page, 'Resume: /plain'), /webhook \/plain runs again/i)
    assert.equal(await onDisk(), webhooks)
    assert.deepEqual(complaints, [])
    await close()
  })

  it('ask after a day of dry run whether to send, and take the key away', async () => {
    const { page, close } = await openView(browser, daemon, '/ui/rules')
    const review = page.getByRole('region', { name: 'review' })
    assert.match(await review.innerText(), /dry run.*Shall it send its answers/s)
    assert.match(await press(page, 'Send from now on: review'), /review delivers its answers/i)
    assert.equal(await onDisk(), webhooks.replace(/ +dry_run: .*\n/, ''))
    assert.doesNotMatch(await review.innerText(), /Shall it send/)
    await writeFile(file, webhooks)
    await daemon.client.post('/daemon/reload')
    await close()
  })

  it('write nothing while the file is broken, and never over a change by hand', async () => {
    const [first, second] = await Promise.all([
      openView(browser, daemon, '/ui/rules'),
      openView(browser, daemon, '/ui/rules'),
    ])
    const broken = webhooks.replace('agent: echo', 'agent: nobody')
    await writeFile(file, broken)
    const notice = await press(first.page, 'Pause: quiet')
    assert.match(notice, /the configuration cannot be used.*unknown agent "nobody"/is)
    assert.equal(await onDisk(), broken)
    // By hand and from two tabs, of which the second shows what was before.
    const mended = webhooks.replace('# Mine', '# Mended by hand')
    await writeFile(file, mended)
    assert.match(await press(first.page, 'Pause: quiet'), /rule quiet is paused/i)
    assert.match(await press(second.page, 'Dry run: /plain'), /delivers nothing/)
    assert.equal(
      await onDisk(),
      mended
        .replace('{ name: quiet, on', '{ name: quiet, enabled: false, on')
        .replace('{ path: /plain, agent', '{ path: /plain, dry_run: true, agent'),
    )
    assert.match(await press(second.page, 'End the dry run: /plain'), /delivers its answers/)
    assert.match(await press(second.page, 'Resume: quiet'), /runs again/)
    assert.equal(await onDisk(), mended)
    await Promise.all([first.close(), second.close()])
  })

  it('send a sample as the sender would, and lead to its event', async () => {
    const { page, complaints, close } = await openView(browser, daemon, '/ui/rules', narrow)
    const sendTo = async (path: string, fill: (card: Locator) => Promise<unknown>) => {
      await page.goto(`${daemon.url}/ui/rules`)
      const card = page.getByRole('region', { name: path }).first()
      await card.getByText('Try it').click()
      await fill(card)
      await takePicture(page, `page-send${path.replaceAll('/', '-')}`)
      return press(page, `Send a sample: ${path}`)
    }
    const choose = (name: string) => (card: Locator) =>
      card.locator('select[name=sample]').selectOption(name)
    const write = (text: string) => (card: Locator) =>
      card.getByRole('textbox', { name: 'Payload, JSON' }).fill(text)
    const stateOfShown = async () => {
      const id = new URL(page.url()).pathname.split('/').at(-1) ?? ''
      return (await untilFinished(daemon, id)).state
    }
    const first = await sendTo('/webhook/github', choose('github:pull_request.opened'))
    assert.match(first, /the sample came in/i)
    assert.equal(await stateOfShown(), 'done')
    // Slack is answered in text, or not at all.
    for (const [name, state] of [
      ['slack:app_mention', 'done'],
      ['slack:slash_command', 'filtered'],
      ['slack:url_verification', 'filtered'],
    ] as const) {
      assert.match(await sendTo('/slack', choose(name)), /the sample came in/i)
      assert.equal(await stateOfShown(), state, name)
    }
    assert.match(await sendTo('/mac', write('{"text": "<b>mine</b> "}')), /the sample came in/i)
    assert.equal(await stateOfShown(), 'done')
    assert.match(await page.locator('main').innerText(), /<b>mine<\/b>/)
    assert.match(await sendTo('/mac', write('{"text": ')), /the payload is not JSON/i)
    assert.match(await sendTo('/mac', write(`"${'€'.repeat(4000)}"`)), /at most 10240 bytes/i)
    assert.equal(await isTooWide({ page }), false)
    assert.deepEqual(complaints, [])
    await close()
  })

  it('explain a sample, and the newest delivery', async () => {
    const { page, complaints, close } = await openView(browser, daemon, '/ui/rules', narrow)
    const github = page.getByRole('region', { name: '/webhook/github' })
    await github.getByText('Try it').click()
    await github.getByLabel('Delivery').selectOption('github:pull_request.opened')
    await github.getByRole('button', { name: 'Explain: /webhook/github' }).click()
    const review = page.getByRole('region', { name: 'review' })
    assert.match(await review.innerText(), /would run.*Say opened/s)
    assert.match(await page.getByRole('region', { name: 'quiet' }).innerText(), /would not run/)
    await takePicture(page, 'page-explain-narrow')
    assert.equal(await isTooWide({ page }), false)
    await page.goBack()
    const plain = page.getByRole('region', { name: '/plain' }).first()
    await plain.getByText('Try it').click()
    await plain.getByRole('button', { name: 'Explain: /plain' }).click()
    const main = await page.locator('main').innerText()
    assert.match(main, /The newest delivery.*<script>alert\(1\)<\/script>/s)
    assert.deepEqual(complaints, [])
    await close()
  })
}

if (chromiumPath !== undefined) describe('rules of the page', describeRules).timeout(60_000)
