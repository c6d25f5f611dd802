import { agentClis, cliKinds, isCliKind } from '../shared/config/agent-clis.ts'
import { DoorwardError } from '../shared/errors.ts'
import { nearest } from '../shared/text.ts'
import type { NewAgent } from './agent-entry.ts'

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
  /** What stands after `--`: flags of an agent program, or the whole command. */
  readonly afterDashes?: readonly string[] | undefined
}

/** The kinds that can be added. */
export const agentKinds = [...cliKinds, 'openai', 'http', 'command', 'echo'] as const
type Kind = (typeof agentKinds)[number]

/** The kind of this name. Throws `usage` with the nearest. */
export const kindOf = (given: string): Kind => {
  const kind = agentKinds.find((known) => known === given)
  if (kind) return kind
  throw new DoorwardError('usage', `there is no kind of agent "${given}"`, {
    hint: nearest(given, agentKinds) ?? `one of ${agentKinds.join(', ')}`,
  })
}

const comments: Readonly<Record<Exclude<Kind, keyof typeof agentClis>, string>> = {
  openai: 'A model that speaks the OpenAI chat API.',
  http: 'Gets {prompt, webhook, eventId} as JSON; what it answers is the answer.',
  command: 'The prompt is its standard input, its standard output is the answer. No shell.',
  echo: 'Answers with the prompt.',
}

/** The agent that these options describe. Throws `usage` for those that its kind has not. */
export const newAgent = (kind: Kind, name: string, options: AgentAddOptions): NewAgent => {
  refuseForeign(kind, options)
  const rest = options.afterDashes ?? []
  const common = {
    cwd: options.cwd,
    env: options.env && variablesOf(options.env),
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
    ? `${agentClis[kind].name}, with your own login and no tools unless args grants them.`
    : comments[kind]
  return { name, comment, keys }
}

/** Which options a kind takes, and which of them it needs. */
const taken: Readonly<Record<Kind, { takes: readonly string[]; needs: readonly string[] }>> = {
  claude: { takes: ['model', 'cwd', 'env', 'afterDashes'], needs: [] },
  codex: { takes: ['model', 'cwd', 'env', 'afterDashes'], needs: [] },
  gemini: { takes: ['model', 'cwd', 'env', 'afterDashes'], needs: [] },
  opencode: { takes: ['model', 'cwd', 'env', 'afterDashes'], needs: [] },
  llm: { takes: ['model', 'cwd', 'env', 'afterDashes'], needs: [] },
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
  const { takes, needs } = taken[kind]
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
      { hint: exampleOf[kind] ?? 'doorward help agents' },
    )
}

const exampleOf: Partial<Record<Kind, string>> = {
  openai: 'doorward agent add openai local --base-url http://127.0.0.1:11434/v1 --model llama3.2',
  http: 'doorward agent add http remote --url https://agents.example.com/ask',
  command: 'doorward agent add command words -- wc -w',
}

const modelArgs = (kind: keyof typeof agentClis, model: string | undefined): string[] => {
  if (model === undefined) return []
  return [kind === 'claude' ? '--model' : '-m', model]
}

const variablesOf = (texts: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    texts.map((text) => {
      const [, name = '', value = ''] = /^([A-Za-z_]\w*)=([^]*)$/.exec(text) ?? []
      if (name === '')
        throw new DoorwardError('usage', `--env ${text.split('=', 1)[0]} is no NAME=value`, {
          hint: 'for example ANTHROPIC_API_KEY=env:ANTHROPIC_API_KEY, or GITHUB_TOKEN=oauth:github',
        })
      return [name, value]
    }),
  )
