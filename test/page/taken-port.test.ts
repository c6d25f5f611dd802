import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'mocha'
import { startDaemon } from '../support/daemon/daemon.ts'
import { chromiumPath, launchChromium, openWindow } from '../support/desktop/chromium.ts'
import { linkToView, wide } from '../support/desktop/page.ts'

const worker = `addEventListener('fetch', (event) => {
    if (!event.request.url.includes('/ui/link/')) event.respondWith(new Response('evil worker'))
  })`

/** What another user's program could serve at the port of a daemon that is stopped. */
const startOther = async () => {
  const server = createServer((request, response) => {
    const isWorker = request.url === '/worker.js'
    response.setHeader('cache-control', 'public, max-age=31536000, immutable')
    response.setHeader('content-type', isWorker ? 'text/javascript' : 'text/html')
    response.end(isWorker ? worker : '<h1>evil page</h1>')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

const describeBrowser = (): void => {
  it('keeps nothing that another program left in it while the daemon was stopped', async () => {
    const browser = await launchChromium()
    const other = await startOther()
    const { port } = other.address() as AddressInfo
    const { page, complaints, close } = await openWindow(browser, wide)
    const origin = `http://127.0.0.1:${port}`
    for (const path of ['/ui/events', '/ui/usage']) await page.goto(`${origin}${path}`)
    await page.evaluate(
      `navigator.serviceWorker.register('/worker.js').then(() => navigator.serviceWorker.ready).then(() => 0)`,
    )
    await page.goto('about:blank')
    other.closeAllConnections()
    await new Promise((resolve) => other.close(resolve))
    // The attack works: neither page comes from a server.
    await page.goto(`${origin}/ui/events`)
    assert.match(await page.locator('body').innerText(), /evil/)
    await page.goto('about:blank')

    const daemon = await startDaemon({ variables: { DOORWARD_PORT: String(port) } })
    await page.goto(await linkToView(daemon, '/ui/events'))
    for (const title of ['Events', 'Usage']) {
      await page.goto(`${origin}/ui/${title.toLowerCase()}`)
      assert.equal(await page.locator('h1').innerText(), title)
    }
    const workers = `navigator.serviceWorker.getRegistrations().then(({ length }) => length)`
    assert.equal(await page.evaluate(workers), 0)
    assert.deepEqual(complaints, [])

    // A script of a page that was open meanwhile has the address of the daemon, but takes no link.
    const link = await linkToView(daemon)
    const status = await page.evaluate(async (url) => (await fetch(url)).status, link)
    assert.equal(status, 403)
    const again = await page.goto(link)
    assert.equal(again?.status(), 200)
    await close()
    await browser.close()
    assert.equal(await daemon.stop(), 0)
  })
}

// CI has a Chromium on Linux.
if (chromiumPath !== undefined) describe('a browser of the page', describeBrowser)
