import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { parseJson } from '../util/payload-path.ts'
import { join } from 'node:path'
import { agentClis, type CliKind } from '../../shared/agents/clis.ts'
import { getToolLevel, hasFlag, type ToolLevel } from '../../shared/agents/tools.ts'
import { getUserHome } from '../../shared/home/home.ts'
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
  /** Follows `args`. */
  readonly last?: string
  /** Variables that doorward sets. */
  readonly env?: (level: ToolLevel) => Readonly<Record<string, string>>
  /** Our own variables that lead to its settings and logins. */
  readonly passed?: readonly string[]
  readonly read: (output: CliOutput) => string
  /** How a person logs in, for failures that are about that. */
  readonly login: string
  /** Fills a temporary folder for a program that writes to disk whatever its flags. */
  readonly prepare?: (
    folder: string,
    env: NodeJS.ProcessEnv,
    level: ToolLevel,
  ) => Promise<Readonly<Record<string, string>>>
}

/** Levels at which no file may be changed. */
const unlessWrite = ['none', 'read', 'args'] as const

const offInCodex = (...features: readonly string[]): string[] =>
  features.flatMap((feature) => ['-c', `features.${feature}=false`])

/**
 * Makes a home for one run of Gemini CLI in this folder, with a copy of the person's settings and
 * logins: it writes each prompt into a history there, and no flag prevents that.
 */
const prepareGeminiHome = async (
  folder: string,
  env: NodeJS.ProcessEnv,
  level: ToolLevel,
): Promise<Readonly<Record<string, string>>> => {
  const real = join(env['GEMINI_CLI_HOME'] || getUserHome(env), '.gemini')
  const own = join(folder, 'home', '.gemini')
  await mkdir(own, { recursive: true, mode: 0o700 })
  for (const name of await readdir(real).catch(() => []))
    if (geminiFiles.test(name))
      await copyFile(join(real, name), join(own, name)).catch(() => undefined)
  const settings = await readFile(join(real, 'settings.json'), 'utf8').catch(() => '{}')
  await writeFile(join(own, 'settings.json'), restrictSettings(settings, level), {
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
    env: () => ({ CLAUDE_CODE_MAX_RETRIES: '0', CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' }),
    passed: ['CLAUDE_CONFIG_DIR'],
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
    read: readCodexAnswer,
    login: 'run: codex login',
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
    env: (level) => ({
      OPENCODE_DB: ':memory:',
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      ...(level !== 'args' && { OPENCODE_PERMISSION: JSON.stringify(opencodePermissions(level)) }),
    }),
    passed: ['OPENCODE_CONFIG', 'OPENCODE_CONFIG_DIR'],
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

type FlagSource = Parameters<typeof getToolLevel>[0]

/** The argument vector of an agent program. */
export const buildArgv = (agent: FlagSource): string[] => {
  const { kind, args = [] } = agent
  const { flags, last } = presets[kind]
  const level = getToolLevel(agent)
  return [
    agentClis[kind].program,
    ...flags.flatMap(({ flags: group, at, unless = [] }) =>
      (at && !at.includes(level)) || hasFlag(args, unless) ? [] : group,
    ),
    ...args,
    ...(last === undefined ? [] : [last]),
  ]
}

const geminiReads = ['list_directory', 'read_file', 'read_many_files', 'glob', 'grep_search']
/** The tools of Gemini CLI at each level. */
const geminiTools = {
  none: [],
  read: geminiReads,
  write: [...geminiReads, 'replace', 'write_file'],
} as const

/** Settings and logins, no histories. */
const geminiFiles =
  /^(oauth_creds\.json|google_accounts\.json|gemini-credentials\.json|installation_id|\.env|.*oauth.*\.json|GEMINI\.md)$/

/** The person's settings with one attempt, no telemetry, and no tools unless granted. Unreadable settings stay as they are. */
export const restrictSettings = (text: string, level: ToolLevel): string => {
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
    ...(level !== 'args' && {
      tools: { ...(isObject(tools) && tools), core: geminiTools[level] },
      mcpServers: {},
    }),
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
