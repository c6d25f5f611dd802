import assert from 'node:assert/strict'
import { buildArgv } from '../../../daemon/agents/cli-presets.ts'
import type { CliAgent } from '../../../shared/agents/schema.ts'
import { getToolLevel } from '../../../shared/agents/tools.ts'
import { cliKinds } from '../../../shared/agents/clis.ts'

describe('buildArgv', () => {
  it('runs each program without a person, without tools, and keeps nothing', () => {
    assert.equal(
      buildArgv({ kind: 'claude' }).join(' '),
      'claude -p --output-format json --no-session-persistence --permission-mode dontAsk --tools  --setting-sources  --strict-mcp-config --safe-mode',
    )
    assert.match(
      buildArgv({ kind: 'codex' }).join(' '),
      /^codex exec --json --ephemeral --skip-git-repo-check -s read-only --color never -c features\.shell_tool=false .* -$/,
    )
    assert.equal(
      buildArgv({ kind: 'gemini' }).join(' '),
      'gemini -o json --skip-trust --approval-mode plan',
    )
    assert.equal(
      buildArgv({ kind: 'opencode' }).join(' '),
      'opencode run --format json --title doorward',
    )
    assert.equal(buildArgv({ kind: 'llm' }).join(' '), 'llm prompt -n --no-stream')
  })

  it('adds args, and leaves out the flags that they override', () => {
    const claude = buildArgv({ kind: 'claude', args: ['--model', 'x', '--tools', 'Read'] })
    assert.deepEqual(claude.slice(-4), ['--model', 'x', '--tools', 'Read'])
    assert.equal(claude.filter((arg) => arg === '--tools').length, 1)
    const auto = buildArgv({ kind: 'claude', args: ['--permission-mode=acceptEdits'] })
    assert.ok(!auto.includes('dontAsk') && auto.includes('--tools'))
    const codex = buildArgv({ kind: 'codex', args: ['-s', 'workspace-write'] })
    assert.deepEqual(codex.slice(-5), ['--color', 'never', '-s', 'workspace-write', '-'])
    assert.ok(!codex.includes('read-only'))
    assert.ok(!buildArgv({ kind: 'gemini', args: ['--yolo'] }).includes('plan'))
  })

  it('gives tools only where tools or args ask for them', () => {
    const level = (kind: CliAgent['kind'], ...args: string[]) => getToolLevel({ kind, args })
    for (const kind of cliKinds) assert.equal(level(kind, '--model', 'x'), 'none')
    assert.equal(level('opencode', '--agent', 'build'), 'args')
    assert.equal(level('gemini', '--approval-mode=auto_edit'), 'args')
    assert.equal(level('codex', '--sandbox=read-only'), 'args')
    assert.equal(getToolLevel({ kind: 'claude', args: ['--tools', 'Bash'], tools: 'read' }), 'args')
  })

  it('names the flags of each program for tools: read and write', () => {
    const flags = (kind: CliAgent['kind'], tools: 'read' | 'write', ...args: string[]) =>
      buildArgv({ kind, tools, args }).join(' ')
    assert.match(flags('claude', 'read'), / dontAsk --tools Read,Grep,Glob --setting/)
    assert.match(flags('claude', 'write'), / acceptEdits --tools Read,Grep,Glob,Edit,Write --sett/)
    assert.match(flags('codex', 'read'), /-s read-only --color never -c features\.view_image=/)
    assert.match(flags('codex', 'write'), /-s workspace-write --color never -c features\.view/)
    assert.match(flags('gemini', 'read'), /--approval-mode plan$/)
    assert.match(flags('gemini', 'write'), /--approval-mode auto_edit$/)
    // `args` wins.
    assert.match(flags('claude', 'read', '--tools', 'Bash'), /dontAsk .*--tools Bash$/)
    assert.ok(!flags('claude', 'read', '--tools', 'Bash').includes('Grep'))
    assert.equal(flags('codex', 'write', '-s', 'read-only').split('-s ').length, 2)
  })

  it('limits what a run of claude costs by the least of its budgets, unless args do', () => {
    const limit = (agent: Parameters<typeof buildArgv>[0], usd?: number) => {
      const argv = buildArgv(agent, usd === undefined ? undefined : { usd })
      const at = argv.indexOf('--max-budget-usd')
      return at === -1 ? undefined : argv[at + 1]
    }
    const budget = { run: { usd: 0.5 } }
    assert.equal(limit({ kind: 'claude' }), undefined)
    assert.equal(limit({ kind: 'claude' }, 2), '2')
    assert.equal(limit({ kind: 'claude', budget }, 2), '0.5')
    assert.equal(limit({ kind: 'claude', budget }, 0.25), '0.25')
    assert.equal(limit({ kind: 'claude', budget, args: ['--max-budget-usd', '9'] }), '9')
    assert.equal(limit({ kind: 'codex' }, 2), undefined)
  })
})
