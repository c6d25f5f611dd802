import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { after, before, describe, it } from 'mocha'
import type { Browser, Page } from 'playwright-core'
import type { Status } from '../../shared/api/api.ts'
import { type RunningDaemon, startDaemon } from '../support/daemon/daemon.ts'
import { approve } from '../support/desktop/browser.ts'
import {
  chromiumPath,
  launchChromium,
  takePicture,
  type Window,
} from '../support/desktop/chromium.ts'
import { isTooWide, narrow, openView, wide } from '../support/desktop/page.ts'
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '../support/providers/authorization-server.ts'
import { type GitHubProvider, startGitHubProvider } from '../support/providers/github-provider.ts'
import { type GithubAppServer, startGithubAppServer } from '../support/servers/github-app-server.ts'
import { makeBot } from '../support/servers/make-bot.ts'

const hostile = '<img src=x onerror="document.title=1"> \u202egpj.ada@example.com'

const describeLogins = (): void => {
  let server: AuthorizationServer
  let hub: GitHubProvider
  let github: GithubAppServer
  let daemon: RunningDaemon
  let browser: Browser
  let window: Window
  let page: Page

  before(async () => {
    ;[server, hub, github, browser] = await Promise.all([
      startAuthorizationServer({ claims: { email: hostile } }),
      startGitHubProvider({ hasDeviceFlow: true, devicePolls: 1000 }),
      startGithubAppServer(),
      launchChromium(),
    ])
    const providers = {
      mine: { issuer: server.issuer, scopes: ['openid', 'email'], client_id: 'public' },
      github: { api_url: github.apiUrl },
      hub: hub.gatewayEntry,
    }
    daemon = await startDaemon({
      gateway: `oauth: { callback_port: 0 }\nproviders: ${JSON.stringify(providers)}\n`,
    })
    window = await openView(browser, daemon, '/ui/logins', wide)
    page = window.page
  })
  after(async () => {
    await browser.close()
    assert.equal(await daemon.stop(), 0)
    await server.close()
    hub.close()
    github.close()
  })

  const card = (name: string) => page.getByRole('region', { name, exact: true })
  const press = async (name: string): Promise<string> => {
    await page.getByRole('button', { name, exact: true }).click()
    return page.locator('#notice').innerText()
  }
  const open = async (name: string, words: string) =>
    card(name).locator('summary', { hasText: words }).click()
  const statusOf = async (name: string) =>
    (await daemon.client.get<Status>('/status')).providers.find(({ provider }) => provider === name)
      ?.status

  it('logs in by a link to the provider, and shows the account as it comes', async () => {
    assert.match(await card('github').innerText(), /doorward oauth login github --client-id ID/)
    await press('Log in: mine')
    const link = card('mine').getByRole('link', { name: 'Open the page of mine' })
    assert.match((await link.getAttribute('rel')) ?? '', /noopener/)
    const [popup] = await Promise.all([page.waitForEvent('popup'), link.click()])
    await card('mine').getByText('logged in', { exact: true }).waitFor()
    await popup.close()
    const shown = await card('mine').innerText()
    assert.match(shown, /<img src=x onerror="document.title=1"> gpj\.ada@example\.com/)
    assert.match(shown, /Token ends\s+in (1 h|59 min) renewed automatically/)
    assert.equal(await page.locator('main img').count(), 0)
    assert.equal(await statusOf('mine'), 'ok')
  })

  it('takes the address of a browser elsewhere, for another account', async () => {
    await open('mine', 'Another account')
    await card('mine').getByLabel('Its name here').fill('work')
    await press('Log in: another account of mine')
    const link = card('mine@work').getByRole('link', { name: 'Open the page of mine@work' })
    const address = await approve((await link.getAttribute('href')) ?? '')
    await open('mine@work', 'does not load')
    await card('mine@work').getByLabel('Its address').fill(address)
    assert.match(await press('Finish: the login to mine@work'), /^Logged in to mine@work as <img/)
    assert.match(await card('mine@work').innerText(), /mine is a login of the same account/)
    assert.equal(new URL(page.url()).search, '')
    assert.match(await press('Use for mine: mine@work'), /mine now means mine@work/i)
    assert.match(await card('mine@work').innerText(), /meant by the name mine/)
  })

  it('shows the code of a login by device, which can be cancelled', async () => {
    await press('Log in: hub')
    assert.match(await card('hub').innerText(), /Enter the code [A-Z0-9]{4}-[A-Z0-9]{4}/)
    await takePicture(page, 'page-logins-waiting')
    assert.match(await press('Cancel: the login to hub'), /login to hub is cancelled/)
    assert.equal(await card('hub').getByText('Enter the code').count(), 0)
  })

  it('says what is wrong with a login, and the command that fixes it', async () => {
    await press('Log in again: mine')
    server.answer = 'deny'
    const link = card('mine').getByRole('link', { name: 'Open the page of mine' })
    const [popup] = await Promise.all([page.waitForEvent('popup'), link.click()])
    await card('mine').getByRole('alert').waitFor()
    await popup.close()
    assert.match(await card('mine').innerText(), /The last login failed: access was not allowed/)
    // The login of before goes on.
    assert.equal(await statusOf('mine'), 'ok')
  })

  it('logs out only after a second step', async () => {
    await open('mine@work', 'Log out')
    const button = page.getByRole('button', { name: 'Log out: mine@work', exact: true })
    await button.click()
    assert.equal(await statusOf('mine@work'), 'ok')
    await card('mine@work').getByRole('checkbox').check()
    await button.click()
    assert.match(await page.locator('#notice').innerText(), /provider confirmed the revocation/)
    assert.equal(await card('mine@work').count(), 0)
    assert.equal(await statusOf('mine@work'), undefined)
  })

  it('shows a bot, asks GitHub about it on request, and forgets it after a second step', async () => {
    await makeBot({ github, daemon }, ['--org', 'acme'], ['acme/door'])
    await page.reload()
    assert.match(
      await card('acme-doorward').innerText(),
      /bot of acme.*read code, comment and check.*read from the list that GitHub keeps/s,
    )
    const asked = github.requests.length
    await page.reload()
    assert.equal(github.requests.length, asked)
    await card('acme-doorward').getByRole('link', { name: 'What GitHub has of it' }).click()
    await card('acme-doorward').getByText('Permissions at GitHub').waitFor()
    assert.match(await card('acme-doorward').innerText(), /contents: read.*acme\/door/s)
    for (const name of ['Choose its repositories', 'Its settings']) {
      const link = card('acme-doorward').getByRole('link', { name })
      assert.ok((await link.getAttribute('href'))?.startsWith(github.origin))
    }
    await takePicture(page, 'page-logins-wide')
    const small = await openView(browser, daemon, '/ui/logins?bot=acme-doorward', narrow)
    await takePicture(small.page, 'page-logins-narrow')
    assert.equal(await isTooWide(small), false)
    await small.close()
    await open('acme-doorward', 'Remove')
    await card('acme-doorward').getByRole('checkbox').check()
    assert.match(await press('Remove: acme-doorward'), /acme-doorward is forgotten here/i)
    assert.match(await page.locator('main').innerText(), /No bot yet/)
    assert.deepEqual(
      (await readdir(daemon.home.clients)).filter((name) => name.includes('acme')),
      [],
    )
    assert.deepEqual([...window.complaints, ...small.complaints], [])
  })
}

if (chromiumPath !== undefined) describe('the view of logins and bots', describeLogins)
