import { readFile, stat } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { basename, join } from 'node:path'
import { z } from 'zod'
import { findBudgetFault } from '../agents/budget.ts'
import { agentSchema } from '../agents/schema.ts'
import type { StartFailure } from '../client/spawn.ts'
import { DoorwardError, systemCode } from '../errors.ts'
import { type Home, systemReason } from '../home/home.ts'
import { readSchedules, type Schedule } from '../schedules/schedule.ts'
import { scheduleSchema } from '../schedules/schema.ts'
import { didYouMean } from '../text.ts'
import { builtInProviders, parseLogin } from './name-forms.ts'
import { describeIssue, getValueAt, toProblems, withoutUnknownKeys } from './problems.ts'
import {
  type Agent,
  allHosts,
  type ConfigName,
  fileSchemas,
  type Gateway,
  gatewayFileSchema,
  loopbackHosts,
} from './schema.ts'
import { webhookSchema } from './webhook-schema.ts'
import { readWebhooks, type Webhook } from './webhook.ts'
import { type Problem, readYaml, readYamlBytes, type YamlFile, type YamlPath } from './yaml.ts'

export type Config = {
  readonly gateway: Gateway
  readonly agents: ReadonlyMap<string, Agent>
  readonly webhooks: readonly Webhook[]
  readonly schedules: readonly Schedule[]
}

/** `config-invalid` with the problems of all files. */
export class ConfigError extends DoorwardError {
  readonly problems: readonly Problem[]

  constructor(problems: readonly Problem[]) {
    const lines = problems.map(formatProblem)
    super('config-invalid', `the configuration cannot be used\n${lines.join('\n')}`, {
      hint: 'fix it, then run: doorward config check',
      about: { file: problems[0] && toHomePath(problems[0]) },
    })
    this.problems = problems
  }
}

/** `webhooks.yaml:4:5 webhooks[0].agent: unknown agent "eco" (did you mean "echo"?)` */
export const formatProblem = ({ file, line, column, key, reason, hint }: Problem): string =>
  `${file}:${line}:${column} ${key === '' ? '' : `${key}: `}${reason}${hint ? ` (${hint})` : ''}`

/** `config/webhooks.yaml`: the file of a problem by its path in the home; undefined for a variable. */
export const toHomePath = ({ file }: Problem): string | undefined =>
  file.endsWith('.yaml') ? `config/${basename(file)}` : undefined

/** A problem as one line, with the path of its file in the home. */
export const formatInHome = (problem: Problem): string =>
  formatProblem({ ...problem, file: toHomePath(problem) ?? problem.file })

/** Why a daemon does not start: of a broken configuration the first problem. */
export const toStartFailure = (error: DoorwardError): StartFailure => {
  const [problem] = error instanceof ConfigError ? error.problems : []
  const { code, message, about } = error
  return { code, detail: problem ? formatInHome(problem) : message, ...(about && { about }) }
}

/** Reads and checks the files of a home. Throws `ConfigError` with every problem. */
export const loadConfig = async (home: Home, env: NodeJS.ProcessEnv): Promise<Config> => {
  const [gatewayFile, agentsFile] = await Promise.all([
    readConfigFile(home, 'gateway'),
    readConfigFile(home, 'agents'),
  ])
  const queue = getValueAt(gatewayFile.value, ['queue'])
  const isWorker =
    getValueAt(queue, ['engine']) === 'nats' && getValueAt(queue, ['role']) === 'worker'
  // A worker receives none.
  const webhooksFile = isWorker
    ? readYaml(join(home.config, 'webhooks.yaml'), 'webhooks: []')
    : await readConfigFile(home, 'webhooks')
  const schedulesFile = await readSchedulesFile(home, isWorker)
  return checkConfig(gatewayFile, agentsFile, webhooksFile, env, home.root, schedulesFile)
}

const noSchedules = 'schedules: []'

/** The receiver alone is the clock, and a home of before has no such file. */
const readSchedulesFile = async (home: Home, isWorker: boolean): Promise<YamlFile> => {
  const path = join(home.config, 'schedules.yaml')
  if (isWorker || !existsSync(path)) return readYaml(path, noSchedules)
  return readConfigFile(home, 'schedules')
}

const readConfigFile = async (home: Home, name: ConfigName): Promise<YamlFile> => {
  const path = join(home.config, `${name}.yaml`)
  try {
    // Reading a pipe would wait for a writer.
    if ((await stat(path)).isFIFO()) throw new DoorwardError('config-invalid', 'it is a pipe')
    const file = readYamlBytes(path, await readFile(path))
    if (name !== 'webhooks' || file.text.trim() !== '') return file
    // An editor or a full disk may leave it empty: every sender would be answered 404.
    const hint = 'for no webhooks, write webhooks: []'
    return { ...file, isReadable: false, problems: [file.problemAt([], 'the file is empty', hint)] }
  } catch (error) {
    const file = readYaml(path, '')
    const missing = systemCode(error) === 'ENOENT'
    const why = error instanceof DoorwardError ? error.message : systemReason(error)
    const reason = missing ? 'no such file' : `cannot be read: ${why}`
    const hint = missing ? 'doorward init writes a sample' : undefined
    return { ...file, isReadable: false, problems: [file.problemAt([], reason, hint)] }
  }
}

/** The pure part of `loadConfig`. Without `homeFolder` any file may be a target. */
export const checkConfig = (
  gatewayFile: YamlFile,
  agentsFile: YamlFile,
  webhooksFile: YamlFile,
  env: NodeJS.ProcessEnv,
  homeFolder?: string,
  schedulesFile = readYaml('schedules.yaml', noSchedules),
): Config => {
  const environmentProblems: Problem[] = []
  const override = readPort(env, environmentProblems)
  const gatewayProblems: Problem[] = []
  const gatewayValue = checkShape('gateway', gatewayFile, gatewayProblems)
  const gateway = gatewayFileSchema.safeParse(gatewayValue).data
  if (gateway) checkGateway(gateway, override, gatewayFile, gatewayProblems)

  const agentProblems: Problem[] = []
  const agentsValue = getValueAt(checkShape('agents', agentsFile, agentProblems), ['agents'])
  const agents = parseEach(agentSchema, agentsValue)
  const providers = [...builtInProviders, ...keysOf(getValueAt(gatewayValue, ['providers']))]
  checkAgentProviders(agents, [...new Set(providers)].sort(), agentsFile, agentProblems)
  for (const [name, agent] of agents) {
    const fault = agent.budget && findBudgetFault(agent, agent.budget)
    const place = ['agents', name, 'budget', fault?.key ?? '']
    if (fault) agentProblems.push(agentsFile.problemAt(place, fault.reason, fault.hint))
  }

  const webhookProblems: Problem[] = []
  const webhooksValue = checkShape('webhooks', webhooksFile, webhookProblems)
  const entries = parseEach(webhookSchema, getValueAt(webhooksValue, ['webhooks']))
  const webhooks = readWebhooks(entries, {
    file: webhooksFile,
    problems: webhookProblems,
    agents,
    // The names in a file that cannot be read are unknown.
    agentNames: agentsFile.isReadable ? keysOf(agentsValue) : undefined,
    gateway,
    homeFolder,
  })
  const scheduleProblems: Problem[] = []
  const schedulesValue = checkShape('schedules', schedulesFile, scheduleProblems)
  const schedules = readSchedules(
    parseEach(scheduleSchema, getValueAt(schedulesValue, ['schedules'])),
    {
      file: schedulesFile,
      problems: scheduleProblems,
      agents,
      agentNames: agentsFile.isReadable ? keysOf(agentsValue) : undefined,
      gateway,
      homeFolder,
    },
  )

  const problems = [
    ...[gatewayProblems, agentProblems, webhookProblems, scheduleProblems].flatMap((list) =>
      list.toSorted(comparePositions),
    ),
    ...environmentProblems,
  ]
  if (problems.length > 0 || !gateway) throw new ConfigError(problems)
  const server = { ...gateway.server, port: override ?? gateway.server.port }
  return { gateway: { ...gateway, server }, agents, webhooks, schedules }
}

const comparePositions = (a: Problem, b: Problem): number => a.line - b.line || a.column - b.column

/** Reports what does not match the schema. Returns the value of the file, without its unknown keys. */
const checkShape = (name: ConfigName, file: YamlFile, problems: Problem[]): unknown => {
  problems.push(...file.problems)
  if (!file.isReadable) return undefined
  // A file with comments only is empty: for gateway.yaml that means all defaults.
  const value = file.value ?? (name === 'gateway' ? {} : { [name]: name === 'agents' ? {} : [] })
  const { error } = fileSchemas[name].safeParse(value, { error: describeIssue })
  if (!error) return value
  for (const issue of error.issues) problems.push(...toProblems(issue, name, file, value))
  return withoutUnknownKeys(value, error.issues)
}

/** The items of a list or map that match their schema, by place or name. What relates them is checked next. */
const parseEach = <Schema extends z.ZodType>(
  schema: Schema,
  items: unknown,
): Map<string, z.output<Schema>> =>
  new Map(
    Object.entries(items ?? {}).flatMap(([key, item]) => {
      const { success, data } = z.safeParse(schema, item)
      return success ? [[key, data] as const] : []
    }),
  )

const keysOf = (map: unknown): string[] =>
  typeof map === 'object' && map !== null ? Object.keys(map) : []

/** The port in `DOORWARD_PORT`; undefined when it is unset or empty. */
const readPort = (env: NodeJS.ProcessEnv, problems: Problem[]): number | undefined => {
  const text = env['DOORWARD_PORT']
  if (text === undefined || text === '') return undefined
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.POSITIVE_INFINITY
  if (port <= 65_535) return port
  problems.push({
    file: 'environment',
    line: 1,
    column: 1,
    key: 'DOORWARD_PORT',
    reason: 'not a port: write a number from 0 to 65535',
  })
  return undefined
}

/**
 * Checks the host, and that main listener, webhook listener and login callback use different ports; 0 takes
 * any free port. `override` is the port in `DOORWARD_PORT`.
 */
const checkGateway = (
  { server, oauth }: Gateway,
  override: number | undefined,
  file: YamlFile,
  problems: Problem[],
): void => {
  const at = (path: YamlPath, reason: string, hint: string) =>
    problems.push(file.problemAt(path, reason, hint))
  const { host, allow_remote: allowsRemote } = server
  const hosts: readonly string[] = allowsRemote ? [...allHosts, ...loopbackHosts] : loopbackHosts
  if (!hosts.includes(host))
    at(
      ['server', 'host'],
      `not one of ${hosts.join(', ')}`,
      // The daemon's own clients use loopback, on which it must listen too.
      allowsRemote
        ? 'use 0.0.0.0 for all addresses'
        : 'use a tunnel, or open webhooks to other machines with server.allow_remote: true',
    )
  const main = {
    name: override === undefined ? 'server.port' : 'DOORWARD_PORT',
    port: override ?? server.port,
  }
  const open = { name: 'server.public_port', port: server.public_port }
  const checkPort = (path: YamlPath, port = 0, others: readonly (typeof open)[], why: string) => {
    const other = others.find((one) => one.port === port)
    if (port !== 0 && other) at(path, `the same as ${other.name}`, `choose another: ${why}`)
  }
  checkPort(['server', 'public_port'], open.port, [main], 'it serves webhooks only')
  checkPort(
    ['oauth', 'callback_port'],
    oauth.callback_port,
    [main, open],
    'a login waits there for the browser',
  )
}

/** Checks that each `oauth:<provider>` in an agent's environment names a known provider. */
const checkAgentProviders = (
  agents: ReadonlyMap<string, Agent>,
  known: readonly string[],
  file: YamlFile,
  problems: Problem[],
): void => {
  for (const [name, agent] of agents)
    for (const [variable, value] of Object.entries('env' in agent ? (agent.env ?? {}) : {})) {
      if (!value.startsWith('oauth:')) continue
      const provider = value.slice('oauth:'.length)
      const login = parseLogin(provider)
      if (login && known.includes(login.provider)) continue
      problems.push(
        file.problemAt(
          ['agents', name, 'env', variable],
          provider === ''
            ? 'oauth: is not followed by a provider'
            : `unknown provider ${JSON.stringify(provider)}`,
          known.some((one) => provider.startsWith(`${one}@`))
            ? 'after @ is the name of an account: a-z, 0-9 and -, at most 34'
            : (didYouMean(provider, known) ?? `known: ${known.join(', ')}`),
        ),
      )
    }
}
