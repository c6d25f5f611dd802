import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { appendFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describeOnLinux } from '../../../support/desktop/desktop.ts'
import { filesIn, temporaryFolder, temporaryHome } from '../../../support/temporary.ts'
import { run, stopStarted } from '../../support/cli.ts'

type Installed = {
  installed: boolean
  tray: boolean
  written: string[]
  running: boolean
  warnings: { code: string; detail: string }[]
}

describeOnLinux('cli: daemon install', () => {
  // No session: a systemd of this machine does not answer, and is left alone.
  const newPlace = async (files: Parameters<typeof temporaryHome>[0] = {}) => {
    const home = await temporaryHome(files)
    const userHome = await temporaryFolder()
    return { home, userHome, env: { HOME: userHome } }
  }

  it('shows what it wrote, is fine a second time, and is undone', async () => {
    const { home, userHome, env } = await newPlace()
    const options = { home, env }
    const first = await run(['daemon', 'install', '--tray', '--no-start'], options)
    assert.equal(first.code, 0, first.stderr)
    const lines = first.stdout.trim().split('\n')
    assert.equal(lines.at(-1), 'starts at login')
    assert.match(first.stderr, /your desktop starts it; without a desktop/)
    const written = lines.slice(0, -1).map((line) => line.replace(/^wrote /, ''))
    const there = (await filesIn(userHome)).map((path) => join(userHome, path))
    assert.deepEqual(written.sort(), there.sort())
    assert.ok(written.some((path) => path.endsWith('-tray.desktop')))

    const second = await run(['daemon', 'install', '--tray', '--no-start'], options)
    assert.match(second.stdout, /^nothing to write/)

    const daemonOnly = await run(['daemon', 'uninstall'], options)
    assert.equal(daemonOnly.code, 0)
    assert.match(daemonOnly.stderr, /uninstall --tray/)
    const rest = await run(['daemon', 'uninstall', '--tray', '--json'], options)
    assert.deepEqual(JSON.parse(rest.stdout), {
      installed: false,
      tray: false,
      removed: written.filter((path) => path.endsWith('-tray.desktop')),
    })
    assert.deepEqual(await filesIn(userHome), [])
  })

  it('keeps the proxy of the shell, and says where its password belongs', async () => {
    const { home, userHome, env } = await newPlace()
    const install = ['daemon', 'install', '--no-start', '--json']
    const proxies = { HTTPS_PROXY: 'http://me:canary@proxy:3128', NO_PROXY: '.corp.example' }
    const result = await run(install, { home, env: { ...env, ...proxies } })
    const { warnings, written } = JSON.parse(result.stdout) as Installed
    assert.deepEqual(
      warnings.map(({ code }) => code).filter((code) => code.startsWith('proxy')),
      ['proxy-password-not-kept'],
    )
    const texts = await Promise.all(written.map((path) => readFile(path, 'utf8')))
    assert.match(texts.join(''), /NO_PROXY=\.corp\.example/)
    assert.doesNotMatch(texts.join('') + result.stdout, /canary/)
    await writeFile(home.env, `HTTPS_PROXY=${proxies.HTTPS_PROXY}\n`, { mode: 0o600 })
    const again = await run(install, { home, env: { ...env, ...proxies } })
    assert.doesNotMatch(again.stdout, /proxy-password/)
    await run(['daemon', 'uninstall'], { home, env })
    assert.deepEqual(await filesIn(userHome), [])
  })

  it('refuses to overwrite a file of someone else', async () => {
    const { home, userHome, env } = await newPlace()
    const install = ['daemon', 'install', '--tray', '--no-start', '--json']
    const { written } = JSON.parse((await run(install, { home, env })).stdout) as Installed
    for (const path of written) await appendFile(path, '')
    await run(['daemon', 'uninstall', '--tray'], { home, env })
    const path = written.find((path) => path.endsWith('-tray.desktop')) ?? ''
    await mkdir(join(userHome, '.config', 'autostart'), { recursive: true })
    await writeFile(path, '[Desktop Entry]\n')
    const { code, stdout, stderr } = await run(install, { home, env })
    assert.deepEqual([code, stdout], [1, ''])
    const problem = JSON.parse(stderr) as { code: string; detail: string }
    assert.equal(problem.code, 'login-item-foreign')
    assert.ok(problem.detail.includes(path))
  })

  it('warns of a secret that only this shell has, and never shows it', async () => {
    const webhooks = `webhooks:
  - { path: /webhook/a, agent: echo, prompt_template: hi, secret_env: LOGIN_TEST_SECRET }
`
    const { home, env } = await newPlace({ webhooks })
    const secret = 'd41d8cd98f00b204'
    const { stdout, stderr } = await run(['daemon', 'install', '--no-start', '--json'], {
      home,
      env: { ...env, LOGIN_TEST_SECRET: secret },
    })
    const { warnings } = JSON.parse(stdout) as Installed
    const found = warnings.find(({ code }) => code === 'secret-unset')
    assert.match(found?.detail ?? '', /LOGIN_TEST_SECRET is unset/)
    assert.ok(!`${stdout}${stderr}`.includes(secret))
  })

  it('starts the daemon now where no service manager is to do it', async () => {
    const { home, env } = await newPlace()
    const { code, stdout, stderr } = await run(['daemon', 'install', '--json'], { home, env })
    try {
      assert.equal(code, 0, stderr)
      const { running } = JSON.parse(stdout) as Installed
      // A systemd that does not answer is told to the person instead.
      assert.equal(running, !existsSync('/run/systemd/system'))
    } finally {
      await stopStarted(home)
    }
  })
})
