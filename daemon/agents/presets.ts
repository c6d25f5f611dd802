import type { CliAgent } from '../../shared/config/agent-schema.ts'
import { type CliKind, agentClis } from '../../shared/config/agent-clis.ts'
import {
  type Printed,
  claudeAnswer,
  codexAnswer,
  geminiAnswer,
  llmAnswer,
  opencodeAnswer,
} from './cli-answers.ts'
import { geminiHome } from './gemini-home.ts'

/*
 * How each agent program is run without a person: the prompt on standard input, its answer in a form
 * that can be read, nothing of it kept on disk, no tools unless `args` grants them, retries bounded.
 * The flags were tried with the versions that test/agent-clis installs.
 */

type Preset = {
  /** Groups of flags; one that `args` takes a stand on itself is left out. */
  readonly flags: readonly {
    readonly flags: readonly string[]
    readonly unless?: readonly string[]
  }[]
  /** What stands after `args`. */
  readonly last: readonly string[]
  readonly env: (grants: boolean) => Readonly<Record<string, string>>
  /** Variables of ours that say where its settings and logins lie. */
  readonly passed: readonly string[]
  /** Flags in `args` that give it tools. */
  readonly toolFlags: readonly string[]
  readonly read: (printed: Printed) => string
  /** How a person logs in, for failures that are about that. */
  readonly login: string
  /** Made in a folder that is removed afterwards, for a program that no flag keeps from writing. */
  readonly prepare?: (
    folder: string,
    env: NodeJS.ProcessEnv,
    grants: boolean,
  ) => Promise<Readonly<Record<string, string>>>
}

const claudeTools = [
  '--tools',
  '--allowedTools',
  '--allowed-tools',
  '--dangerously-skip-permissions',
]
const codexTools = [
  '-s',
  '--sandbox',
  '--full-auto',
  '--approve-for-me',
  '--dangerously-bypass-approvals-and-sandbox',
  '--enable',
]
const geminiTools = [
  '-y',
  '--yolo',
  '--approval-mode',
  '--allowed-tools',
  '--policy',
  '--admin-policy',
]
const opencodeTools = ['--auto', '--agent']

export const presets: Readonly<Record<CliKind, Preset>> = {
  claude: {
    flags: [
      { flags: ['-p', '--output-format', 'json', '--no-session-persistence'] },
      {
        flags: ['--permission-mode', 'dontAsk'],
        unless: ['--permission-mode', '--dangerously-skip-permissions'],
      },
      { flags: ['--tools', ''], unless: claudeTools },
      // Not --bare, which reads no login of a subscription.
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
    last: [],
    // A refused login is tried again for more than 100 s otherwise.
    env: () => ({ CLAUDE_CODE_MAX_RETRIES: '0', CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' }),
    passed: ['CLAUDE_CONFIG_DIR'],
    toolFlags: claudeTools,
    read: claudeAnswer,
    login:
      'run claude in a terminal once, or give it env: { ANTHROPIC_API_KEY: env:ANTHROPIC_API_KEY }',
  },
  codex: {
    flags: [
      { flags: ['exec', '--json', '--ephemeral', '--skip-git-repo-check'] },
      { flags: ['-s', 'read-only'], unless: codexTools.filter((flag) => flag !== '--enable') },
      { flags: ['--color', 'never'], unless: ['--color'] },
      // A sandbox that only reads can still read your keys, and say them in its answer.
      {
        flags: [
          ...['shell_tool', 'unified_exec', 'view_image', 'multi_agent', 'goals'].flatMap(
            (feature) => ['-c', `features.${feature}=false`],
          ),
          '-c',
          'web_search="disabled"',
        ],
        unless: codexTools,
      },
    ],
    last: ['-'],
    env: () => ({}),
    passed: ['CODEX_HOME'],
    toolFlags: codexTools,
    read: codexAnswer,
    login: 'run: codex login',
  },
  gemini: {
    flags: [
      { flags: ['-o', 'json'] },
      { flags: ['--skip-trust'] },
      { flags: ['--approval-mode', 'plan'], unless: ['-y', '--yolo', '--approval-mode'] },
    ],
    last: [],
    env: () => ({}),
    passed: [],
    toolFlags: geminiTools,
    read: geminiAnswer,
    login: 'run gemini in a terminal once, or give it env: { GEMINI_API_KEY: env:GEMINI_API_KEY }',
    prepare: geminiHome,
  },
  opencode: {
    flags: [
      { flags: ['run', '--format', 'json'] },
      // Without one it asks the model for a title, with the prompt.
      { flags: ['--title', 'doorward'], unless: ['--title'] },
    ],
    last: [],
    env: (grants) => ({
      OPENCODE_DB: ':memory:',
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      ...(!grants && { OPENCODE_PERMISSION: '{"*":"deny"}' }),
    }),
    passed: ['OPENCODE_CONFIG', 'OPENCODE_CONFIG_DIR'],
    toolFlags: opencodeTools,
    read: opencodeAnswer,
    login: 'run: opencode auth login',
  },
  llm: {
    // -n: else every prompt goes into its database.
    flags: [{ flags: ['prompt', '-n', '--no-stream'] }],
    last: [],
    env: () => ({}),
    passed: ['LLM_USER_PATH'],
    toolFlags: ['-T', '--tool', '--functions'],
    read: llmAnswer,
    login: 'run: llm keys set openai',
  },
}

/** The program of such an agent with all its flags, as it is started. */
export const argvOf = ({ kind, args = [] }: Pick<CliAgent, 'kind' | 'args'>): string[] => {
  const { flags, last } = presets[kind]
  return [
    agentClis[kind].program,
    ...flags.flatMap((group) => (hasFlag(args, group.unless ?? []) ? [] : group.flags)),
    ...args,
    ...last,
  ]
}

/** True when `args` gives the agent tools: then doorward takes none away. */
export const grantsTools = ({ kind, args = [] }: Pick<CliAgent, 'kind' | 'args'>): boolean =>
  hasFlag(args, presets[kind].toolFlags)

const hasFlag = (args: readonly string[], flags: readonly string[]): boolean =>
  args.some((arg) => flags.includes(arg.split('=')[0] ?? ''))
