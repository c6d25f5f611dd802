import { readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { z } from 'zod'
import type { StartFailure } from '../client/spawn.ts'
import { DoorwardError, systemCode } from '../errors.ts'
import { type Home, systemReason } from '../home/home.ts'
import { isFixed, type Template } from '../templates.ts'
import { didYouMean } from '../text.ts'
import { builtInProviders, parseLogin } from './name-forms.ts'
import { toProblems, getValueAt, describeIssue } from './problems.ts'
import {
  type Agent,
  allHosts,
  type ConfigName,
  fileSchemas,
  type Gateway,
  loopbackHosts,
} from './schema.ts'
import {
  isOwnFile,
  ownChat,
  parseTarget,
  type Target,
  resolveTargetFile,
} from '../targets/targets.ts'
import { checkDefinitions, compileEntry, type Webhook } from './webhook.ts'
import { type Problem, readYaml, readYamlBytes, type YamlFile, type YamlPath } from './yaml.ts'

export type Config = {
  readonly gateway: Gateway
  readonly agents: ReadonlyMap<string, Agent>
  readonly webhooks: readonly Webhook[]
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

/** Reads and checks the three files of a home. Throws `ConfigError` with every problem. */
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
  return checkConfig(gatewayFile, agentsFile, webhooksFile, env, home.root)
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
): Config => {
  const gatewayProblems: Problem[] = []
  const agentProblems: Problem[] = []
  const webhookProblems: Problem[] = []
  const environmentProblems: Problem[] = []
  const gateway = checkShape('gateway', gatewayFile, gatewayProblems)
  const agents = checkShape('agents', agentsFile, agentProblems)
  const webhooks = checkShape('webhooks', webhooksFile, webhookProblems)

  checkHost(gatewayFile, gatewayProblems)
  const override = readPort(env, environmentProblems)
  checkPorts(gatewayFile, gateway, override, gatewayProblems)
  // The names in a file that cannot be read are unknown.
  const agentNames = agentsFile.isReadable ? namesIn(agentsFile, 'agents') : undefined
  checkAgentProviders(agentsFile, namesIn(gatewayFile, 'providers'), agentProblems)
  const checked = checkDefinitions(webhooksFile, agentNames, webhookProblems)
  checkTargets(webhooksFile, gatewayFile, homeFolder, webhookProblems)

  const problems = [
    ...[gatewayProblems, agentProblems, webhookProblems].flatMap((list) =>
      list.toSorted(comparePositions),
    ),
    ...environmentProblems,
  ]
  if (problems.length > 0 || !gateway || !agents || !webhooks) throw new ConfigError(problems)
  return {
    gateway: {
      ...gateway,
      server: { ...gateway.server, port: override ?? gateway.server.port },
    },
    agents: new Map(Object.entries(agents.agents)),
    webhooks: webhooks.webhooks.map((entry, index) =>
      compileEntry(entry, agents.agents, checked[index]),
    ),
  }
}

const comparePositions = (a: Problem, b: Problem): number => a.line - b.line || a.column - b.column

const checkShape = <Name extends ConfigName>(
  name: Name,
  file: YamlFile,
  problems: Problem[],
): z.output<(typeof fileSchemas)[Name]> | undefined => {
  problems.push(...file.problems)
  if (!file.isReadable) return undefined
  // A file with comments only is empty: for gateway.yaml that means all defaults.
  const value = file.value ?? (name === 'gateway' ? {} : { [name]: name === 'agents' ? {} : [] })
  const result = fileSchemas[name].safeParse(value, { error: describeIssue })
  if (result.success) return result.data as z.output<(typeof fileSchemas)[Name]>
  for (const issue of result.error.issues) problems.push(...toProblems(issue, name, file, value))
  return undefined
}

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

const checkHost = (file: YamlFile, problems: Problem[]): void => {
  const host = getValueAt(file.value, ['server', 'host'])
  if (typeof host !== 'string' || host === '') return
  if ((loopbackHosts as readonly string[]).includes(host)) return
  const at = (reason: string, hint: string) =>
    problems.push(file.problemAt(['server', 'host'], reason, hint))
  if (getValueAt(file.value, ['server', 'allow_remote']) !== true)
    at(
      `not one of ${loopbackHosts.join(', ')}`,
      'use a tunnel, or open webhooks to other machines with server.allow_remote: true',
    )
  else if (!(allHosts as readonly string[]).includes(host))
    // The daemon's own clients use loopback, on which it must listen too.
    at(`not one of ${[...allHosts, ...loopbackHosts].join(', ')}`, 'use 0.0.0.0 for all addresses')
}

/** Checks that each `oauth:<provider>` in an agent's environment names a known provider. */
const checkAgentProviders = (
  file: YamlFile,
  configured: readonly string[],
  problems: Problem[],
): void => {
  const known = [...new Set([...builtInProviders, ...configured])].sort()
  for (const name of namesIn(file, 'agents')) {
    const env = getValueAt(file.value, ['agents', name, 'env'])
    if (typeof env !== 'object' || env === null) continue
    for (const [variable, value] of Object.entries(env)) {
      if (typeof value !== 'string' || !value.startsWith('oauth:')) continue
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
            ? 'after @ is the name of an account: a-z, 0-9 and -, at most 32'
            : (didYouMean(provider, known) ?? `known: ${known.join(', ')}`),
        ),
      )
    }
  }
}

const namesIn = (file: YamlFile, key: string): string[] => {
  const map = getValueAt(file.value, [key])
  return typeof map === 'object' && map !== null ? Object.keys(map) : []
}

/**
 * Checks that main listener, webhook listener and login callbacks of gateway.yaml use different ports; 0
 * takes any free port. `override` is the port in `DOORWARD_PORT`; `gateway` has the defaults, if the file
 * is valid.
 */
const checkPorts = (
  file: YamlFile,
  gateway: Gateway | undefined,
  override: number | undefined,
  problems: Problem[],
): void => {
  const main = {
    name: override === undefined ? 'server.port' : 'DOORWARD_PORT',
    port: override ?? gateway?.server.port,
  }
  const open = { name: 'server.public_port', port: getValueAt(file.value, publicPort) }
  const check = (path: YamlPath, port: unknown, others: readonly (typeof open)[], hint: string) => {
    const other = others.find((one) => one.port === port)
    if (typeof port !== 'number' || port === 0 || !other) return
    problems.push(file.problemAt(path, `the same as ${other.name}`, hint))
  }
  check(publicPort, open.port, [main], 'choose another: it serves webhooks only')
  const callbacks = [
    { path: ['oauth', 'callback_port'], byDefault: gateway?.oauth.callback_port },
    ...Object.keys(gateway?.providers ?? {}).map((name) => ({
      path: ['providers', name, 'callback_port'],
      byDefault: undefined,
    })),
  ]
  for (const { path, byDefault } of callbacks) {
    const port = getValueAt(file.value, path) ?? byDefault
    check(path, port, [main, open], 'choose another: a login waits there for the browser')
  }
}

const publicPort = ['server', 'public_port'] as const

/**
 * Checks that gateway.yaml has what the targets of webhooks.yaml need: entries of `discord` and `http`, the
 * bot of `telegram`; and that no file target is one of doorward's own files. Ignores malformed targets,
 * which another check reports.
 */
const checkTargets = (
  webhooks: YamlFile,
  gateway: YamlFile,
  homeFolder: string | undefined,
  problems: Problem[],
): void => {
  const entries = getValueAt(webhooks.value, ['webhooks'])
  if (!Array.isArray(entries)) return
  const check = (text: unknown, path: YamlPath) => {
    const missing = typeof text === 'string' ? findMissing(text, gateway, homeFolder) : undefined
    if (missing) problems.push(webhooks.problemAt(path, missing.reason, missing.hint))
  }
  const checkEach = (entry: unknown, place: YamlPath) => {
    const deliverTo = getValueAt(entry, ['deliver_to'])
    const path = [...place, 'deliver_to']
    if (Array.isArray(deliverTo)) deliverTo.forEach((text, index) => check(text, [...path, index]))
    else check(deliverTo, path)
  }
  entries.forEach((entry: unknown, index) => {
    const place = ['webhooks', index]
    checkEach(entry, place)
    const rules = getValueAt(entry, ['rules'])
    if (Array.isArray(rules))
      rules.forEach((rule, number) => checkEach(rule, [...place, 'rules', number]))
  })
}

type MissingSetting = { readonly reason: string; readonly hint: string }

const findMissing = (
  text: string,
  gateway: YamlFile,
  homeFolder: string | undefined,
): MissingSetting | undefined => {
  const target = tryParse(text)
  if (target?.kind === 'file') return checkFile(target.path, homeFolder)
  if (target?.kind === 'pull-request' && getValueAt(gateway.value, ['queue', 'engine']) === 'nats')
    return {
      reason: 'not with queue.engine: nats, as the commit is on the machine of the agent',
      hint: 'let this webhook run on a machine with queue.engine: memory',
    }
  // The entries of a file that cannot be read are unknown.
  if (!gateway.isReadable) return undefined
  if (target?.kind === 'telegram') return checkTelegram(target.address.source, gateway)
  if (target?.kind !== 'discord' && target?.kind !== 'http') return undefined
  if (!isFixed(target.address)) return undefined
  return checkTargetEntry(target.kind, target.address.source, gateway)
}

const checkFile = (path: Template, homeFolder: string | undefined): MissingSetting | undefined => {
  // A value of an event is only a part of a name and cannot leave the folder.
  const example = path.parts.map((part) => (typeof part === 'string' ? part : 'x')).join('')
  if (homeFolder === undefined || !isOwnFile(resolveTargetFile(example, homeFolder), homeFolder))
    return undefined
  return {
    reason: "one of doorward's own files, which answers must not overwrite",
    hint: 'choose another path: file:answers.md',
  }
}

const checkTargetEntry = (
  kind: 'discord' | 'http',
  name: string,
  gateway: YamlFile,
): MissingSetting | undefined => {
  const entries = getValueAt(gateway.value, ['targets', kind])
  const known = typeof entries === 'object' && entries !== null ? Object.keys(entries) : []
  if (known.includes(name)) return undefined
  const hint =
    didYouMean(name, known) ??
    (known.length > 0
      ? `known: ${known.join(', ')}`
      : `define it under targets.${kind}.${name} in gateway.yaml`)
  return { reason: `unknown ${kind} target "${name}"`, hint }
}

const checkTelegram = (chat: string, gateway: YamlFile): MissingSetting | undefined => {
  const has = (key: string) =>
    (getValueAt(gateway.value, ['targets', 'telegram', key]) ?? null) !== null
  const missing = (key: string, hint: string) => ({
    reason: `targets.telegram.${key} is missing in gateway.yaml`,
    hint,
  })
  if (!has('token_env')) return missing('token_env', 'name the variable with the token of your bot')
  if (chat === ownChat && !has('me')) return missing('me', 'write the number of your own chat')
  return undefined
}

const tryParse = (text: string): Target | undefined => {
  try {
    return parseTarget(text)
  } catch (error) {
    if (error instanceof DoorwardError) return undefined
    throw error
  }
}
