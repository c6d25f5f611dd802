import assert from 'node:assert/strict'
import { agentSchema, describePermission } from '../../../shared/agents/schema.ts'

const permission = (entry: unknown) => describePermission(agentSchema.parse(entry))

describe('permissionOf', () => {
  const risky: readonly [string, readonly string[], string?][] = [
    ['claude', ['--dangerously-skip-permissions']],
    [
      'claude',
      ['--model', 'x', '--permission-mode', 'bypassPermissions'],
      '--permission-mode bypassPermissions',
    ],
    ['claude', ['--permission-mode=acceptEdits']],
    ['claude', ['--permission-mode', 'auto'], '--permission-mode auto'],
    ['claude', ['--allowedTools', 'Read,Bash(git *)'], '--allowedTools Read,Bash(git *)'],
    ['codex', ['--dangerously-bypass-approvals-and-sandbox']],
    ['codex', ['-s', 'danger-full-access'], '-s danger-full-access'],
    ['codex', ['-sworkspace-write']],
    ['codex', ['--sandbox=workspace-write']],
    ['codex', ['--approve-for-me']],
    ['codex', ['-c', 'sandbox_mode="danger-full-access"'], '-c sandbox_mode="danger-full-access"'],
    ['codex', ['-c', 'mcp_servers.x.env={T="secret"}'], '-c mcp_servers.x.env'],
    ['codex', ['-c', 'model="x"', '--config', 'notify=["x"]'], '--config notify'],
    ['codex', ['-c', 'features.apps=true'], '-c features.apps=true'],
    ['codex', ['--enable', 'plugins'], '--enable plugins'],
    ['claude', ['--mcp-config={"mcpServers":{}}'], '--mcp-config'],
    ['claude', ['--strict-mcp-config', '--mcp-config', 'x.json'], '--mcp-config'],
    ['claude', ['--plugin-dir', 'x']],
    ['claude', ['--setting-sources', 'user'], '--setting-sources user'],
    ['claude', ['--settings', '{"hooks":{"Stop":[]}}'], '--settings'],
    ['gemini', ['-y']],
    ['gemini', ['--yolo']],
    ['gemini', ['--approval-mode', 'yolo'], '--approval-mode yolo'],
    ['gemini', ['--approval-mode=auto_edit']],
    ['opencode', ['--auto']],
    ['opencode', ['--agent', 'build']],
  ]
  for (const [kind, args, found = args[0]] of risky) {
    it(`finds ${args.join(' ')} of ${kind}`, () => assert.equal(permission({ kind, args }), found))
    it(`finds it in a command with ${kind}`, () => {
      assert.equal(permission({ kind: 'command', command: [`/usr/bin/${kind}`, ...args] }), found)
      assert.equal(
        permission({ kind: 'command', command: ['nice', `${kind}.exe`, ...args] }),
        found,
      )
    })
  }

  it('knows other programs in a command, and variables', () => {
    const command = (...words: string[]) => permission({ kind: 'command', command: words })
    assert.equal(
      command('npx', '@anthropic-ai/claude-code@2.1.197', '--dangerously-skip-permissions'),
      '--dangerously-skip-permissions',
    )
    assert.equal(command('cursor-agent', '-p', '--force'), '--force')
    assert.equal(command('aider', '--yes-always'), '--yes-always')
    const goose = { kind: 'command', command: ['goose', 'run'], env: { GOOSE_MODE: 'auto' } }
    assert.equal(permission(goose), 'GOOSE_MODE=auto')
    const opencode = { kind: 'opencode', env: { OPENCODE_PERMISSION: '{"bash":"allow"}' } }
    assert.equal(permission(opencode), 'OPENCODE_PERMISSION={"bash":"allow"}')
    const server = { OPENCODE_CONFIG_CONTENT: '{"mcp":{"x":{"headers":{"T":"secret"}}}}' }
    assert.equal(permission({ kind: 'opencode', env: server }), 'OPENCODE_CONFIG_CONTENT')
  })

  it('finds none where an agent may only read or talk', () => {
    for (const entry of [
      { kind: 'claude' },
      { kind: 'claude', args: ['--tools', 'Read', '--allowedTools', 'Read,Grep'] },
      { kind: 'claude', args: ['--permission-mode', 'plan'] },
      { kind: 'codex', args: ['-s', 'read-only'] },
      { kind: 'codex', args: ['-c', 'model_provider="mine"'] },
      { kind: 'claude', args: ['--settings', '{"model":"x"}', '--setting-sources', ''] },
      { kind: 'gemini', args: ['--approval-mode', 'default'] },
      { kind: 'command', command: ['wc', '-y', '--force'] },
      { kind: 'echo' },
      { kind: 'openai', base_url: 'https://a.example', model: 'x' },
      { kind: 'http', url: 'https://a.example' },
    ])
      assert.equal(permission(entry), undefined)
  })
})
