import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, it } from 'mocha'
import type { Browser } from 'playwright-core'
import { resultOf, run, start, untilSaid } from '../cli/support/cli.ts'
import { type RunningDaemon, startDaemon } from '../support/daemon/daemon.ts'
import { launchChromium, openWindow, pictures } from '../support/desktop/chromium.ts'
import { type GithubAppServer, startGithubAppServer } from '../support/servers/github-app-server.ts'

describe('a bot, made in the browser', () => {
  let browser: Browser
  let github: GithubAppServer
  let daemon: RunningDaemon

  before(async () => {
    browser = await launchChromium()
    github = await startGithubAppServer()
    daemon = await startDaemon({
      gateway: `
oauth: { callback_port: 0 }
providers: { github: { api_url: "${github.apiUrl}" } }
`,
    })
  })
  after(async () => {
    await browser.close()
    assert.equal(await daemon.stop(), 0)
    github.close()
  })

  const looks = [
    { width: 1024, colorScheme: 'light' },
    { width: 360, colorScheme: 'dark' },
  ] as const
  for (const look of looks)
    it(`takes one press here and one at GitHub, ${look.width} pixels wide`, async () => {
      const name = `shop-${look.width}`
      const words = ['bot', 'create', 'github', '--name', name, '--no-browser']
      const command = start(words, { home: daemon.home })
      const ended = resultOf(command)
      const [url = ''] = /http:\S+/.exec(await untilSaid(command, 'stderr', /http:\S+\n/)) ?? []
      const { page, complaints, close } = await openWindow(browser, look)
      await page.goto(url)
      await page.screenshot({ path: join(pictures, `bot-${look.width}.png`), fullPage: true })
      assert.equal(
        await page.getByRole('heading', { level: 1 }).innerText(),
        'Your own bot at GitHub',
      )
      const isWide = await page.evaluate('document.documentElement.scrollWidth > innerWidth')
      assert.equal(isWide, false)
      await page.keyboard.press('Tab')
      await page.keyboard.press('Enter')
      await page.getByRole('button', { name: 'Create GitHub App' }).click()
      await page.getByRole('heading', { name: 'Your bot is made' }).waitFor()
      await page.screenshot({ path: join(pictures, `bot-made-${look.width}.png`) })
      await page.getByRole('link', { name: 'Choose repositories' }).click()
      await page.getByRole('heading', { name: 'Install' }).waitFor()
      assert.match(page.url(), new RegExp(`/apps/${name}/installations/new$`))
      assert.deepEqual(complaints, [])
      await close()
      github.install(name, ['acme/shop'])
      const { code, stdout, stderr } = await ended
      assert.deepEqual(
        [code, stdout],
        [
          0,
          `made the bot ${name} of octocat: its login is github@${name}\ninstalled in acme/shop\n`,
        ],
      )
      assert.match(stderr, /no address: deliveries are read from GitHub's list/)
    })

  it('is a login whose tokens need a repository', async () => {
    const token = (...words: readonly string[]) =>
      run(['oauth', 'token', 'github@shop-360', ...words], { home: daemon.home })
    const { code, stderr } = await token()
    assert.equal(code, 1)
    assert.match(stderr, /each of its tokens is for one repository.*--repo OWNER\/NAME/s)
    const more = await token('--repo', 'acme/shop', '--permission', 'checks:write')
    const minted = github.minted.find((one) => `${one.token}\n` === more.stdout)
    assert.deepEqual(minted?.permissions, { checks: 'write' })
    const print = ['--', process.execPath, '-e', 'console.log(process.env.GITHUB_TOKEN)']
    const words = ['oauth', 'exec', 'github@shop-360', '--repo', 'acme/shop', ...print]
    const { stdout } = await run(words, { home: daemon.home })
    const read = github.minted.find((one) => `${one.token}\n` === stdout)
    assert.deepEqual(read?.permissions, { contents: 'read' })
  })

  it('is listed, shown, rotated and removed', async () => {
    const bot = (...words: readonly string[]) => run(['bot', ...words], { home: daemon.home })
    assert.match((await bot('list')).stdout, /^shop-360 +octocat +review +github@shop-360 /m)
    const shown = (await bot('show', 'shop-360')).stdout
    assert.match(shown, /^permissions +contents: read, /m)
    assert.match(shown, /^installed +acme: acme\/shop$/m)
    assert.match((await bot('rotate', 'shop-360')).stderr, /--key or --secret/)
    const key = { home: daemon.home, stdin: github.newKey('shop-360') }
    const rotated = await run(['bot', 'rotate', 'shop-360', '--key'], key)
    assert.match(rotated.stdout, /has the new key: delete the old one at /)
    assert.match((await bot('rotate', 'shop-360', '--secret')).stdout, /have a new secret/)
    assert.match((await bot('remove', 'shop-360')).stderr, /no terminal to ask.*--yes/s)
    const removed = await bot('remove', 'shop-360', '--yes')
    assert.equal(removed.stdout, 'shop-360 is removed here\n')
    assert.match(removed.stderr, /the entry of \/webhook\/shop-360 stays/)
    const { code, stderr } = await bot('show', 'shop-360')
    assert.equal(code, 1)
    assert.match(stderr, /there is no bot shop-360 here/)
  })
})
