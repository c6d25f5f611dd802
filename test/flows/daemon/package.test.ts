import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { readlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { EventRecord } from '../../../shared/api/api.ts'
import { version } from '../../../shared/version.ts'
import { type InstalledPackage, installPackage } from '../../support/daemon/installed-package.ts'

// A global prefix looks otherwise there, and PATH alone starts no program of ours.
const describeOnPosix = process.platform === 'win32' ? describe.skip : describe

describeOnPosix('the package', function () {
  this.timeout(120_000)
  let installed: InstalledPackage

  before(async () => {
    installed = await installPackage()
  })

  after(async () => {
    await installed?.doorward('daemon', 'stop', '--quiet')
  })

  it('holds what runs and what is read, and nothing else', () => {
    const { files } = installed
    for (const wanted of [
      'LICENSE',
      'README.md',
      'dist/bin/doorward.cjs',
      'dist/bin/LICENSES.txt',
      'dist/bin/doorward-daemon.cjs',
      'dist/bin/doorward-daemon-under-launchd.cjs',
      'dist/tray/main.js',
      'assets/callback/page.html',
      'assets/icons/idle.png',
      'assets/prompts/github.liquid',
      'config/webhooks.yaml',
      'config/schema/gateway.json',
      'docs/providers.md',
    ])
      assert.ok(files.includes(wanted), wanted)
    const others = files.filter(
      (path) =>
        !/^(dist\/(bin|shared|tray)\/.*\.(js|cjs)|dist\/bin\/LICENSES\.txt|assets\/.*|config\/.*\.(yaml|json)|docs\/.*\.md|LICENSE|README\.md|package\.json)$/.test(
          path,
        ),
    )
    assert.deepEqual(others, [])
  })

  it('holds every file of its own that its code names', () => {
    const { files, inside } = installed
    const code = files.filter((path) => /\.c?js$/.test(path))
    const named = code.flatMap((path) =>
      [...readFileSync(join(inside, path), 'utf8').matchAll(/["'`](dist\/[\w./-]+)["'`]/g)].map(
        ([, name = '']) => name,
      ),
    )
    assert.ok(named.includes('dist/bin/doorward-daemon.cjs'))
    // Node creates the folder of compiled code when the program runs.
    const missing = named.filter(
      (name) => name !== 'dist/.compiled' && !existsSync(join(inside, name)),
    )
    assert.deepEqual(missing, [])
    for (const path of code)
      assert.doesNotMatch(readFileSync(join(inside, path), 'utf8'), /sourceMappingURL/, path)
  })

  it('brings few packages: what the bundles contain is not installed again', () => {
    const packages = readdirSync(join(installed.inside, 'node_modules'), { recursive: true })
    const count = packages.filter((name) =>
      /(^|node_modules[\\/])(@[^\\/]+[\\/])?[^@\\/.][^\\/]*[\\/]package\.json$/.test(String(name)),
    ).length
    assert.ok(count > 0 && count <= 44, String(count))
  })

  it('keeps the licences of what is joined into it', () => {
    const text = readFileSync(join(installed.inside, 'dist/bin/LICENSES.txt'), 'utf8')
    assert.match(text, /^commander [\d.]+ \(MIT\)$/m)
    assert.match(text, /Permission is hereby granted/)
    assert.match(text, /^yaml [\d.]+ \(ISC\)$/m)
    assert.match(text, /^koa [\d.]+ \(MIT\)$/m)
  })

  it('runs by its link, and knows its version', async () => {
    assert.match(await readlink(join(installed.prefix, 'bin', 'doorward')), /doorward\.cjs$/)
    assert.deepEqual(await installed.doorward('--version'), {
      code: 0,
      stdout: `${version}\n`,
      stderr: '',
    })
  })

  it('goes from an empty home to an answered event, with nothing but Node', async () => {
    const { doorward, home } = installed
    const made = await doorward('init')
    assert.equal(made.code, 0, made.stderr)
    assert.ok(existsSync(join(home, '.doorward', 'config', 'webhooks.yaml')))
    const started = await doorward('daemon', 'start')
    assert.match(started.stdout, /^started: http:/, started.stderr)
    const sample = 'github:pull_request.opened'
    const sent = await doorward('webhook', 'send', '/webhook/github', '--sample', sample, '--wait')
    assert.equal(sent.code, 0, sent.stderr)
    assert.match(sent.stdout, /A pull request was opened in Codertocat\/Hello-World/)
    const { stdout } = await doorward('events', '--json')
    const { events } = JSON.parse(stdout) as { events: EventRecord[] }
    assert.deepEqual(
      events.filter(({ kind }) => kind === 'webhook').map(({ state }) => state),
      ['done'],
    )
    assert.equal((await doorward('config', 'check')).code, 0)
    const token = await doorward('oauth', 'token', 'github')
    assert.equal(token.code, 4)
    assert.match(token.stderr, /hint: doorward oauth login github/)
    const restarted = await doorward('daemon', 'restart')
    assert.equal(restarted.code, 0, restarted.stderr)
    const stopped = await doorward('daemon', 'stop')
    assert.equal(stopped.code, 0, stopped.stderr)
    assert.equal((await doorward('daemon', 'status')).code, 3)
  })

  it('says what a tray needs where there is no desktop', async () => {
    const { code, stderr } = await installed.doorward('tray')
    assert.equal(code, 1)
    assert.match(stderr, /^doorward: [^]*\nhint: /)
    assert.doesNotMatch(stderr, /\n\s+at |cannot find|went wrong/i)
    assert.equal((await installed.doorward('tray', '--help')).code, 0)
  })
})
