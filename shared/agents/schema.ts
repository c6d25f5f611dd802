import { z } from 'zod'
import { parsePath } from '../paths.ts'
import { budgetSchema } from './budget.ts'
import { agentClis, type CliKind } from './clis.ts'
import { limitsSchema } from './limits.ts'
import { isLimited, networkSchema, type NetworkSetting, readMode } from './network.ts'
import { headerNameForm } from '../config/name-forms.ts'
import { duration, environmentName, secureUrl, size } from '../config/values.ts'

/* The kinds of agent in agents.yaml, and their settings. */

const agentCommon = {
  timeout: duration(
    '10m',
    'Of the whole run, with a workspace from its checkout to the commit. Then SIGTERM, and 5 s later SIGKILL, to the whole process group.',
  ),
  concurrency: z
    .int()
    .min(1)
    .max(64)
    .default(1)
    .describe('Parallel runs of this agent. Default 1.'),
  output_limit: size('1mb', 'A longer answer is cut and marked.'),
  budget: budgetSchema
    .optional()
    .describe('What its runs may cost: a map of run, day or month. Default: no limit.'),
}

/** `env:` must be followed by a name. */
const isVariableOrValue = (value: string): boolean =>
  !value.startsWith('env:') || environmentName.safeParse(value.slice('env:'.length)).success
const notVariable = 'env: is not followed by the name of an environment variable'

const eventFile = z
  .boolean()
  .optional()
  .describe(
    'With true, the payload is in a file (0600) while the agent runs: DOORWARD_EVENT_FILE, or eventFile in the request. Default false.',
  )

const programCommon = {
  cwd: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Working folder; ~ is allowed, a relative path is under home. Default: an empty folder, removed afterwards.',
    ),
  env: z
    .record(environmentName, z.string().refine(isVariableOrValue, notVariable))
    .optional()
    .describe(
      'Added to the clean environment: a value, env:NAME for a variable of doorward, or oauth:<provider> (oauth:github@work for an account) for a fresh access token.',
    ),
  permissions: z
    .record(
      z.string().regex(/^[a-z_]{1,50}$/, 'not a permission of GitHub'),
      z.enum(['read', 'write']),
    )
    .optional()
    .describe(
      "What the token of a bot in env may do in the rule's repository, such as contents: write. Default contents: read.",
    ),
  proxy_env: z
    .boolean()
    .optional()
    .describe(
      'Pass on HTTP_PROXY, HTTPS_PROXY, NO_PROXY, NODE_EXTRA_CA_CERTS and SSL_CERT_FILE, where they are set. Default true.',
    ),
  sandbox: z
    .enum(['auto', 'required', 'off'])
    .optional()
    .describe(
      'Whether it can reach only its folder and its own login. auto: with a workspace, tools or a limited network, where the system has a sandbox; required: always, or it does not run. Default auto.',
    ),
  network: networkSchema,
  limits: limitsSchema.optional(),
}

/** The level of tools that `tools` names. */
const tools = z
  .enum(['none', 'read', 'write'])
  .optional()
  .describe(
    'What it may do in its folder: nothing, read files, or change them too. Flags in args override it. Default none.',
  )

type Confined = { readonly sandbox?: string | undefined; readonly network?: NetworkSetting }
const networkNeedsSandbox = {
  path: ['network'],
  error: ({ input }: { input?: unknown }) => {
    const mode = readMode((input as Confined).network)
    const { network } = input as Confined
    const words = typeof network === 'object' ? 'network: {allow: …}' : `network: ${mode}`
    return `${words} needs the sandbox: leave out sandbox: off`
  },
}
const canLimitNetwork = ({ sandbox, network }: Confined): boolean =>
  sandbox !== 'off' || !isLimited(network)

/** A program whose flags and output format doorward knows. */
const cliAgent = <Kind extends CliKind>(kind: Kind) => {
  const { name, ownFlags } = agentClis[kind]
  return z
    .strictObject({
      kind: z.literal(kind).describe(`Runs ${name} without tools and reads its answer.`),
      args: z
        .array(z.string())
        .refine(
          (args) => !args.some((arg) => ownFlags.includes(arg.split('=')[0] ?? '')),
          `${ownFlags.join(' and ')} must be left out: doorward sets the output format`,
        )
        .optional()
        .describe('Added flags, such as a model or allowed tools.'),
      tools: tools.refine((level) => kind !== 'llm' || level === undefined || level === 'none', {
        error: 'llm has no tools of its own: name some in args, with -T',
      }),
      ...programCommon,
      ...agentCommon,
    })
    .refine(canLimitNetwork, networkNeedsSandbox)
    .describe(`Runs ${name}, without tools unless tools or args grant them.`)
}

/** Headers that doorward sets. */
const reservedHeaders = [
  'host',
  'content-length',
  'content-type',
  'connection',
  'transfer-encoding',
]

const headerName = z
  .string()
  .regex(headerNameForm, 'not a header name')
  .refine((name) => !reservedHeaders.includes(name.toLowerCase()), 'doorward sets this header')

const isPath = (text: string): boolean => {
  try {
    return parsePath(text).length > 0
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
      event_file: eventFile,
      ...programCommon,
      ...agentCommon,
    })
    .refine(canLimitNetwork, networkNeedsSandbox)
    .refine(({ network }) => network !== 'model', {
      path: ['network'],
      error:
        'doorward does not know the model of this program: network: { allow: [hosts] } names what it reaches',
    })
    .describe('Runs a program; its standard output is the answer.'),
  cliAgent('claude'),
  cliAgent('codex'),
  cliAgent('gemini'),
  cliAgent('opencode'),
  cliAgent('llm'),
  z
    .strictObject({
      kind: z.literal('openai').describe('Asks a model with the OpenAI chat API.'),
      base_url: secureUrl.describe(
        'The URL before /chat/completions, for example http://127.0.0.1:11434/v1.',
      ),
      model: z.string().min(1).describe('Name of the model.'),
      api_key_env: environmentName
        .optional()
        .describe('Environment variable with the API key. Default: no key is sent.'),
      system: z.string().optional().describe('System message before the prompt.'),
      ...agentCommon,
    })
    .describe('Asks a model with the OpenAI chat API: OpenAI, Ollama, LM Studio, vLLM.'),
  z
    .strictObject({
      kind: z.literal('http').describe('Posts {prompt, webhook, eventId, deliveryId} as JSON.'),
      url: secureUrl.describe('The URL; redirects are not followed.'),
      headers: z
        .record(
          headerName,
          z
            .string()
            .regex(/^[\t\x20-\x7e]*$/, 'not the value of a header')
            .refine(isVariableOrValue, notVariable),
        )
        .optional()
        .describe('Added headers: a value, or env:NAME for a variable of doorward.'),
      event_file: eventFile,
      answer_path: z
        .string()
        .refine(isPath, 'not a path of names with dots between them')
        .optional()
        .describe('Dot path of the answer in a JSON body. Default: the body is the answer.'),
      usage_path: z
        .string()
        .refine(isPath, 'not a path of names with dots between them')
        .optional()
        .describe(
          'Dot path of an object with inputTokens, outputTokens, cachedTokens, costUsd, model or turns. Default: what a run uses is not known.',
        ),
      ...agentCommon,
    })
    .describe('Posts the prompt to a URL; the response is the answer.'),
])

export type Agent = z.output<typeof agentSchema>
export type CommandAgent = Extract<Agent, { kind: 'command' }>
export type CliAgent = Extract<Agent, { kind: CliKind }>
export type OpenAiAgent = Extract<Agent, { kind: 'openai' }>
export type HttpAgent = Extract<Agent, { kind: 'http' }>

/** Finds what allows a program to change files or run programs without asking. */
type Grant = (args: readonly string[], env: Readonly<Record<string, string>>) => string | undefined

/** One of these flags, with or without a value. */
const flag =
  (...flags: readonly string[]): Grant =>
  (args) =>
    args.find((arg) => flags.includes(arg.split('=')[0] ?? ''))

/** One of these flags with a matching value, as `--flag value`, `--flag=value` or `-fvalue`. */
const flagWithValue =
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

/** The same without its value, which may hold secrets of a server. */
const brief =
  (grant: Grant): Grant =>
  (args, env) =>
    grant(args, env)?.split(/[={]/)[0]?.trimEnd()

const variable =
  (name: string, fits: RegExp): Grant =>
  (_, env) =>
    fits.test(env[name] ?? '') ? `${name}=${env[name]}` : undefined

/** Flags from the help of the programs. Servers, hooks and plugins run programs and bring tools. */
const grants: Readonly<Record<string, readonly Grant[]>> = {
  claude: [
    flag('--dangerously-skip-permissions'),
    flagWithValue(['--permission-mode'], /^(bypassPermissions|acceptEdits|auto)$/),
    flagWithValue(
      ['--allowedTools', '--allowed-tools'],
      /\b(Bash|PowerShell|Edit|MultiEdit|Write|NotebookEdit)\b/,
    ),
    brief(flag('--mcp-config', '--plugin-dir', '--plugin-url')),
    flagWithValue(['--setting-sources'], /\w/),
    brief(flagWithValue(['--settings'], /^[^{]|hooks|plugin|mcp/i)),
  ],
  codex: [
    flag('--dangerously-bypass-approvals-and-sandbox', '--yolo', '--approve-for-me', '--full-auto'),
    flagWithValue(['-s', '--sandbox'], /^(danger-full-access|workspace-write)$/),
    brief(flagWithValue(['-c', '--config'], /^(mcp_servers|hooks|notify|plugins|marketplaces)\b/)),
    flagWithValue(['-c', '--config'], /^features\.(apps|hooks|plugins)\s*=\s*true/),
    flagWithValue(['--enable'], /^(apps|hooks|plugins)$/),
    flagWithValue(['-c', '--config'], /^sandbox_mode\s*=\s*"?(danger-full-access|workspace-write)/),
  ],
  gemini: [
    flag('-y', '--yolo'),
    flagWithValue(['--approval-mode'], /^(yolo|auto_edit)$/),
    flagWithValue(['--allowed-tools'], /shell|write|replace|edit/i),
  ],
  // A user-defined agent has its own permissions, and doorward's, which deny everything, are not set.
  opencode: [
    flag('--auto', '--agent'),
    variable('OPENCODE_PERMISSION', /allow/),
    brief(variable('OPENCODE_CONFIG_CONTENT', /"(mcp|plugin|tools|permission|agent)"/)),
  ],
  llm: [flag('-T', '--tool', '--functions')],
  'cursor-agent': [flag('-f', '--force')],
  aider: [flag('--yes-always', '--yes')],
  goose: [variable('GOOSE_MODE', /^auto$/)],
}

/**
 * The flag or variable that allows this agent to change files or run programs on its own, or undefined.
 * Finds known programs also in the words of an agent of kind `command`.
 */
export const describePermission = (agent: Agent): string | undefined => {
  switch (agent.kind) {
    case 'command': {
      const names = agent.command.map(toProgramName)
      const at = names.findIndex((name) => Object.hasOwn(grants, name))
      return at === -1
        ? undefined
        : findGrant(names[at] ?? '', agent.command.slice(at + 1), agent.env ?? {})
    }
    case 'echo':
    case 'openai':
    case 'http':
      return undefined
    default:
      return findGrant(agent.kind, agent.args ?? [], agent.env ?? {})
  }
}

const findGrant = (
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
const toProgramName = (word: string): string => {
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
