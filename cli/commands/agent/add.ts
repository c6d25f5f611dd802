import { agentClis, type CliKind, cliKinds, isCliKind } from '../../../shared/agents/clis.ts'
import { agentSchema } from '../../../shared/agents/schema.ts'
import { findMissingProgram } from '../../../shared/agents/detect.ts'
import { listSecrets } from '../../../shared/config/environment.ts'
import { isForModel } from '../../../shared/config/rule.ts'
import { agentName } from '../../../shared/config/schema.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { didYouMean } from '../../../shared/text.ts'
import { addEntry, printEntry, yamlOneOrList, yamlText } from '../../config-edit/add-entry.ts'
import { withConfigLock } from '../../../shared/home/lock.ts'
import { type OpenConfig, openConfig } from '../../config-edit/open-config.ts'
import type { Context } from '../../context.ts'
import { freePath } from '../../daemon-client/webhooks.ts'
import { tableLines } from '../../terminal/table.ts'
import { reloadIfRunning } from '../daemon/reload.ts'

/**
 * Adds an agent to `agents.yaml` and prints what it still needs. On any error nothing is written.
 * Throws `usage`, `config-invalid`, `home-unusable`.
 */
export const addAgent = async (
  context: Context,
  [givenKind = '', givenName, ...more]: readonly string[],
  options: AgentAddOptions,
): Promise<void> => {
  const { home, terminal } = context
  if (more.length > 0)
    throw new DoorwardError('usage', `what is ${more.join(' ')}?`, {
      hint: 'put -- before flags of the agent program, or the words of a command',
    })
  const kind = parseKind(givenKind)
  const name = givenName ?? kind
  const [unfit] = agentName.safeParse(name).error?.issues ?? []
  if (unfit) throw new DoorwardError('usage', `${JSON.stringify(name)} is ${unfit.message}`)
  const entry = agentEntry(newAgent(kind, name, options))
  if (options.print) {
    printEntry(terminal, { name }, entry)
    return
  }
  const { open, file, added } = await withConfigLock(home, async () => {
    const opened = await openConfig(home)
    return { open: opened, ...(await writeEntry(opened, kind, name, entry)) }
  })
  const taken = await reloadIfRunning(context)

  const agent = agentSchema.parse(entry.value)
  const missing = await findMissingProgram(agent, open.env)
  const unset = [options.apiKeyEnv ?? []]
    .flat()
    .filter((variable) => listSecrets([variable], open.env).length === 0)
  if (terminal.json) {
    terminal.printJson({
      name,
      kind,
      file: file.path,
      line: added.line,
      ...(missing && { missing }),
      unset,
      reloaded: taken !== undefined,
    })
    return
  }
  const rows = [
    ['added', `${file.path}:${added.line}`],
    ['agent', `${name} (${kind})`],
  ]
  for (const line of tableLines(rows)) terminal.print(line)
  taken?.tell()
  if (missing)
    terminal.say(`${missing.program} is not on PATH; install it with: ${missing.install}`)
  for (const variable of unset) terminal.say(`put ${variable}=... into ${home.env}`)
  const preset = isForModel(kind) ? 'github-review' : 'github'
  const usual = `/webhook/${preset}`
  const path = freePath(usual, open.config)
  terminal.say(
    `next:\n  doorward webhook add ${preset} --agent ${name}${path === usual ? '' : ` --path ${path}`}`,
  )
}

/**
 * With an agent of this name where the name, or the kind that is given for it, is that of an agent program:
 * `--agent claude`. Throws `usage` where the program is not installed.
 */
export const withAgentOfName = async (
  open: OpenConfig,
  name: string | undefined,
  kind = name,
): Promise<OpenConfig> => {
  if (name === undefined || kind === undefined || open.config.agents.has(name)) return open
  if (!isCliKind(kind)) return open
  const entry = agentEntry(newAgent(kind, name, {}))
  const missing = await findMissingProgram(agentSchema.parse(entry.value), open.env)
  if (missing)
    throw new DoorwardError('usage', `there is no agent ${name}, and no program ${kind} on PATH`, {
      hint: `${missing.install}, or --agent with another: ${[...open.config.agents.keys()].join(', ')}`,
    })
  return open.with('agents', addToFile(open, name, entry).text)
}

const addToFile = (
  open: OpenConfig,
  name: string,
  { lines, value }: ReturnType<typeof agentEntry>,
) => {
  const { text, value: before } = open.file('agents')
  const { agents } = (before ?? {}) as { agents?: Record<string, unknown> | null }
  return addEntry(text, 'agents', { lines, expected: { ...agents, [name]: value } })
}

const writeEntry = async (
  open: OpenConfig,
  kind: string,
  name: string,
  entry: ReturnType<typeof agentEntry>,
) => {
  const file = open.file('agents')
  if (open.config.agents.has(name)) {
    const { line } = file.problemAt(['agents', name], '')
    throw new DoorwardError('usage', `an agent ${name} already exists at ${file.path}:${line}`, {
      hint: `doorward agent add ${kind} NAME adds another; doorward config edit agents changes that one`,
    })
  }
  const added = addToFile(open, name, entry)
  open.check('agents', added.text)
  await open.write('agents', added.text)
  return { file, added }
}

export type AgentAddOptions = {
  readonly model?: string
  readonly baseUrl?: string
  readonly apiKeyEnv?: string
  readonly url?: string
  readonly answerPath?: string
  readonly cwd?: string
  readonly env?: readonly string[]
  readonly timeout?: string
  readonly print?: boolean
  /** Words after `--`: flags of an agent program, or the whole command. */
  readonly afterDashes?: readonly string[] | undefined
}

export const agentKinds = [...cliKinds, 'openai', 'http', 'command', 'echo'] as const
type Kind = (typeof agentKinds)[number]

/** Parses a kind of agent. Throws `usage` with the nearest. */
export const parseKind = (given: string): Kind => {
  const kind = agentKinds.find((known) => known === given)
  if (kind) return kind
  throw new DoorwardError('usage', `there is no kind of agent "${given}"`, {
    hint: didYouMean(given, agentKinds) ?? `one of ${agentKinds.join(', ')}`,
  })
}

const comments: Readonly<Record<Exclude<Kind, keyof typeof agentClis>, string>> = {
  openai: 'A model that speaks the OpenAI chat API.',
  http: 'Gets {prompt, webhook, eventId} as JSON; what it answers is the answer.',
  command: 'The prompt is its standard input, its standard output is the answer. No shell.',
  echo: 'Answers with the prompt.',
}

/** Builds an agent from these options. Throws `usage` for options that its kind does not have. */
export const newAgent = (kind: Kind, name: string, options: AgentAddOptions): NewAgent => {
  refuseForeign(kind, options)
  const rest = options.afterDashes ?? []
  const common = {
    cwd: options.cwd,
    env: options.env && parseVariables(options.env),
    timeout: options.timeout,
  }
  const own = isCliKind(kind)
    ? { args: [...modelArgs(kind, options.model), ...rest] }
    : {
        model: options.model,
        command: rest,
        base_url: options.baseUrl,
        api_key_env: options.apiKeyEnv,
        url: options.url,
        answer_path: options.answerPath,
      }
  const keys = Object.entries({ kind, ...own, ...common }).flatMap(
    ([key, value]): NewAgent['keys'][number][] =>
      value === undefined || (Array.isArray(value) && value.length === 0) ? [] : [[key, value]],
  )
  const comment = isCliKind(kind)
    ? `${agentClis[kind].name}, with your own login and no tools unless tools or args grant them.`
    : comments[kind]
  return { name, comment, keys }
}

type Options = { readonly takes: readonly string[]; readonly needs: readonly string[] }

/** The options that a program takes, and none that it needs. */
const cliOptions: Options = { takes: ['model', 'cwd', 'env', 'afterDashes'], needs: [] }

/** The options another kind takes, and those it needs. */
const kindOptions: Readonly<Record<Exclude<Kind, CliKind>, Options>> = {
  openai: { takes: ['model', 'baseUrl', 'apiKeyEnv'], needs: ['baseUrl', 'model'] },
  http: { takes: ['url', 'answerPath'], needs: ['url'] },
  command: { takes: ['cwd', 'env', 'afterDashes'], needs: ['afterDashes'] },
  echo: { takes: [], needs: [] },
}

const optionNames: Readonly<Record<string, string>> = {
  model: '--model',
  baseUrl: '--base-url',
  apiKeyEnv: '--api-key-env',
  url: '--url',
  answerPath: '--answer-path',
  cwd: '--cwd',
  env: '--env',
  afterDashes: '-- and the command',
}

const refuseForeign = (kind: Kind, options: AgentAddOptions): void => {
  const given = Object.entries(options)
    .filter(([key, value]) => value !== undefined && !['timeout', 'print'].includes(key))
    .map(([key]) => key)
  const { takes, needs } = isCliKind(kind) ? cliOptions : kindOptions[kind]
  const foreign = given.find((key) => !takes.includes(key))
  if (foreign)
    throw new DoorwardError('usage', `an agent of kind ${kind} takes no ${optionNames[foreign]}`, {
      hint: `doorward help agents`,
    })
  const missing = needs.filter((key) => !given.includes(key))
  if (missing.length > 0)
    throw new DoorwardError(
      'usage',
      `an agent of kind ${kind} needs ${missing.map((key) => optionNames[key]).join(' and ')}`,
      { hint: examples[kind] ?? 'doorward help agents' },
    )
}

const examples: Partial<Record<Kind, string>> = {
  openai: 'doorward agent add openai local --base-url http://127.0.0.1:11434/v1 --model llama3.2',
  http: 'doorward agent add http remote --url https://agents.example.com/ask',
  command: 'doorward agent add command words -- wc -w',
}

const modelArgs = (kind: keyof typeof agentClis, model: string | undefined): string[] => {
  if (model === undefined) return []
  return [kind === 'claude' ? '--model' : '-m', model]
}

const parseVariables = (texts: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    texts.map((text) => {
      const [, name = '', value = ''] = /^([A-Za-z_]\w*)=([^]*)$/.exec(text) ?? []
      if (name === '')
        throw new DoorwardError('usage', `--env ${text.split('=', 1)[0]} is not NAME=value`, {
          hint: 'for example ANTHROPIC_API_KEY=env:ANTHROPIC_API_KEY, or GITHUB_TOKEN=oauth:github',
        })
      return [name, value]
    }),
  )

/** An agent to be written to `agents.yaml`: its comment and its keys in order. */
type NewAgent = {
  readonly name: string
  readonly comment: string
  readonly keys: readonly (readonly [
    key: string,
    value: string | readonly string[] | Readonly<Record<string, string>>,
  ])[]
}

/** The commented lines of an entry of `agents.yaml`, and the value they parse to. */
const agentEntry = ({
  name,
  comment,
  keys,
}: NewAgent): { readonly lines: string[]; readonly value: unknown } => ({
  lines: [
    ...comment.split('\n').map((line) => `# ${line}`),
    `${yamlText(name)}:`,
    ...keys.flatMap(([key, value]) => {
      if (typeof value === 'string') return [`  ${key}: ${yamlText(value)}`]
      if (isList(value)) return [`  ${key}: [${value.map((one) => yamlText(one)).join(', ')}]`]
      return [
        `  ${key}:`,
        ...Object.entries(value).map(([one, text]) => `    ${one}: ${yamlOneOrList([text])}`),
      ]
    }),
  ],
  value: Object.fromEntries(keys),
})

const isList = (
  value: readonly string[] | Readonly<Record<string, string>>,
): value is readonly string[] => Array.isArray(value)
