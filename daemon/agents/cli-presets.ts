import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { agentClis, type CliKind } from '../../shared/config/agent-clis.ts'
import type { CliAgent } from '../../shared/config/agent-schema.ts'
import { getUserHome } from '../../shared/home/home.ts'

/*
 * How the answer is found in what each agent program prints, and how its failures are told. Pure:
 * output in, answer out.
 */

/** What a program printed before it ended by itself. */
export type Printed = {
  readonly stdout: string
  readonly stderr: string
  readonly exitCode: number | null
}

/** Why there is no answer, in the program's own words; they may repeat the prompt. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer'
}

/** `claude -p --output-format json`: one result document, after notices at times; `subtype` says success even of a failure. */
export const claudeAnswer = ({ stdout, exitCode }: Printed): string => {
  const document = parseJson(stdout) ?? jsonLines(stdout)
  // With --verbose it is a list, of which the result is the last.
  const result = [document].flat().findLast((item) => textAt(item, 'type') === 'result')
  if (result === undefined) throw new NoAnswer('')
  const text = textAt(result, 'result')
  if (text === undefined || valueIn(result, 'is_error') === true || exitCode !== 0)
    throw new NoAnswer(text ?? claudeErrors(result))
  // With --json-schema the answer stands there, and the text is empty.
  const structured = valueIn(result, 'structured_output') ?? undefined
  return text === '' && structured !== undefined ? JSON.stringify(structured) : text
}

/** A failure without a result has `errors`, a list of texts, beside the subtype that names its kind. */
const claudeErrors = (result: unknown): string => {
  const errors = [valueIn(result, 'errors')].flat().filter((error) => typeof error === 'string')
  return [textAt(result, 'subtype'), errors.join('; ')].filter(Boolean).join(': ')
}

/** `codex exec --json`: JSON lines; the last message of the agent is the answer. */
export const codexAnswer = ({ stdout, exitCode }: Printed): string => {
  const lines = jsonLines(stdout)
  const failed = lines.findLast((line) => textAt(line, 'type') === 'turn.failed')
  const lastError = lines.findLast((line) => textAt(line, 'type') === 'error')
  if (failed !== undefined || exitCode !== 0)
    throw new NoAnswer(
      textAt(valueIn(failed, 'error'), 'message') ?? textAt(lastError, 'message') ?? '',
    )
  const answer = lines
    .filter((line) => textAt(line, 'type') === 'item.completed')
    .map((line) => valueIn(line, 'item'))
    .findLast((item) => textAt(item, 'type') === 'agent_message')
  const text = textAt(answer, 'text')
  if (text === undefined) throw new NoAnswer('')
  return text
}

/** `opencode run --format json`: JSON lines; the texts of the last message are the answer. */
export const opencodeAnswer = ({ stdout, exitCode }: Printed): string => {
  const lines = jsonLines(stdout)
  const failed = lines.findLast((line) => textAt(line, 'type') === 'error')
  if (failed !== undefined || exitCode !== 0) {
    const error = valueIn(failed, 'error')
    throw new NoAnswer(textAt(valueIn(error, 'data'), 'message') ?? textAt(error, 'name') ?? '')
  }
  const parts = lines
    .filter((line) => textAt(line, 'type') === 'text')
    .map((line) => valueIn(line, 'part'))
  const last = textAt(parts.at(-1), 'messageID')
  if (parts.length === 0) throw new NoAnswer('')
  return parts
    .filter((part) => textAt(part, 'messageID') === last)
    .map((part) => textAt(part, 'text') ?? '')
    .join('')
}

/** Exit codes of https://geminicli.com/docs/cli/headless; others are an HTTP status modulo 256. */
const geminiCodes: Readonly<Record<number, string>> = {
  41: 'it is not logged in',
  42: 'it did not take its input',
  44: 'its sandbox does not work',
  52: 'its settings cannot be used',
  53: 'it used up its turns',
  145: 'the model refused its login (401)',
  147: 'the model refused its login (403)',
  173: 'too many requests (429)',
  244: 'the model failed (500)',
  247: 'the model is overloaded (503)',
}

/** `gemini -o json`: one document; a failure is one on standard error, after warnings. */
export const geminiAnswer = ({ stdout, stderr, exitCode }: Printed): string => {
  const document = documentIn(stdout) ?? documentIn(stderr)
  const error = valueIn(document, 'error')
  if (exitCode !== 0 || (error !== undefined && error !== null)) {
    const words = exitCode === null ? undefined : geminiCodes[exitCode]
    throw new NoAnswer([words, textAt(error, 'message')].filter(Boolean).join(': '))
  }
  const text = textAt(document, 'response')
  if (text === undefined) throw new NoAnswer('')
  return text
}

/** The document that a text is, or that it ends with after notices. */
const documentIn = (text: string): unknown =>
  parseJson(text) ?? parseJson(text.slice(text.lastIndexOf('\n{') + 1))

/** `llm prompt`: the answer itself. */
export const llmAnswer = ({ stdout, exitCode }: Printed): string => {
  if (exitCode !== 0) throw new NoAnswer('')
  return stdout.replace(/\n$/, '')
}

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The lines that are JSON; a last one that was cut off is none. */
const jsonLines = (text: string): unknown[] =>
  text.split('\n').flatMap((line) => (line.startsWith('{') ? (parseJson(line) ?? []) : []))

const valueIn = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined

const textAt = (value: unknown, name: string): string | undefined => {
  const text = valueIn(value, name)
  return typeof text === 'string' ? text : undefined
}

/** Settings and logins; not its histories. */
const copied =
  /^(oauth_creds\.json|google_accounts\.json|gemini-credentials\.json|installation_id|\.env|.*oauth.*\.json|GEMINI\.md)$/

/**
 * Makes a home for one run of Gemini CLI in this folder, with a copy of the settings and logins of the
 * real one: it writes each prompt into a history there, and no flag keeps it from that. The copy of the
 * settings bounds its retries, turns telemetry off, and without granted tools offers it none.
 */
const geminiHome = async (
  folder: string,
  env: NodeJS.ProcessEnv,
  grantsTools: boolean,
): Promise<Readonly<Record<string, string>>> => {
  const real = join(env['GEMINI_CLI_HOME'] || getUserHome(env), '.gemini')
  const own = join(folder, 'home', '.gemini')
  await mkdir(own, { recursive: true, mode: 0o700 })
  for (const name of await readdir(real).catch(() => []))
    if (copied.test(name)) await copyFile(join(real, name), join(own, name)).catch(() => undefined)
  const settings = await readFile(join(real, 'settings.json'), 'utf8').catch(() => '{}')
  await writeFile(join(own, 'settings.json'), quietSettings(settings, grantsTools), { mode: 0o600 })
  return { GEMINI_CLI_HOME: join(folder, 'home') }
}

/** The person's settings (JSON with comments) with ours over them; such that cannot be read are left as they are. */
export const quietSettings = (text: string, grantsTools: boolean): string => {
  const settings = readSettings(text)
  if (settings === undefined) return text
  return JSON.stringify({
    ...settings,
    general: { ...mapIn(settings, 'general'), maxAttempts: 1, checkpointing: { enabled: false } },
    telemetry: { enabled: false },
    ...(!grantsTools && { tools: { ...mapIn(settings, 'tools'), core: [] }, mcpServers: {} }),
  })
}

const readSettings = (text: string): Record<string, unknown> | undefined => {
  try {
    const value: unknown = JSON.parse(withoutComments(text))
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}

/** Strings are matched first, so that a URL in one is no comment. */
const withoutComments = (text: string): string =>
  text.replaceAll(
    /("(?:[^"\\]|\\.)*")|\/\/[^\n]*|\/\*[^]*?\*\//g,
    (_, quoted?: string) => quoted ?? '',
  )

const mapIn = (settings: Readonly<Record<string, unknown>>, name: string): object => {
  const value = settings[name]
  return typeof value === 'object' && value !== null ? value : {}
}

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
export const buildArgv = ({ kind, args = [] }: Pick<CliAgent, 'kind' | 'args'>): string[] => {
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
