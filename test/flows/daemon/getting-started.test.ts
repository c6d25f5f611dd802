import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { loadConfig } from '../../../shared/config/load.ts'
import { resolveHome } from '../../../shared/home/home.ts'
import { stopStarted, untilSaid } from '../../cli/support/cli.ts'
import { readPage } from '../../cli/support/documents.ts'
import { browse } from '../../support/desktop/browser.ts'
import { cleanEnvironment, cliMain } from '../../support/daemon/daemon.ts'
import { startGithubAppServer } from '../../support/servers/github-app-server.ts'
import { startHookServer } from '../../support/servers/hook-api.ts'
import { pressBoth } from '../../support/servers/make-bot.ts'
import { makeTunnelPrograms } from '../../support/servers/tunnel-programs.ts'
import { temporaryFolder } from '../../support/temporary.ts'

const token = 'gho_never-shown-0123456789'
const scopes = ['gist', 'read:org', 'repo', 'workflow']

/** Claude Code is only looked for: test/agent-clis has reviews by the program itself. */
const programs = {
  doorward: `#!/bin/sh\nexec '${process.execPath}' '${cliMain}' "$@"\n`,
  claude: '#!/bin/sh\nexit 1\n',
  gh: `#!/bin/sh\necho '${token}'\n`,
}

/** Needs an OAuth app, or a person who ends it. */
const cannotRun = /oauth login|--follow/

/** What differs from machine to machine, as the page has it. */
const normalize = (said: string, home: string): string =>
  said
    .replaceAll(home, '~/.doorward')
    .replaceAll('acme/door', 'OWNER/REPO')
    .replace(/webhooks\.yaml:\d+/, 'webhooks.yaml:251')
    .replace(/127\.0\.0\.1:(?:\d+|PORT)/, '127.0.0.1:18789')
    .replace(/pid \d+/, 'pid 4242')
    .replace(/:\d+\/bot\/\S{43}\n/, ':53174/bot/…\n')
    .replace('of octocat', 'of ada')
    // Without a sandbox.
    .replace(
      /sees the diff alone: .*/,
      'may now read the checkout, in a sandbox: tools: read in agents.yaml',
    )

/** The commands of a page, each with the block of text below it, which is what it prints. */
const commandsOf = (page: string) =>
  [...page.matchAll(/^```sh\n(.*)\n```(?:\n\n```text\n([^]*?)^```)?/gm)]
    .map(([, command = '', output]) => ({ command, output }))
    .filter(({ command }) => !cannotRun.test(command))

describe('getting started', () => {
  it('works as the page says, with the output that it shows', async () => {
    const commands = commandsOf(await readPage('getting-started.md'))
    assert.ok(commands.length >= 4)
    assert.ok(commands.filter(({ output }) => output !== undefined).length >= 3)

    const [hooks, github, tunnels, folder] = await Promise.all([
      startHookServer(),
      startGithubAppServer(),
      makeTunnelPrograms(['cloudflared']),
      temporaryFolder(),
    ])
    hooks.scopes = scopes
    github.user = { login: 'ada', scopes }
    const bin = join(folder, 'bin')
    await mkdir(bin)
    for (const [name, script] of Object.entries(programs)) {
      await writeFile(join(bin, name), script)
      await chmod(join(bin, name), 0o700)
    }
    // All else of the home is new.
    const gateway = `oauth: { callback_port: 0 }\nproviders:\n  github: { api_url: '${github.apiUrl}' }\ntargets:\n  github: { api_url: '${hooks.apiUrl}' }\n`
    const home = resolveHome(join(folder, 'home'))
    await mkdir(home.config, { recursive: true, mode: 0o700 })
    await writeFile(join(home.config, 'gateway.yaml'), gateway)
    const env = cleanEnvironment({
      ...tunnels.env,
      HOME: process.env['HOME'],
      PATH: [bin, process.env['PATH'], tunnels.env['PATH']].join(delimiter),
      DOORWARD_HOME: home.root,
      DOORWARD_PORT: '0',
    })
    const said: string[] = []
    try {
      for (const { command, output } of commands) {
        // On a terminal it asks.
        const line = command
          .replace('import gh', 'import gh --yes')
          .replace('OWNER/REPO', 'acme/door')
        const child = spawn('sh', ['-c', `${line} 2>&1`], { env, timeout: 40_000 })
        let printed = ''
        child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text))
        const ended = once(child, 'close')
        if (/bot create/.test(command)) {
          const [url = ''] =
            /http:\S+\/bot\/\S+/.exec(await untilSaid(child, 'stdout', /\/bot\/\S+\n/)) ?? []
          await browse(await pressBoth(url))
          github.install('ada-reviews', ['acme/door'])
        }
        await ended
        said.push(printed)
        if (output !== undefined) assert.equal(normalize(printed, home.root), output)
        if (/tunnel/.test(command)) assert.match(printed, /cloudflared, up/)
      }
      assert.deepEqual(
        hooks.hooks.map(({ owner, events, active }) => [owner, events, active]),
        [['acme/door', ['pull_request'], true]],
      )
    } finally {
      await stopStarted(home)
      tunnels.close()
      hooks.close()
      github.close()
    }
    const { webhooks } = await loadConfig(home, {})
    assert.deepEqual(
      webhooks.map(({ path, rules: [rule], source }) => [
        path,
        rule?.name,
        rule?.agentName,
        source?.mode,
      ]),
      [
        ['/webhook/github', undefined, 'echo', undefined],
        ['/webhook/ada-reviews', 'review', 'claude', 'poll'],
        ['/webhook/github-review', 'review', 'claude', 'poll'],
      ],
    )
    const variables = await readFile(home.env, 'utf8')
    assert.match(variables, /^GITHUB_REVIEW_WEBHOOK_SECRET=[0-9a-f]{64}$/m)
    for (const printed of said) {
      assert.doesNotMatch(printed, /\b[0-9a-f]{64}\b/)
      assert.ok(!printed.includes(token))
    }
  }).timeout(120_000)
})
