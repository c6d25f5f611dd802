import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { agentClis, type CliKind } from '../../shared/agents/clis.ts'
import type { CliAgent } from '../../shared/agents/schema.ts'
import { getUserHome } from '../../shared/home/home.ts'
import { parseJson } from './answer.ts'
import {
  type CliOutput,
  readClaudeAnswer,
  readCodexAnswer,
  readGeminiAnswer,
  readLlmAnswer,
  readOpencodeAnswer,
} from './cli-output.ts'

/*
 * How to run each agent program without a person: prompt on standard input, machine-readable answer,
 * nothing kept on disk, no tools unless `args` grants them, few retries. The flags were tried with the
 * versions that test/agent-clis installs, and with Claude Code 2.1.332.
 */

type Preset = {
  /** Groups of flags; a group is left out when `args` has one of `unless`. */
  readonly flags: readonly {
    readonly flags: readonly string[]
    readonly unless?: readonly string[]
  }[]
  /** Follows `args`. */
  readonly last?: string
  /** Variables that doorward sets. */
  readonly env?: (grantsTools: boolean) => Readonly<Record<string, string>>
  /** Our own variables that lead to its settings and logins. */
  readonly passed?: readonly string[]
  /** Flags in `args` that give it tools. */
  readonly toolFlags: readonly string[]
  readonly read: (output: CliOutput) => string
  /** How a person logs in, for failures that are about that. */
  readonly login: string
  /** Fills a temporary folder for a program that writes to disk whatever its flags. */
  readonly prepare?: (
    folder: string,
    env: NodeJS.ProcessEnv,
    grantsTools: boolean,
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

/**
 * Makes a home for one run of Gemini CLI in this folder, with a copy of the person's settings and
 * logins: it writes each prompt into a history there, and no flag prevents that.
 */
const prepareGeminiHome = async (
  folder: string,
  env: NodeJS.ProcessEnv,
  grantsTools: boolean,
): Promise<Readonly<Record<string, string>>> => {
  const real = join(env['GEMINI_CLI_HOME'] || getUserHome(env), '.gemini')
  const own = join(folder, 'home', '.gemini')
  await mkdir(own, { recursive: true, mode: 0o700 })
  for (const name of await readdir(real).catch(() => []))
    if (geminiFiles.test(name))
      await copyFile(join(real, name), join(own, name)).catch(() => undefined)
  const settings = await readFile(join(real, 'settings.json'), 'utf8').catch(() => '{}')
  await writeFile(join(own, 'settings.json'), restrictSettings(settings, grantsTools), {
    mode: 0o600,
  })
  return { GEMINI_CLI_HOME: join(folder, 'home') }
}

export const presets: Readonly<Record<CliKind, Preset>> = {
  claude: {
    flags: [
      { flags: ['-p', '--output-format', 'json', '--no-session-persistence'] },
      {
        flags: ['--permission-mode', 'dontAsk'],
        unless: ['--permission-mode', '--dangerously-skip-permissions'],
      },
      { flags: ['--tools', ''], unless: claudeTools },
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
    env: () => ({ CLAUDE_CODE_MAX_RETRIES: '0', CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' }),
    passed: ['CLAUDE_CONFIG_DIR'],
    toolFlags: claudeTools,
    read: readClaudeAnswer,
    login:
      'run claude in a terminal once, or give it env: { ANTHROPIC_API_KEY: env:ANTHROPIC_API_KEY }',
  },
  codex: {
    flags: [
      { flags: ['exec', '--json', '--ephemeral', '--skip-git-repo-check'] },
      { flags: ['-s', 'read-only'], unless: codexTools.filter((flag) => flag !== '--enable') },
      { flags: ['--color', 'never'], unless: ['--color'] },
      // A read-only sandbox can still read your keys and repeat them in its answer.
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
    last: '-',
    passed: ['CODEX_HOME'],
    toolFlags: codexTools,
    read: readCodexAnswer,
    login: 'run: codex login',
  },
  gemini: {
    flags: [
      { flags: ['-o', 'json'] },
      { flags: ['--skip-trust'] },
      { flags: ['--approval-mode', 'plan'], unless: ['-y', '--yolo', '--approval-mode'] },
    ],
    toolFlags: geminiTools,
    read: readGeminiAnswer,
    login: 'run gemini in a terminal once, or give it env: { GEMINI_API_KEY: env:GEMINI_API_KEY }',
    prepare: prepareGeminiHome,
  },
  opencode: {
    flags: [
      { flags: ['run', '--format', 'json'] },
      // Without a title it sends the prompt to the model to get one.
      { flags: ['--title', 'doorward'], unless: ['--title'] },
    ],
    env: (grantsTools) => ({
      OPENCODE_DB: ':memory:',
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      ...(!grantsTools && { OPENCODE_PERMISSION: '{"*":"deny"}' }),
    }),
    passed: ['OPENCODE_CONFIG', 'OPENCODE_CONFIG_DIR'],
    toolFlags: opencodeTools,
    read: readOpencodeAnswer,
    login: 'run: opencode auth login',
  },
  llm: {
    // Without -n it stores every prompt in its database.
    flags: [{ flags: ['prompt', '-n', '--no-stream'] }],
    passed: ['LLM_USER_PATH'],
    toolFlags: ['-T', '--tool', '--functions'],
    read: readLlmAnswer,
    login: 'run: llm keys set openai',
  },
}

/** The argument vector of an agent program. */
export const buildArgv = ({ kind, args = [] }: Pick<CliAgent, 'kind' | 'args'>): string[] => {
  const { flags, last } = presets[kind]
  return [
    agentClis[kind].program,
    ...flags.flatMap((group) => (hasFlag(args, group.unless ?? []) ? [] : group.flags)),
    ...args,
    ...(last === undefined ? [] : [last]),
  ]
}

/** True when `args` gives the agent tools: then doorward restricts none. */
export const grantsTools = ({ kind, args = [] }: Pick<CliAgent, 'kind' | 'args'>): boolean =>
  hasFlag(args, presets[kind].toolFlags)

const hasFlag = (args: readonly string[], flags: readonly string[]): boolean =>
  args.some((arg) => flags.includes(arg.split('=')[0] ?? ''))

/** Settings and logins, no histories. */
const geminiFiles =
  /^(oauth_creds\.json|google_accounts\.json|gemini-credentials\.json|installation_id|\.env|.*oauth.*\.json|GEMINI\.md)$/

/** The person's settings with one attempt, no telemetry, and no tools unless granted. Unreadable settings stay as they are. */
export const restrictSettings = (text: string, grantsTools: boolean): string => {
  const settings = parseJson(removeComments(text))
  if (!isObject(settings)) return text
  const { general, tools } = settings
  return JSON.stringify({
    ...settings,
    general: {
      ...(isObject(general) && general),
      maxAttempts: 1,
      checkpointing: { enabled: false },
    },
    telemetry: { enabled: false },
    ...(!grantsTools && { tools: { ...(isObject(tools) && tools), core: [] }, mcpServers: {} }),
  })
}

/** Matches strings first, so that a URL in one is not taken for a comment. */
const removeComments = (text: string): string =>
  text.replaceAll(
    /("(?:[^"\\]|\\.)*")|\/\/[^\n]*|\/\*[^]*?\*\//g,
    (_, quoted?: string) => quoted ?? '',
  )

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
