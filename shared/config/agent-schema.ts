import { z } from 'zod'
import { parseDotPath } from '../templates.ts'
import { agentClis, type CliKind } from './agent-clis.ts'
import { headerNameForm } from './name-forms.ts'
import { duration, environmentName, secureUrl, size } from './values.ts'

/*
 * The kinds of agent that agents.yaml can hold, and what each of them takes.
 */

const agentCommon = {
  timeout: duration('10m', 'Then SIGTERM, and 5 s later SIGKILL, to the whole process group.'),
  concurrency: z.int().min(1).max(64).default(1).describe('Runs at once of this agent. Default 1.'),
  output_limit: size('1mb', 'A longer answer is cut and marked.'),
}

/** A value that begins with `env:` names a variable; one without a name would be nothing, silently. */
const namesVariable = (value: string): boolean =>
  !value.startsWith('env:') || environmentName.safeParse(value.slice('env:'.length)).success
const notVariable = 'env: is not followed by the name of an environment variable'

const programCommon = {
  cwd: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Working folder, ~ allowed, a relative one under home. Default: an empty folder, removed afterwards.',
    ),
  env: z
    .record(environmentName, z.string().refine(namesVariable, notVariable))
    .optional()
    .describe(
      'Added to the clean environment: a value, env:NAME for one of ours, or oauth:<provider> for a fresh access token.',
    ),
}

/** An agent program whose flags and output doorward knows. */
const cliAgent = <Kind extends CliKind>(kind: Kind) => {
  const { name, ownFlags } = agentClis[kind]
  return z
    .strictObject({
      kind: z.literal(kind).describe(`Runs ${name} without tools; what it answers is read.`),
      args: z
        .array(z.string())
        .refine(
          (args) => !args.some((arg) => ownFlags.includes(arg.split('=')[0] ?? '')),
          `${ownFlags.join(' and ')} must be left out: doorward sets what it reads`,
        )
        .optional()
        .describe('Flags added to its own: a model, tools that it may use.'),
      ...programCommon,
      ...agentCommon,
    })
    .describe(`Runs ${name} by itself, with no tools unless args grants them.`)
}

/** Headers that say how the request itself is built. */
const builtHeaders = ['host', 'content-length', 'content-type', 'connection', 'transfer-encoding']

const headerName = z
  .string()
  .regex(headerNameForm, 'not a header name')
  .refine((name) => !builtHeaders.includes(name.toLowerCase()), 'this header is set by itself')

const isDotPath = (text: string): boolean => {
  try {
    return parseDotPath(text).length > 0
  } catch {
    return false
  }
}

/** One agent of agents.yaml, by its kind. */
export const agentSchema = z.discriminatedUnion('kind', [
  z
    .strictObject({
      kind: z.literal('echo').describe('Answers with the prompt.'),
      ...agentCommon,
    })
    .describe('Answers with the prompt; needs nothing.'),
  z
    .strictObject({
      kind: z.literal('command').describe('Runs a program; the prompt is its standard input.'),
      command: z
        .array(z.string())
        .min(1)
        .refine(([program]) => program !== '', 'the program has no name')
        .describe('Program and arguments; never a shell.'),
      ...programCommon,
      ...agentCommon,
    })
    .describe('Runs a program; its standard output is the answer.'),
  cliAgent('claude'),
  cliAgent('codex'),
  cliAgent('gemini'),
  cliAgent('opencode'),
  cliAgent('llm'),
  z
    .strictObject({
      kind: z.literal('openai').describe('Asks a model that speaks the OpenAI chat API.'),
      base_url: secureUrl.describe(
        'What stands before /chat/completions, for example http://127.0.0.1:11434/v1.',
      ),
      model: z.string().min(1).describe('Name of the model.'),
      api_key_env: environmentName
        .optional()
        .describe('Environment variable with the API key. Default: no key is sent.'),
      system: z.string().optional().describe('System message before the prompt.'),
      ...agentCommon,
    })
    .describe('Asks a model that speaks the OpenAI chat API: OpenAI, Ollama, LM Studio, vLLM.'),
  z
    .strictObject({
      kind: z.literal('http').describe('Posts {prompt, webhook, eventId} as JSON.'),
      url: secureUrl.describe('Where to; redirects are not followed.'),
      headers: z
        .record(
          headerName,
          z
            .string()
            .regex(/^[\t\x20-\x7e]*$/, 'not the value of a header')
            .refine(namesVariable, notVariable),
        )
        .optional()
        .describe('Added headers: a value, or env:NAME for one of our variables.'),
      answer_path: z
        .string()
        .refine(isDotPath, 'not a path of names with dots between them')
        .optional()
        .describe('Dot path of the answer in a JSON body. Default: the body is the answer.'),
      ...agentCommon,
    })
    .describe('Posts the prompt to a URL; what it answers is the answer.'),
])

export type Agent = z.output<typeof agentSchema>
export type CommandAgent = Extract<Agent, { kind: 'command' }>
export type CliAgent = Extract<Agent, { kind: CliKind }>
export type OpenAiAgent = Extract<Agent, { kind: 'openai' }>
export type HttpAgent = Extract<Agent, { kind: 'http' }>

/*
 * Whether an agent may change files or run programs without a person being asked. Pure: its entry in,
 * the flag that says so out.
 */

type Grant = (args: readonly string[], env: Readonly<Record<string, string>>) => string | undefined

/** The first of these flags that is there, with or without a value. */
const flag =
  (...flags: readonly string[]): Grant =>
  (args) =>
    args.find((arg) => flags.includes(arg.split('=')[0] ?? ''))

/** One of these flags with a value that fits, as `--flag value`, `--flag=value` or `-fvalue`. */
const valued =
  (flags: readonly string[], fits: RegExp): Grant =>
  (args) => {
    for (const [index, arg] of args.entries()) {
      const name = flags.find((known) => arg === known || arg.startsWith(`${known}=`))
      const short = flags.find((known) => /^-\w$/.test(known) && arg.startsWith(known))
      if (name === undefined && short === undefined) continue
      const value = name === arg ? args[index + 1] : arg.slice((name ?? short ?? '').length)
      if (value !== undefined && fits.test(value.replace(/^=/, '')))
        return name === arg ? `${arg} ${value}` : arg
    }
    return undefined
  }

const variable =
  (name: string, fits: RegExp): Grant =>
  (_, env) =>
    fits.test(env[name] ?? '') ? `${name}=${env[name]}` : undefined

/** Flags from the programs' own help; see also `shared/agent-clis.ts`. */
const grants: Readonly<Record<string, readonly Grant[]>> = {
  claude: [
    flag('--dangerously-skip-permissions'),
    valued(['--permission-mode'], /^(bypassPermissions|acceptEdits|auto)$/),
    valued(
      ['--allowedTools', '--allowed-tools'],
      /\b(Bash|PowerShell|Edit|MultiEdit|Write|NotebookEdit)\b/,
    ),
  ],
  codex: [
    flag('--dangerously-bypass-approvals-and-sandbox', '--yolo', '--approve-for-me', '--full-auto'),
    valued(['-s', '--sandbox'], /^(danger-full-access|workspace-write)$/),
    valued(['-c', '--config'], /^sandbox_mode\s*=\s*"?(danger-full-access|workspace-write)/),
  ],
  gemini: [
    flag('-y', '--yolo'),
    valued(['--approval-mode'], /^(yolo|auto_edit)$/),
    valued(['--allowed-tools'], /shell|write|replace|edit/i),
  ],
  // An agent of the person's own has permissions of its own; ours, which deny all, are left out for it.
  opencode: [flag('--auto', '--agent'), variable('OPENCODE_PERMISSION', /allow/)],
  llm: [flag('-T', '--tool', '--functions')],
  'cursor-agent': [flag('-f', '--force')],
  aider: [flag('--yes-always', '--yes')],
  goose: [variable('GOOSE_MODE', /^auto$/)],
}

/**
 * The flag (or variable) by which this agent may change files or run programs on its own, or undefined.
 * An agent of kind `command` is looked through for the programs that are known here.
 */
export const describePermission = (agent: Agent): string | undefined => {
  switch (agent.kind) {
    case 'claude':
    case 'codex':
    case 'gemini':
    case 'opencode':
    case 'llm':
      return granted(agent.kind, agent.args ?? [], agent.env ?? {})
    case 'command': {
      const names = agent.command.map(programName)
      const at = names.findIndex((name) => Object.hasOwn(grants, name))
      return at === -1
        ? undefined
        : granted(names[at] ?? '', agent.command.slice(at + 1), agent.env ?? {})
    }
    case 'echo':
    case 'openai':
    case 'http':
      return undefined
  }
}

const granted = (
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): string | undefined => {
  for (const grant of grants[program] ?? []) {
    const found = grant(args, env)
    if (found !== undefined) return found
  }
  return undefined
}

/** `/usr/bin/claude`, `claude.exe` and `@anthropic-ai/claude-code@2` are claude. */
const programName = (word: string): string => {
  const name = (
    word
      .replace(/@[\d.^~a-z-]*$/, '')
      .split(/[\\/]/)
      .at(-1) ?? ''
  ).replace(/\.(exe|cmd)$/i, '')
  return (
    { 'claude-code': 'claude', 'gemini-cli': 'gemini', 'opencode-ai': 'opencode' }[name] ?? name
  )
}
