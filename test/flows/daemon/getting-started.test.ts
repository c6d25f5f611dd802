import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { loadConfig } from '../../../shared/config/load.ts'
import { resolveHome } from '../../../shared/home/home.ts'
import { packageFolder } from '../../../shared/version.ts'
import { stopStarted } from '../../cli/support/cli.ts'
import { cleanEnvironment, cliMain } from '../../support/daemon/daemon.ts'
import { makeTunnelPrograms } from '../../support/servers/tunnel-programs.ts'
import { temporaryFolder } from '../../support/temporary.ts'

/** It is only looked for: test/agent-clis has reviews by Claude Code itself. */
const claude = '#!/bin/sh\nexit 1\n'

/** Needs an account, a desktop, or a person who ends it. */
const cannotRun = /oauth login|--follow/

describe('getting started', () => {
  it('works as the page says, command by command', async () => {
    const page = await readFile(new URL('docs/getting-started.md', packageFolder), 'utf8')
    const blocks = [...page.matchAll(/^```sh\n([^]*?)^```/gm)].map(([, block = '']) => block)
    const commands = blocks
      .flatMap((block) => block.trim().split('\n'))
      .filter((line) => !cannotRun.test(line))
    assert.ok(commands.length >= 9)

    const tunnels = await makeTunnelPrograms(['cloudflared'])
    const folder = await temporaryFolder()
    const bin = join(folder, 'bin')
    await mkdir(bin)
    const programs = [
      ['doorward', `#!/bin/sh\nexec '${process.execPath}' '${cliMain}' "$@"\n`],
      ['claude', claude],
    ] as const
    for (const [name, text] of programs) {
      await writeFile(join(bin, name), text)
      await chmod(join(bin, name), 0o700)
    }
    const home = resolveHome(join(folder, 'home'))
    const env = cleanEnvironment({
      ...tunnels.env,
      HOME: process.env['HOME'],
      PATH: [bin, process.env['PATH'], tunnels.env['PATH']].join(delimiter),
      DOORWARD_HOME: home.root,
      DOORWARD_PORT: '0',
    })
    const said = new Map<string, string>()
    try {
      for (const command of commands) {
        const { status, stdout, stderr } = spawnSync('sh', ['-c', command], {
          env,
          encoding: 'utf8',
          timeout: 40_000,
        })
        assert.equal(status, 0, `${command}\n${stdout}${stderr}`)
        said.set(command, stdout + stderr)
      }
    } finally {
      await stopStarted(home)
      tunnels.close()
    }
    const saidBy = (pattern: RegExp) =>
      [...said].find(([command]) => pattern.test(command))?.[1] ?? ''
    assert.match(saidBy(/tunnel/), /cloudflared, up/)
    assert.match(saidBy(/send \/webhook\/github/), /A pull request was opened in/)
    assert.match(
      saidBy(/webhook add github-review/),
      /agent +reviewer\n +(may now read|sees the diff)/,
    )
    const explained = saidBy(/explain/)
    assert.match(explained, /targets +github-review:Codertocat\/Hello-World#2/)
    assert.match(explained, /workspace +Codertocat\/Hello-World at [0-9a-f]{40}, base [0-9a-f]{40}/)
    assert.match(saidBy(/config check/), /ok: 2 webhooks with 1 rule, 2 agents/)
    const { webhooks } = await loadConfig(home, {})
    assert.deepEqual(
      webhooks.map(({ path, rules: [rule] }) => [path, rule.name, rule.agentName]),
      [
        ['/webhook/github', undefined, 'echo'],
        ['/webhook/github-review', 'review', 'reviewer'],
      ],
    )
    const variables = await readFile(home.env, 'utf8')
    assert.match(variables, /^GITHUB_REVIEW_WEBHOOK_SECRET=[0-9a-f]{64}$/m)
    for (const text of said.values()) assert.doesNotMatch(text, /\b[0-9a-f]{64}\b/)
  })
})
