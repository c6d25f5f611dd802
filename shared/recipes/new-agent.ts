import { addEntry, yamlOneOrList, yamlText } from '../config-edit/add-entry.ts'
import type { OpenConfig } from '../config-edit/open-config.ts'
import { agentClis, type CliKind, cliKinds, isCliKind } from '../agents/clis.ts'
import { findMissingProgram } from '../agents/detect.ts'
import { agentSchema } from '../agents/schema.ts'
import { DoorwardError } from '../errors.ts'
import { didYouMean } from '../text.ts'

/* Agents as `agents.yaml` gets them. */

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
  return open.with('agents', withAgent(open, name, entry).text)
}

/** `agents.yaml` with this agent at its end. Throws `usage`. */
export const withAgent = (
  open: OpenConfig,
  name: string,
  { lines, value }: ReturnType<typeof agentEntry>,
) => {
  const { text, value: before } = open.file('agents')
  const { agents } = (before ?? {}) as { agents?: Record<string, unknown> | null }
  return addEntry(text, 'agents', { lines, expected: { ...agents, [name]: value } })
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
export const agentEntry = ({
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
