import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { z } from 'zod'
import { DoorwardError, systemCode } from '../errors.ts'
import { type Home, systemReason } from '../home/home.ts'
import { isFixed, type Template } from '../templates.ts'
import { didYouMean } from '../text.ts'
import { toProblems, getValueAt, describeIssue } from './problems.ts'
import {
  type Agent,
  allHosts,
  builtInProviders,
  type ConfigName,
  fileSchemas,
  type Gateway,
  loopbackHosts,
} from './schema.ts'
import { isOwnFile, ownChat, parseTarget, type Target, resolveTargetFile } from './targets.ts'
import { checkDefinitions, compileEntry, type Webhook } from './webhook.ts'
import { type Problem, readYaml, readYamlBytes, type YamlFile, type YamlPath } from './yaml.ts'

export type Config = {
  readonly gateway: Gateway
  readonly agents: ReadonlyMap<string, Agent>
  readonly webhooks: readonly Webhook[]
}

/** `config-invalid` with every problem of all files at once. */
export class ConfigError extends DoorwardError {
  readonly problems: readonly Problem[]

  constructor(problems: readonly Problem[]) {
    const lines = problems.map(formatProblem)
    super('config-invalid', `the configuration cannot be used\n${lines.join('\n')}`, {
      hint: 'mend it, then run: doorward config check',
    })
    this.problems = problems
  }
}

/** `webhooks.yaml:4:5 webhooks[0].agent: unknown agent "eco" (did you mean "echo"?)` */
export const formatProblem = ({ file, line, column, key, reason, hint }: Problem): string =>
  `${file}:${line}:${column} ${key === '' ? '' : `${key}: `}${reason}${hint ? ` (${hint})` : ''}`

/** Reads and checks the three files of a home. Throws `ConfigError` with all that is wrong. */
export const loadConfig = async (home: Home, env: NodeJS.ProcessEnv): Promise<Config> => {
  const [gatewayFile, agentsFile, webhooksFile] = await Promise.all([
    readConfigFile(home, 'gateway'),
    readConfigFile(home, 'agents'),
    readConfigFile(home, 'webhooks'),
  ])
  return checkConfig(gatewayFile, agentsFile, webhooksFile, env, home.root)
}

const readConfigFile = async (home: Home, name: ConfigName): Promise<YamlFile> => {
  const path = join(home.config, `${name}.yaml`)
  try {
    // A pipe would keep us waiting for somebody who writes into it.
    if ((await stat(path)).isFIFO()) throw new DoorwardError('config-invalid', 'it is a pipe')
    const file = readYamlBytes(path, await readFile(path))
    if (name !== 'webhooks' || file.text.trim() !== '') return file
    // As an editor or a full disk leaves it: every sender would be told that its webhook is gone.
    const hint = 'webhooks: [] says that there is none'
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

/**
 * The pure part of `loadConfig`: three parsed files in, a checked configuration out. Without
 * `homeFolder` any file may be a target.
 */
export const checkConfig = (
  gatewayFile: YamlFile,
  agentsFile: YamlFile,
  webhooksFile: YamlFile,
  env: NodeJS.ProcessEnv,
  homeFolder?: string,
): Config => {
  const ofGateway: Problem[] = []
  const ofAgents: Problem[] = []
  const ofWebhooks: Problem[] = []
  const ofEnvironment: Problem[] = []
  const gateway = checkShape('gateway', gatewayFile, ofGateway)
  const agents = checkShape('agents', agentsFile, ofAgents)
  const webhooks = checkShape('webhooks', webhooksFile, ofWebhooks)

  checkHost(gatewayFile, ofGateway)
  const override = portOverride(env, ofEnvironment)
  checkPorts(gatewayFile, gateway, override, ofGateway)
  // A file that cannot be read at all says nothing of the names that it would have.
  const agentNames = agentsFile.isReadable ? namesIn(agentsFile, 'agents') : undefined
  checkTokensOfAgents(agentsFile, namesIn(gatewayFile, 'providers'), ofAgents)
  const checked = checkDefinitions(webhooksFile, agentNames, ofWebhooks)
  checkTargets(webhooksFile, gatewayFile, homeFolder, ofWebhooks)

  const problems = [
    ...[ofGateway, ofAgents, ofWebhooks].flatMap((list) => list.toSorted(byPlace)),
    ...ofEnvironment,
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

const byPlace = (a: Problem, b: Problem): number => a.line - b.line || a.column - b.column

const checkShape = <Name extends ConfigName>(
  name: Name,
  file: YamlFile,
  problems: Problem[],
): z.output<(typeof fileSchemas)[Name]> | undefined => {
  problems.push(...file.problems)
  if (!file.isReadable) return undefined
  // A file of comments alone is an empty one: for gateway.yaml that means all defaults.
  const value = file.value ?? (name === 'gateway' ? {} : { [name]: name === 'agents' ? {} : [] })
  const result = fileSchemas[name].safeParse(value, { error: describeIssue })
  if (result.success) return result.data as z.output<(typeof fileSchemas)[Name]>
  for (const issue of result.error.issues) problems.push(...toProblems(issue, name, file, value))
  return undefined
}

/** The port that `DOORWARD_PORT` names, or undefined when it is unset or empty. */
const portOverride = (env: NodeJS.ProcessEnv, problems: Problem[]): number | undefined => {
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
      'use a tunnel, or let others reach webhooks with server.allow_remote: true',
    )
  else if (!(allHosts as readonly string[]).includes(host))
    // The daemon's own clients come over loopback, where nothing would listen.
    at(`not one of ${[...allHosts, ...loopbackHosts].join(', ')}`, 'use 0.0.0.0 for all addresses')
}

/** An `oauth:<provider>` in the environment of an agent names a provider that there is. */
const checkTokensOfAgents = (
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
      if (known.includes(provider)) continue
      problems.push(
        file.problemAt(
          ['agents', name, 'env', variable],
          `there is no provider ${provider === '' ? 'without a name' : JSON.stringify(provider)}`,
          didYouMean(provider, known) ?? `known: ${known.join(', ')}`,
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
 * Checks that no port of gateway.yaml is wanted twice at a time: by the main listener, the one for webhooks
 * and the callback of a login. 0 is any free one. `override` is that of `DOORWARD_PORT`, and `gateway` what
 * the file holds with its defaults, where it can be read.
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
  check(publicPort, open.port, [main], 'choose another: only webhooks are served there')
  const callbacks = [
    { path: ['oauth', 'callback_port'], byDefault: gateway?.oauth.callback_port },
    ...Object.keys(gateway?.providers ?? {}).map((name) => ({
      path: ['providers', name, 'callback_port'],
      byDefault: undefined,
    })),
  ]
  for (const { path, byDefault } of callbacks) {
    const port = getValueAt(file.value, path) ?? byDefault
    check(path, port, [main, open], 'choose another: a login waits for the browser there')
  }
}

const publicPort = ['server', 'public_port'] as const

/**
 * Checks that gateway.yaml has what the targets of webhooks.yaml need: the entry that a name of `discord`
 * or `http` stands for, the bot of `telegram`; and that no file is one of doorward's own, under a home
 * that is known. A target that is wrong in itself is told of elsewhere.
 */
const checkTargets = (
  webhooks: YamlFile,
  gateway: YamlFile,
  homeFolder: string | undefined,
  problems: Problem[],
): void => {
  const entries = getValueAt(webhooks.value, ['webhooks'])
  if (!Array.isArray(entries)) return
  entries.forEach((entry: unknown, index) => {
    const deliverTo = getValueAt(entry, ['deliver_to'])
    const check = (text: unknown, path: YamlPath) => {
      const lack = typeof text === 'string' ? findMissing(text, gateway, homeFolder) : undefined
      if (lack) problems.push(webhooks.problemAt(path, lack.reason, lack.hint))
    }
    const path = ['webhooks', index, 'deliver_to']
    if (Array.isArray(deliverTo)) deliverTo.forEach((text, place) => check(text, [...path, place]))
    else check(deliverTo, path)
  })
}

type Lack = { readonly reason: string; readonly hint: string }

const findMissing = (
  text: string,
  gateway: YamlFile,
  homeFolder: string | undefined,
): Lack | undefined => {
  const target = readable(text)
  if (target?.kind === 'file') return lackOfFile(target.path, homeFolder)
  // A file that cannot be read at all says nothing of what it would have.
  if (!gateway.isReadable) return undefined
  if (target?.kind === 'telegram') return lackOfTelegram(target.address.source, gateway)
  if (target?.kind !== 'discord' && target?.kind !== 'http') return undefined
  if (!isFixed(target.address)) return undefined
  return lackOfEntry(target.kind, target.address.source, gateway)
}

const lackOfFile = (path: Template, homeFolder: string | undefined): Lack | undefined => {
  // What an event puts in is a plain part of a name: it leads out of none of these folders.
  const example = path.parts.map((part) => (typeof part === 'string' ? part : 'x')).join('')
  if (homeFolder === undefined || !isOwnFile(resolveTargetFile(example, homeFolder), homeFolder))
    return undefined
  return {
    reason: "one of doorward's own files, to which no answer is written",
    hint: 'choose another path: file:answers.md',
  }
}

const lackOfEntry = (
  kind: 'discord' | 'http',
  name: string,
  gateway: YamlFile,
): Lack | undefined => {
  const entries = getValueAt(gateway.value, ['targets', kind])
  const known = typeof entries === 'object' && entries !== null ? Object.keys(entries) : []
  if (known.includes(name)) return undefined
  const hint =
    didYouMean(name, known) ??
    (known.length > 0
      ? `known: ${known.join(', ')}`
      : `define it under targets.${kind}.${name} in gateway.yaml`)
  return { reason: `there is no ${kind} target "${name}"`, hint }
}

const lackOfTelegram = (chat: string, gateway: YamlFile): Lack | undefined => {
  const has = (key: string) =>
    (getValueAt(gateway.value, ['targets', 'telegram', key]) ?? null) !== null
  const lack = (key: string, what: string) => ({
    reason: `targets.telegram.${key} is missing in gateway.yaml`,
    hint: what,
  })
  if (!has('token_env'))
    return lack('token_env', 'name the variable that holds the token of your bot')
  if (chat === ownChat && !has('me')) return lack('me', 'write the number of your own chat')
  return undefined
}

const readable = (text: string): Target | undefined => {
  try {
    return parseTarget(text)
  } catch (error) {
    if (error instanceof DoorwardError) return undefined
    throw error
  }
}
