import assert from 'node:assert/strict'
import { buildArgv, grantsTools } from '../../../daemon/agents/cli-presets.ts'
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

  it('gives tools only where args ask for them', () => {
    for (const kind of cliKinds) assert.equal(grantsTools({ kind, args: ['--model', 'x'] }), false)
    assert.ok(grantsTools({ kind: 'opencode', args: ['--agent', 'build'] }))
    assert.ok(grantsTools({ kind: 'gemini', args: ['--approval-mode=auto_edit'] }))
    assert.ok(grantsTools({ kind: 'codex', args: ['--sandbox=read-only'] }))
  })
})
