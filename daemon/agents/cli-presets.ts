import { type Budget, toRunLimit } from '../../shared/agents/budget.ts'
import { agentClis, type CliKind } from '../../shared/agents/clis.ts'
import { getToolLevel, hasFlag, type ToolLevel } from '../../shared/agents/tools.ts'
import {
  type CliOutput,
  readClaudeAnswer,
  readCodexAnswer,
  readGeminiAnswer,
  readLlmAnswer,
  readOpencodeAnswer,
} from './cli-output.ts'
import { prepareOpencode } from './opencode-home.ts'
import { prepareClaude, prepareCodex, prepareGemini, type PrepareHome } from './own-home.ts'

/*
 * How to run each agent program without a person: prompt on standard input, machine-readable answer,
 * nothing kept on disk, no tools unless `tools` or `args` grants them, few retries. The flags were tried with the
 * versions that test/agent-clis installs, and with Claude Code 2.1.332.
 */

type Preset = {
  /** Groups of flags, at all levels of tools or at these; a group is left out when `args` has one of `unless`. */
  readonly flags: readonly {
    readonly flags: readonly string[]
    readonly at?: readonly ToolLevel[]
    readonly unless?: readonly string[]
  }[]
  /** Ends a run that costs this many dollars. */
  readonly limit?: string
  /** Follows `args`. */
  readonly last?: string
  /** Variables that doorward sets. */
  readonly env?: (level: ToolLevel) => Readonly<Record<string, string>>
  /** Our own variables that lead to its settings and logins. */
  readonly passed?: readonly string[]
  readonly read: (output: CliOutput) => string
  /** How a person logs in, for failures that are about that. */
  readonly login: string
  /** Makes the configuration of the run, in memory unless the program cannot use a folder there. */
  readonly prepare?: PrepareHome
  readonly canUse?: (memoryFolder: string) => boolean
}

/** Levels at which no file may be changed. */
const unlessWrite = ['none', 'read', 'args'] as const

const offInCodex = (...features: readonly string[]): string[] =>
  features.flatMap((feature) => ['-c', `features.${feature}=false`])

export const presets: Readonly<Record<CliKind, Preset>> = {
  claude: {
    flags: [
      { flags: ['-p', '--output-format', 'json', '--no-session-persistence'] },
      {
        flags: ['--permission-mode', 'dontAsk'],
        at: unlessWrite,
        unless: ['--permission-mode', '--dangerously-skip-permissions'],
      },
      // Its own rules keep both levels of tools to its folder.
      { flags: ['--permission-mode', 'acceptEdits'], at: ['write'], unless: ['--permission-mode'] },
      { flags: ['--tools', ''], at: ['none'] },
      { flags: ['--tools', 'Read,Grep,Glob'], at: ['read'] },
      { flags: ['--tools', 'Read,Grep,Glob,Edit,Write'], at: ['write'] },
      // Not --bare, which ignores the login of a subscription.
      { flags: ['--setting-sources', ''], unless: ['--setting-sources'] },
      { flags: ['--strict-mcp-config'] },
      {
        flags: ['--safe-mode'],
        unless: [
          '--setting-sources',
          '--mcp-config',
          '--plugin-dir',
          '--agent',
          '--agents',
          '--bare',
        ],
      },
    ],
    // By default it retries a refused login for more than 100 s.
    env: () => ({
      CLAUDE_CODE_MAX_RETRIES: '0',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      // Otherwise a path after an @ in the prompt, which strangers write, adds that file to it.
      CLAUDE_CODE_DISABLE_ATTACHMENTS: '1',
      // The connectors of the account.
      ENABLE_CLAUDEAI_MCP_SERVERS: 'false',
    }),
    limit: '--max-budget-usd',
    passed: ['CLAUDE_CONFIG_DIR'],
    prepare: prepareClaude,
    read: readClaudeAnswer,
    login:
      'run claude in a terminal once, or give it env: { ANTHROPIC_API_KEY: env:ANTHROPIC_API_KEY }',
  },
  codex: {
    flags: [
      { flags: ['exec', '--json', '--ephemeral', '--skip-git-repo-check'] },
      { flags: ['-s', 'read-only'], at: ['none', 'read'] },
      { flags: ['-s', 'workspace-write'], at: ['write'] },
      // By --enable alone.
      {
        flags: ['-s', 'read-only'],
        at: ['args'],
        unless: agentClis.codex.toolFlags.filter((flag) => flag !== '--enable'),
      },
      { flags: ['--color', 'never'], unless: ['--color'] },
      // A read-only sandbox can still read your keys and repeat them in its answer.
      { flags: offInCodex('shell_tool', 'unified_exec'), at: ['none'] },
      {
        flags: [...offInCodex('view_image', 'multi_agent', 'goals'), '-c', 'web_search="disabled"'],
        at: ['none', 'read', 'write'],
      },
    ],
    last: '-',
    passed: ['CODEX_HOME'],
    prepare: prepareCodex,
    // Its own sandbox, which starts a program of its home, has another /dev.
    canUse: (folder) => !folder.startsWith('/dev/'),
    read: readCodexAnswer,
    login:
      'run: codex login; with cli_auth_credentials_store in its config.toml, set that to "file"',
  },
  gemini: {
    flags: [
      { flags: ['-o', 'json'] },
      { flags: ['--skip-trust'] },
      {
        flags: ['--approval-mode', 'plan'],
        at: unlessWrite,
        unless: ['-y', '--yolo', '--approval-mode'],
      },
      { flags: ['--approval-mode', 'auto_edit'], at: ['write'] },
    ],
    passed: ['GEMINI_CLI_HOME'],
    read: readGeminiAnswer,
    login: 'run gemini in a terminal once, or give it env: { GEMINI_API_KEY: env:GEMINI_API_KEY }',
    prepare: prepareGemini,
  },
  opencode: {
    flags: [
      { flags: ['run', '--format', 'json'] },
      // Without a title it sends the prompt to the model to get one.
      { flags: ['--title', 'doorward'], unless: ['--title'] },
    ],
    env: (level) => ({
      OPENCODE_DB: ':memory:',
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      ...(level !== 'args' && { OPENCODE_PERMISSION: JSON.stringify(opencodePermissions(level)) }),
    }),
    passed: ['OPENCODE_CONFIG', 'OPENCODE_CONFIG_DIR'],
    prepare: prepareOpencode,
    read: readOpencodeAnswer,
    login: 'run: opencode auth login',
  },
  llm: {
    // Without -n it stores every prompt in its database.
    flags: [{ flags: ['prompt', '-n', '--no-stream'] }],
    passed: ['LLM_USER_PATH'],
    read: readLlmAnswer,
    login: 'run: llm keys set openai',
  },
}

const opencodePermissions = (level: Exclude<ToolLevel, 'args'>): Record<string, string> => ({
  '*': 'deny',
  ...(level !== 'none' && { read: 'allow', grep: 'allow', glob: 'allow', list: 'allow' }),
  ...(level === 'write' && { edit: 'allow' }),
})

type FlagSource = Parameters<typeof getToolLevel>[0] & { readonly budget?: Budget | undefined }

/** Flags of a conversation. */
type SessionFlags = { readonly without: readonly string[]; readonly more: readonly string[] }

const noSession: SessionFlags = { without: [], more: [] }

/** The argument vector of an agent program; `most` is what the run may cost beside the budget of its agent. */
export const buildArgv = (
  agent: FlagSource,
  most?: Budget['run'],
  session = noSession,
): string[] => {
  const { kind, args = [] } = agent
  const { flags, last, limit } = presets[kind]
  const run = toRunLimit([agent.budget, { run: most }])
  const level = getToolLevel(agent)
  return [
    agentClis[kind].program,
    ...flags.flatMap(({ flags: group, at, unless = [] }) =>
      (at && !at.includes(level)) || hasFlag(args, unless)
        ? []
        : group.filter((flag) => !session.without.includes(flag)),
    ),
    ...(run === undefined || limit === undefined || hasFlag(args, [limit])
      ? []
      : [limit, String(run.usd)]),
    ...args,
    ...session.more,
    ...(last === undefined ? [] : [last]),
  ]
}
