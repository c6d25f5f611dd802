import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { z } from 'zod'
import {
  type Agent,
  type ConfigName,
  type Gateway,
  type WebhookEntry,
  allHosts,
  fileSchemas,
  loopbackHosts,
  webhookSchema,
} from './config.ts'
import { type DotPath, parseDotPath } from './dot-path.ts'
import { DoorwardError, systemCode } from './errors.ts'
import { type Home, systemReason } from './home.ts'
import { nearest } from './nearest.ts'
import { problemsOf, valueUnder, wordsOf } from './schema-problems.ts'
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
    const reason = missing ? 'there is no such file' : `cannot be read: ${systemReason(error)}`
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
  const ofGateway: Problem[] = []
  const ofAgents: Problem[] = []
  const ofWebhooks: Problem[] = []
  const ofEnvironment: Problem[] = []
  const gateway = checkShape('gateway', gatewayFile, ofGateway)
  const agents = checkShape('agents', agentsFile, ofAgents)
  const webhooks = checkShape('webhooks', webhooksFile, ofWebhooks)

  checkHost(gatewayFile, ofGateway)
  const override = portOverride(env, ofEnvironment)
  // A file that cannot be read at all says nothing of the names that it would have.
  const agentNames = agentsFile.problems.length > 0 ? undefined : namesIn(agentsFile, 'agents')
  // Entry by entry, so that what is wrong in one place hides nothing in another.
  const entries = listIn(webhooksFile, 'webhooks').map((value) => readable(value))
  const checked = entries.map((entry, index) =>
    checkWebhook(entry, index, agentNames, webhooksFile, ofWebhooks),
  )
  checkPaths(entries, webhooksFile, ofWebhooks)

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
      webhookOf(entry, agents.agents, checked[index]),
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
  if (file.problems.length > 0) return undefined
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

type Readable = { readonly [Key in keyof WebhookEntry]?: WebhookEntry[Key] | undefined }

/** The fields of an entry that are right in themselves. */
const readable = (value: unknown): Readable =>
  Object.fromEntries(
    Object.entries(webhookSchema.shape).map(([key, schema]) => {
      const given = valueUnder(value, [key])
      return [key, given === undefined ? undefined : schema.safeParse(given).data]
    }),
  )

type Checked = Pick<Webhook, 'filter' | 'targets'> & { readonly prompt: Template | undefined }

const checkWebhook = (
  entry: Readable,
  index: number,
  agentNames: readonly string[] | undefined,
  file: YamlFile,
  problems: Problem[],
): Checked => {
  const at = (key: YamlPath, reason: string, hint?: string) =>
    problems.push(file.problemAt(['webhooks', index, ...key], reason, hint))
  const attempt = <Value>(key: YamlPath, read: () => Value): Value[] => {
    try {
      return [read()]
    } catch (error) {
      if (!(error instanceof DoorwardError)) throw error
      at(key, error.message, error.hint)
      return []
    }
  }

  const { agent, prompt_template: template, filter = {}, deliver_to: deliverTo = [] } = entry
  if (agent !== undefined && agentNames && !agentNames.includes(agent))
    at(
      ['agent'],
      `unknown agent "${agent}"`,
      nearest(agent, agentNames) ?? `known: ${agentNames.join(', ') || 'none'}`,
    )
  const [prompt] =
    template === undefined ? [] : attempt(['prompt_template'], () => parseTemplate(template))
  const conditions = Object.entries(filter).flatMap(([text, expected]) =>
    attempt(['filter', text], () => ({
      text,
      path: parseDotPath(text),
      expected: [expected].flat().map(String),
    })),
  )
  const targets = [deliverTo]
    .flat()
    .flatMap((text, position) =>
      attempt(Array.isArray(deliverTo) ? ['deliver_to', position] : ['deliver_to'], () =>
        parseTarget(text),
      ),
    )
    .filter(({ kind }) => kind !== 'none')
  return { prompt, filter: conditions, targets }
}

const webhookOf = (
  entry: WebhookEntry,
  agents: Readonly<Record<string, Agent>>,
  checked: Checked | undefined,
): Webhook => {
  const agent = agents[entry.agent]
  if (!agent || !checked?.prompt)
    throw new DoorwardError('internal', `webhook ${entry.path} was not checked`)
  return {
    path: entry.path,
    urlPaths: urlPathsOf(entry.path),
    enabled: entry.enabled,
    agentName: entry.agent,
    agent,
    prompt: checked.prompt,
    secretNames: [entry.secret_env ?? []].flat(),
    signature: {
      header: entry.signature_header,
      algorithm: entry.signature_algo,
      prefix: entry.signature_prefix,
    },
    filter: checked.filter,
    targets: checked.targets,
  }
}

const urlPathsOf = (path: string): string[] =>
  path.startsWith('/webhook/') ? [path] : [path, `/webhook${path}`]

/** Reserved first segments, and two definitions that would be served at one path. */
const checkPaths = (entries: readonly Readable[], file: YamlFile, problems: Problem[]): void => {
  const taken = new Map<string, { readonly path: string; readonly line: number }>()
  entries.forEach(({ path }, index) => {
    if (path === undefined) return
    const at = (reason: string, hint: string) =>
      file.problemAt(['webhooks', index, 'path'], reason, hint)
    const segment = path.split('/')[1] ?? ''
    if (reserved.includes(segment))
      problems.push(at(`/${segment} is reserved`, `use /webhook${path}`))
    const urlPaths = urlPathsOf(path)
    const clash = urlPaths.find((urlPath) => taken.has(urlPath))
    const other = clash === undefined ? undefined : taken.get(clash)
    if (clash !== undefined && other)
      problems.push(
        other.path === path
          ? at(`path ${path} is defined twice`, `first in line ${other.line}`)
          : at(
              `two definitions would be served at ${clash}`,
              `the other is path ${other.path} in line ${other.line}`,
            ),
      )
    const { line } = at('', '')
    for (const urlPath of urlPaths) if (!taken.has(urlPath)) taken.set(urlPath, { path, line })
  })
}

const namesIn = (file: YamlFile, key: string): string[] => {
  const map = valueUnder(file.value, [key])
  return typeof map === 'object' && map !== null ? Object.keys(map) : []
}

const listIn = (file: YamlFile, key: string): readonly unknown[] => {
  const list = valueUnder(file.value, [key])
  return Array.isArray(list) ? list : []
}
