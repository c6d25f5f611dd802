import { stat } from 'node:fs/promises'
import { isAbsolute, join, resolve } from 'node:path'
import { agentClis, isCliKind } from '../../../shared/config/agent-clis.ts'
import { agentVariables } from '../../../shared/config/variables.ts'
import { type Agent, isLoopbackUrl } from '../../../shared/config/schema.ts'
import { findProgram } from '../../../shared/config/detect-agents.ts'
import { secretsOf } from '../../../shared/config/environment.ts'
import { expandTilde } from '../../../shared/home/home.ts'
import type { Config } from '../../../shared/config/load.ts'
import { bareHost } from '../../../shared/net.ts'
import { canConnect } from './can-connect.ts'
import { type VersionRun, runVersion } from './run-version.ts'

export type AgentFacts = {
  readonly name: string
  readonly kind: Agent['kind']
  /** The program that it runs, and where it was found. */
  readonly program?: string
  readonly path?: string
  readonly install?: string
  readonly run?: VersionRun
  /** Its working folder as configured. */
  readonly cwd?: { readonly path: string; readonly is: 'folder' | 'other' | 'missing' }
  /** Variables of ours that it names and that are unset. */
  readonly unset: readonly string[]
  /** Providers whose tokens it gets. */
  readonly providers: readonly string[]
  /** Where it is asked: host and port, and whether something listens there, for this machine alone. */
  readonly address?: { readonly host: string; readonly listens: boolean | undefined }
}

const versionMs = 3500

/** The agents that enabled webhooks name, each with what it needs and what of that is there. */
export const lookAtAgents = async (
  { webhooks }: Config,
  env: NodeJS.ProcessEnv,
  homeFolder: string,
): Promise<AgentFacts[]> => {
  const used = new Map(
    webhooks.filter(({ enabled }) => enabled).map(({ agentName, agent }) => [agentName, agent]),
  )
  return Promise.all(
    [...used].map(async ([name, agent]) => lookAtAgent(name, agent, env, homeFolder)),
  )
}

const lookAtAgent = async (
  name: string,
  agent: Agent,
  env: NodeJS.ProcessEnv,
  homeFolder: string,
): Promise<AgentFacts> => {
  const unset = agentVariables(agent).filter((variable) => secretsOf([variable], env).length === 0)
  const facts = { name, kind: agent.kind, unset, providers: [] }
  if (agent.kind === 'echo') return facts
  if (agent.kind === 'openai') return { ...facts, address: await addressOf(agent.base_url) }
  if (agent.kind === 'http') return { ...facts, address: await addressOf(agent.url) }
  const cwd = agent.cwd === undefined ? undefined : resolve(homeFolder, expandTilde(agent.cwd))
  const program =
    agent.kind === 'command' ? (agent.command[0] ?? '') : agentClis[agent.kind].program
  const path = await pathOf(program, cwd, agent.env?.['PATH'] ?? env['PATH'] ?? env['Path'], env)
  const isKnown = isCliKind(agent.kind)
  return {
    ...facts,
    program,
    providers: providersOf(agent.env ?? {}),
    ...(isKnown && { install: agentClis[agent.kind as keyof typeof agentClis].install }),
    ...(path !== undefined && { path }),
    // A program that is not known may do anything, whatever it is asked.
    ...(path !== undefined &&
      isKnown && { run: await runVersion(path, environmentOf(agent.env ?? {}, env), versionMs) }),
    ...(cwd !== undefined && { cwd: { path: cwd, is: await whatIs(cwd) } }),
  }
}

const providersOf = (env: Readonly<Record<string, string>>): string[] => {
  const named = Object.values(env).filter((value) => value.startsWith('oauth:'))
  return [...new Set(named.map((value) => value.slice('oauth:'.length)))]
}

const pathOf = async (
  program: string,
  cwd: string | undefined,
  searchPath: string | undefined,
  env: NodeJS.ProcessEnv,
): Promise<string | undefined> => {
  if (!/[\\/]/.test(program)) return findProgram(program, searchPath ?? '', env['PATHEXT'])
  const path = isAbsolute(program) ? program : resolve(cwd ?? '', program)
  const [folder, name] = [join(path, '..'), path.split(/[\\/]/).at(-1) ?? '']
  return findProgram(name, folder, env['PATHEXT'])
}

const passed =
  /^(PATH|Path|PATHEXT|HOME|USER|LOGNAME|SHELL|LANG|LC_\w+|TZ|TMPDIR|TEMP|TMP|XDG_\w+|SystemRoot|SystemDrive|USERPROFILE|APPDATA|LOCALAPPDATA|ComSpec|COMSPEC)$/

/** Nothing that is a secret, and nothing that makes a program look for a newer one of itself. */
const environmentOf = (
  added: Readonly<Record<string, string>>,
  env: NodeJS.ProcessEnv,
): Record<string, string> =>
  Object.fromEntries([
    ...Object.entries(env).filter(
      (entry): entry is [string, string] => passed.test(entry[0]) && entry[1] !== undefined,
    ),
    ...Object.entries(added).filter(([, value]) => !/^(env|oauth):/.test(value)),
    ['NO_COLOR', '1'],
    ['DISABLE_AUTOUPDATER', '1'],
    ['NO_UPDATE_NOTIFIER', '1'],
  ])

const whatIs = async (path: string): Promise<NonNullable<AgentFacts['cwd']>['is']> =>
  stat(path).then(
    (found) => (found.isDirectory() ? 'folder' : 'other'),
    () => 'missing',
  )

/** What is on this machine can be asked without a network. */
const addressOf = async (url: string): Promise<NonNullable<AgentFacts['address']>> => {
  const { host, hostname, port, protocol } = new URL(url)
  if (!isLoopbackUrl(url)) return { host, listens: undefined }
  const number = port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port)
  return { host, listens: await canConnect(bareHost(hostname), number, 1000) }
}
