import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { z } from 'zod'
import {
  type Agent,
  type ConfigName,
  type Gateway,
  type WebhookEntry,
  fileSchemas,
  isLoopbackHost,
} from './config.ts'
import { type DotPath, parseDotPath } from './dot-path.ts'
import { DoorwardError, systemCode } from './errors.ts'
import type { Home } from './home.ts'
import { nearest } from './nearest.ts'
import { problemsOf, valueUnder } from './schema-problems.ts'
import { type Target, parseTarget } from './target.ts'
import { type Template, parseTemplate } from './template.ts'
import { type Problem, type YamlFile, type YamlPath, readYaml } from './yaml-file.ts'

/** One webhook definition, made ready once: nothing of it is parsed again for a request. */
export type Webhook = {
  readonly path: string
  /** The exact URL paths it is served at: `path`, and `/webhook<path>` where that differs. */
  readonly urlPaths: readonly string[]
  readonly enabled: boolean
  readonly agentName: string
  readonly agent: Agent
  readonly prompt: Template
  readonly secretNames: readonly string[]
  readonly signature: {
    readonly header: string
    readonly algorithm: 'sha256' | 'sha1'
    readonly prefix: string
  }
  readonly filter: readonly FilterCondition[]
  readonly targets: readonly Target[]
}

export type FilterCondition = {
  readonly text: string
  readonly path: DotPath
  readonly expected: readonly string[]
}

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

const reserved = ['oauth', 'events', 'webhooks', 'status', 'metrics', 'health', 'daemon']

/** Reads and checks the three files of a home. Throws `ConfigError` with all that is wrong. */
export const loadConfig = async (home: Home, env: NodeJS.ProcessEnv): Promise<Config> => {
  const [gatewayFile, agentsFile, webhooksFile] = await Promise.all([
    readConfigFile(home, 'gateway'),
    readConfigFile(home, 'agents'),
    readConfigFile(home, 'webhooks'),
  ])
  return checkConfig(gatewayFile, agentsFile, webhooksFile, env)
}

const readConfigFile = async (home: Home, name: ConfigName): Promise<YamlFile> => {
  const path = join(home.config, `${name}.yaml`)
  try {
    return readYaml(path, await readFile(path, 'utf8'))
  } catch (error) {
    const file = readYaml(path, '')
    const missing = systemCode(error) === 'ENOENT'
    const reason = missing ? 'there is no such file' : `cannot be read (${systemCode(error)})`
    const hint = missing ? 'doorward init writes a sample' : undefined
    return { ...file, problems: [file.problemAt([], reason, hint)] }
  }
}

/** The pure part of `loadConfig`: three parsed files in, a checked configuration out. */
export const checkConfig = (
  gatewayFile: YamlFile,
  agentsFile: YamlFile,
  webhooksFile: YamlFile,
  env: NodeJS.ProcessEnv,
): Config => {
  const problems: Problem[] = []
  const gateway = checkShape('gateway', gatewayFile, problems)
  const agents = checkShape('agents', agentsFile, problems)
  const webhooks = checkShape('webhooks', webhooksFile, problems)

  const port = checkServer(gateway, gatewayFile, env, problems)
  const agentNames = namesUnder(agentsFile.value, 'agents')
  const checked = webhooks?.webhooks.map((entry, index) =>
    checkWebhook(entry, index, agents?.agents, agentNames, webhooksFile, problems),
  )
  if (webhooks) checkPaths(webhooks.webhooks, webhooksFile, problems)

  if (problems.length > 0 || !gateway || !agents || !checked) throw new ConfigError(problems)
  return {
    gateway: { ...gateway, server: { ...gateway.server, port } },
    agents: new Map(Object.entries(agents.agents)),
    webhooks: checked.filter((webhook) => webhook !== undefined),
  }
}

const checkShape = <Name extends ConfigName>(
  name: Name,
  file: YamlFile,
  problems: Problem[],
): z.output<(typeof fileSchemas)[Name]> | undefined => {
  problems.push(...file.problems)
  if (file.problems.length > 0) return undefined
  // A file of comments alone is an empty one: for gateway.yaml that means all defaults.
  const value = file.value ?? (name === 'gateway' ? {} : { [name]: name === 'agents' ? {} : [] })
  const result = fileSchemas[name].safeParse(value)
  if (result.success) return result.data as z.output<(typeof fileSchemas)[Name]>
  for (const issue of result.error.issues) problems.push(...problemsOf(issue, name, file, value))
  return undefined
}

const checkServer = (
  gateway: Gateway | undefined,
  file: YamlFile,
  env: NodeJS.ProcessEnv,
  problems: Problem[],
): number => {
  const override = env['DOORWARD_PORT']
  if (override !== undefined && override !== '') {
    const port = /^\d{1,5}$/.test(override) ? Number(override) : Number.POSITIVE_INFINITY
    if (port <= 65_535) {
      checkHost(gateway, file, problems)
      return port
    }
    problems.push({
      file: 'environment',
      line: 1,
      column: 1,
      key: 'DOORWARD_PORT',
      reason: 'not a port: write a number from 0 to 65535',
    })
  }
  checkHost(gateway, file, problems)
  return gateway?.server.port ?? 0
}

const checkHost = (gateway: Gateway | undefined, file: YamlFile, problems: Problem[]): void => {
  if (!gateway || gateway.server.allow_remote || isLoopbackHost(gateway.server.host)) return
  problems.push(
    file.problemAt(
      ['server', 'host'],
      'others could reach this address',
      'use 127.0.0.1 and a tunnel, or set server.allow_remote: true',
    ),
  )
}

const checkWebhook = (
  entry: WebhookEntry,
  index: number,
  agents: Readonly<Record<string, Agent>> | undefined,
  agentNames: readonly string[],
  file: YamlFile,
  problems: Problem[],
): Webhook | undefined => {
  const at = (key: YamlPath, reason: string, hint?: string) =>
    problems.push(file.problemAt(['webhooks', index, ...key], reason, hint))
  const attempt = <Value>(key: YamlPath, read: () => Value): Value | undefined => {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof DoorwardError)) throw error
      at(key, error.message, error.hint)
      return undefined
    }
  }

  const agent = agents && Object.hasOwn(agents, entry.agent) ? agents[entry.agent] : undefined
  if (!agent && !agentNames.includes(entry.agent))
    at(
      ['agent'],
      `unknown agent "${entry.agent}"`,
      nearest(entry.agent, agentNames) ?? listed(agentNames),
    )
  const prompt = attempt(['prompt_template'], () => parseTemplate(entry.prompt_template))
  const filter = Object.entries(entry.filter ?? {}).map(([text, expected]) => ({
    text,
    path: attempt(['filter', text], () => parseDotPath(text)),
    expected: [expected].flat().map(String),
  }))
  const targets = [entry.deliver_to ?? []]
    .flat()
    .map((text, position) =>
      attempt(Array.isArray(entry.deliver_to) ? ['deliver_to', position] : ['deliver_to'], () =>
        parseTarget(text),
      ),
    )
  if (!agent || !prompt) return undefined
  return {
    path: entry.path,
    urlPaths: urlPathsOf(entry.path),
    enabled: entry.enabled,
    agentName: entry.agent,
    agent,
    prompt,
    secretNames: [entry.secret_env ?? []].flat(),
    signature: {
      header: entry.signature_header,
      algorithm: entry.signature_algo,
      prefix: entry.signature_prefix,
    },
    filter: filter.flatMap(({ path, ...rest }) => (path ? [{ ...rest, path }] : [])),
    targets: targets.filter((target) => target !== undefined && target.kind !== 'none') as Target[],
  }
}

const urlPathsOf = (path: string): string[] =>
  path.startsWith('/webhook/') ? [path] : [path, `/webhook${path}`]

/** Reserved first segments, and two definitions that would be served at one path. */
const checkPaths = (
  entries: readonly WebhookEntry[],
  file: YamlFile,
  problems: Problem[],
): void => {
  const taken = new Map<string, string>()
  entries.forEach(({ path }, index) => {
    const segment = path.split('/')[1] ?? ''
    if (reserved.includes(segment))
      problems.push(
        file.problemAt(
          ['webhooks', index, 'path'],
          `/${segment} is reserved`,
          `use /webhook${path}`,
        ),
      )
    for (const urlPath of urlPathsOf(path)) {
      const other = taken.get(urlPath)
      if (other !== undefined) {
        const reason =
          other === path
            ? `path ${path} is defined twice`
            : `${urlPath} is served by path ${other} too`
        problems.push(file.problemAt(['webhooks', index, 'path'], reason))
        break
      }
    }
    for (const urlPath of urlPathsOf(path)) taken.set(urlPath, path)
  })
}

const namesUnder = (value: unknown, key: string): string[] => {
  const map = valueUnder(value, [key])
  return typeof map === 'object' && map !== null ? Object.keys(map) : []
}

const listed = (names: readonly string[]): string | undefined =>
  names.length === 0 ? undefined : `known: ${names.join(', ')}`
