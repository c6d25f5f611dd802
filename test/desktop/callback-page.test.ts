import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import type { Browser, Page } from 'playwright-core'
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '../support/providers/authorization-server.ts'
import { chromiumPath, launchChromium, pictures } from '../support/desktop/chromium.ts'
import { startGoogleProvider } from '../support/providers/google-provider.ts'
import { type OAuthApp, startOAuthApp } from '../support/providers/oauth-app.ts'

const describePage = (): void => {
  let browser: Browser
  let server: AuthorizationServer
  let app: OAuthApp

  before(async () => {
    server = await startAuthorizationServer()
    server.answer = 'page'
    browser = await launchChromium()
  })
  beforeEach(async () => {
    app = await startOAuthApp({
      gateway: {
        providers: {
          google: {
            issuer: server.issuer,
            scopes: ['openid', 'email'],
            client_id: 'public',
          },
        },
      },
    })
  })
  afterEach(() => app.close())
  after(async () => {
    await browser.close()
    await server.close()
  })

  /** Opens a window in these looks, and notes what the browser complains about. */
  const openWindow = async (look: { width: number; colorScheme: 'light' | 'dark' }) => {
    const context = await browser.newContext({
      viewport: { width: look.width, height: 720 },
      colorScheme: look.colorScheme,
    })
    const page = await context.newPage()
    const complaints: string[] = []
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
    })
    page.on('pageerror', (error) => complaints.push(error.message))
    page.on('requestfailed', (request) => complaints.push(`failed: ${request.url()}`))
    return { page, complaints, close: () => context.close() }
  }

  const click = async (page: Page, button: string) => {
    const { loginId, authorizationUrl } = await app.start({ provider: 'google' })
    await page.goto(authorizationUrl)
    await page.getByRole('button', { name: button }).click()
    await page.getByRole('heading', { level: 1 }).waitFor()
    return app.ended(loginId)
  }

  const styleOf = async (page: Page) => {
    const text = await page.locator('main').evaluate((main) => {
      const view = main.ownerDocument.defaultView
      return view ? view.getComputedStyle(main).backgroundColor : ''
    })
    return text
  }

  const looks = [
    { width: 1024, colorScheme: 'light', card: 'rgb(255, 255, 255)' },
    { width: 340, colorScheme: 'dark', card: 'rgb(24, 28, 34)' },
  ] as const
  for (const look of looks)
    it(`says who has logged in, ${look.colorScheme}, ${look.width} pixels wide`, async () => {
      const { page, complaints, close } = await openWindow(look)
      const login = await click(page, 'Allow')
      assert.equal(login.status, 'authorized')
      assert.equal(await page.getByRole('heading').innerText(), 'Logged in to Google')
      const text = await page.locator('body').innerText()
      assert.match(text, /ada@example\.com/)
      assert.match(text, /kept on this machine/)
      assert.match(text, /You can close this window/)

      const { pathname, search, hash } = new URL(page.url())
      assert.match(pathname, /^\/done\//)
      assert.equal(search + hash, '')
      assert.deepEqual(complaints, [])
      // The style was let in by its hash; were it not, the card would have no colour.
      assert.equal(await styleOf(page), look.card)
      const overflows = await page
        .locator('html')
        .evaluate((html) => html.scrollWidth > html.clientWidth)
      assert.equal(overflows, false)
      await page.screenshot({ path: join(pictures, `done-${look.colorScheme}-${look.width}.png`) })
      await close()
    })

  for (const look of looks)
    it(`says what was not allowed, ${look.colorScheme}, ${look.width} pixels wide`, async () => {
      const google = await startGoogleProvider()
      const calendar = 'https://www.googleapis.com/auth/calendar'
      google.notGranted = [calendar]
      const ownApp = await startOAuthApp({
        gateway: { providers: { google: google.gatewayEntry } },
      })
      const { page, complaints, close } = await openWindow(look)
      const { authorizationUrl } = await ownApp.start({
        provider: 'google',
        clientSecret: google.client.secret,
      })
      await page.goto(authorizationUrl)
      assert.equal(await page.getByRole('heading').innerText(), 'Logged in to Google')
      assert.equal(await page.locator('.missing').innerText(), calendar)
      const command = await page.locator('.command').innerText()
      assert.ok(command.startsWith('doorward oauth login google --scopes https://'))
      assert.ok(command.endsWith(`,${calendar}`))
      const overflows = await page
        .locator('html')
        .evaluate((html) => html.scrollWidth > html.clientWidth)
      assert.deepEqual([overflows, complaints], [false, []])
      const picture = `missing-${look.colorScheme}-${look.width}.png`
      await page.screenshot({ path: join(pictures, picture), fullPage: true })
      await close()
      await ownApp.close()
      google.close()
    })

  it('says that a client secret is missing and which command brings it', async () => {
    const google = await startGoogleProvider()
    const ownApp = await startOAuthApp({ gateway: { providers: { google: google.gatewayEntry } } })
    const { page, close } = await openWindow({ width: 360, colorScheme: 'light' })
    const { authorizationUrl } = await ownApp.start({ provider: 'google' })
    await page.goto(authorizationUrl)
    assert.equal(await page.getByRole('heading').innerText(), 'Not logged in to Google')
    assert.match(await page.locator('.message').innerText(), /client_secret is missing/)
    assert.equal(
      await page.locator('.command').innerText(),
      'doorward oauth login google --client-secret-stdin',
    )
    await page.screenshot({ path: join(pictures, 'secret-missing.png'), fullPage: true })
    await close()
    await ownApp.close()
    google.close()
  })

  it('says that access was not allowed and what to do', async () => {
    const { page, close } = await openWindow({ width: 1024, colorScheme: 'light' })
    const login = await click(page, 'Deny')
    assert.deepEqual([login.status, login.error?.code], ['failed', 'login-denied'])
    assert.equal(await page.getByRole('heading').innerText(), 'You did not allow access')
    assert.match(await page.locator('body').innerText(), /doorward oauth login google/)
    await page.screenshot({ path: join(pictures, 'denied.png') })
    await close()
  })

  it('tells a page that is no login that nothing has changed', async () => {
    const { page, close } = await openWindow({ width: 340, colorScheme: 'dark' })
    const { redirectUri } = await app.start({ provider: 'google' })
    await page.goto(`${redirectUri}?code=x&state=y`)
    assert.match(await page.locator('body').innerText(), /Nothing has changed/)
    await page.screenshot({ path: join(pictures, 'ignored.png') })
    await close()
  })
}

if (chromiumPath !== undefined) describe('callback page in Chromium', describePage).timeout(60_000)
