import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { z } from 'zod'
import { checkPorts } from './check-ports.ts'
import { checkTargets } from './check-targets.ts'
import {
  type Agent,
  type ConfigName,
  type Gateway,
  allHosts,
  builtInProviders,
  fileSchemas,
  loopbackHosts,
} from './config.ts'
import { DoorwardError, systemCode } from './errors.ts'
import { type Home, systemReason } from './home.ts'
import { nearest } from './nearest.ts'
import { problemsOf, valueUnder, wordsOf } from './schema-problems.ts'
import { type Webhook, checkDefinitions, readyWebhook } from './webhook-definition.ts'
import { readYamlBytes } from './yaml-bytes.ts'
import { type Problem, type YamlFile, readYaml } from './yaml-file.ts'

export type Config = {
  readonly gateway: Gateway
  readonly agents: ReadonlyMap<string, Agent>
  readonly webhooks: readonly Webhook[]
}

/** `config-invalid` with every problem of all files at once. */
export class ConfigError extends DoorwardError {
  readonly problems: readonly Problem[]

  constructor(problems: readonly Problem[]) {
    const lines = problems.map(problemLine)
    super('config-invalid', `the configuration cannot be used\n${lines.join('\n')}`, {
      hint: 'mend it, then run: doorward config check',
    })
    this.problems = problems
  }
}

/** `webhooks.yaml:4:5 webhooks[0].agent: unknown agent "eco" (did you mean "echo"?)` */
export const problemLine = ({ file, line, column, key, reason, hint }: Problem): string =>
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
    const reason = missing ? 'there is no such file' : `cannot be read: ${why}`
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
      readyWebhook(entry, agents.agents, checked[index]),
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
  const result = fileSchemas[name].safeParse(value, { error: wordsOf })
  if (result.success) return result.data as z.output<(typeof fileSchemas)[Name]>
  for (const issue of result.error.issues) problems.push(...problemsOf(issue, name, file, value))
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
  const host = valueUnder(file.value, ['server', 'host'])
  if (typeof host !== 'string' || host === '') return
  if ((loopbackHosts as readonly string[]).includes(host)) return
  const at = (reason: string, hint: string) =>
    problems.push(file.problemAt(['server', 'host'], reason, hint))
  if (valueUnder(file.value, ['server', 'allow_remote']) !== true)
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
    const env = valueUnder(file.value, ['agents', name, 'env'])
    if (typeof env !== 'object' || env === null) continue
    for (const [variable, value] of Object.entries(env)) {
      if (typeof value !== 'string' || !value.startsWith('oauth:')) continue
      const provider = value.slice('oauth:'.length)
      if (known.includes(provider)) continue
      problems.push(
        file.problemAt(
          ['agents', name, 'env', variable],
          `there is no provider ${provider === '' ? 'without a name' : JSON.stringify(provider)}`,
          nearest(provider, known) ?? `known: ${known.join(', ')}`,
        ),
      )
    }
  }
}

const namesIn = (file: YamlFile, key: string): string[] => {
  const map = valueUnder(file.value, [key])
  return typeof map === 'object' && map !== null ? Object.keys(map) : []
}
