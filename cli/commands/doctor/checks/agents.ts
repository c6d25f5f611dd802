import { ask, reachServer } from '../ask.ts'
import { spawn } from 'node:child_process'
import { tmpdir } from 'node:os'
import type { StatusProblem } from '../../../../shared/api.ts'
import { agentClis, isCliKind } from '../../../../shared/agents/clis.ts'
import { inspectProgram, type ProgramFault } from '../../../../shared/agents/program.ts'
import { listSecrets } from '../../../../shared/config/environment.ts'
import type { Config } from '../../../../shared/config/load.ts'
import type { Rule } from '../../../../shared/config/rule.ts'
import { inspectSandbox, type SandboxFault } from '../../../../shared/sandbox/warnings.ts'
import { localAgents } from '../../../../shared/config/queue.ts'
import { type Agent, isLoopbackUrl } from '../../../../shared/config/schema.ts'
import { agentVariables } from '../../../../shared/config/variables.ts'
import { riskWarnings, withoutVariable } from '../../../../shared/config/warnings.ts'
import { bareHost, joinUrl } from '../../../../shared/net.ts'
import { toPlainText } from '../../../../shared/text.ts'
import { type Check, checksFor } from '../check.ts'
import { canConnect } from './ports.ts'

type AgentFacts = {
  readonly name: string
  readonly kind: Agent['kind']
  /** The program it runs, and its path if found. */
  readonly program?: string
  readonly path?: string
  readonly install?: string
  readonly run?: VersionRun
  /** Why it cannot start. */
  readonly faults?: readonly ProgramFault[]
  /** Why it has no sandbox though it asks for one. */
  readonly sandbox?: SandboxFault | undefined
  /** Unset variables that it needs. */
  readonly unset: readonly string[]
  /** Providers whose tokens it receives. */
  readonly providers: readonly string[]
  /** Its host and port, and whether something listens there; undefined for another machine. */
  readonly address?: { readonly host: string; readonly listens: boolean | undefined }
}

const versionMs = 3500

/** Collects the agents of enabled webhooks, and which of their requirements are met. */
export const collectAgents = async (
  config: Config,
  env: NodeJS.ProcessEnv,
  homeFolder: string,
): Promise<AgentFacts[]> => {
  // Of several rules with one agent, that with a workspace: it asks for a sandbox.
  const rules = localAgents(config).toSorted((one) => (one.workspace ? 1 : -1))
  const used = new Map(rules.map((rule) => [rule.agentName, rule]))
  return Promise.all([...used.values()].map(async (rule) => collectAgent(rule, env, homeFolder)))
}

const collectAgent = async (
  { agentName: name, agent, workspace }: Pick<Rule, 'agentName' | 'agent' | 'workspace'>,
  env: NodeJS.ProcessEnv,
  homeFolder: string,
): Promise<AgentFacts> => {
  const unset = agentVariables(agent).filter(
    (variable) => listSecrets([variable], env).length === 0,
  )
  const facts = { name, kind: agent.kind, unset, providers: [] }
  if (agent.kind === 'echo') return facts
  if (agent.kind === 'openai') return { ...facts, address: await probeAddress(agent.base_url) }
  if (agent.kind === 'http') return { ...facts, address: await probeAddress(agent.url) }
  const { program, path, faults } = await inspectProgram(agent, env, homeFolder)
  const isKnown = isCliKind(agent.kind)
  return {
    ...facts,
    program,
    faults,
    sandbox: await inspectSandbox(agent, workspace, env, homeFolder),
    providers: listProviders(agent.env ?? {}),
    ...(isKnown && { install: agentClis[agent.kind as keyof typeof agentClis].install }),
    ...(path !== undefined && { path }),
    // An unknown program may do anything, even with --version.
    ...(path !== undefined &&
      isKnown && {
        run: await runVersion(path, buildEnvironment(agent.env ?? {}, env), versionMs),
      }),
  }
}

const listProviders = (env: Readonly<Record<string, string>>): string[] => {
  const named = Object.values(env).filter((value) => value.startsWith('oauth:'))
  return [...new Set(named.map((value) => value.slice('oauth:'.length)))]
}

const passed =
  /^(PATH|Path|PATHEXT|HOME|USER|LOGNAME|SHELL|LANG|LC_\w+|TZ|TMPDIR|TEMP|TMP|XDG_\w+|SystemRoot|SystemDrive|USERPROFILE|APPDATA|LOCALAPPDATA|ComSpec|COMSPEC)$/

/** Without secrets, and without checks for updates. */
const buildEnvironment = (
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

/** Connects only to this machine: that needs no network. */
const probeAddress = async (url: string): Promise<NonNullable<AgentFacts['address']>> => {
  const { host, hostname, port, protocol } = new URL(url)
  if (!isLoopbackUrl(url)) return { host, listens: undefined }
  const number = port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port)
  return { host, listens: await canConnect(bareHost(hostname), number, 1000) }
}

const { ok, warning, error, skipped } = checksFor('agents')

/** Checks whether the agents of enabled webhooks can run, and which may act without permission. */
export const checkAgents = (
  agents: readonly AgentFacts[],
  config: Config,
  daemonProblems: readonly StatusProblem[],
): Check[] => [
  ...(agents.length === 0 ? [skipped('agents', 'none runs on this machine')] : []),
  ...agents.flatMap((agent) => checkAgent(agent, daemonProblems)),
  ...riskWarnings(config, listUnconfined(agents)).map(({ detail, hint }) =>
    warning('permissions', detail, hint),
  ),
]

const listUnconfined = (agents: readonly AgentFacts[]): Set<string> =>
  new Set(agents.flatMap(({ name, sandbox }) => (sandbox && !sandbox.isRefused ? [name] : [])))

const checkAgent = (facts: AgentFacts, daemonProblems: readonly StatusProblem[]): Check[] => {
  const { name, unset } = facts
  const faults: Check[] = []
  const key = facts.kind === 'openai' || facts.kind === 'http'
  if (unset.length > 0)
    faults.push(
      (key ? error : warning)(
        name,
        `${unset.join(', ')} ${unset.length === 1 ? 'is' : 'are'} unset or empty: ${withoutVariable(facts)}`,
        `set ${unset.join(', ')} in .env: doorward config edit env`,
      ),
    )
  for (const { what, hint } of facts.faults ?? []) faults.push(error(name, what, hint))
  if (facts.sandbox) {
    const { what, hint, isRefused } = facts.sandbox
    faults.push((isRefused ? error : warning)(name, `it ${what}`, hint))
  }
  if (facts.program !== undefined && facts.path === undefined) return faults
  const itself = checkItself(facts, daemonProblems)
  return itself.status === 'ok' && faults.length > 0 ? faults : [...faults, itself]
}

const checkItself = (facts: AgentFacts, daemonProblems: readonly StatusProblem[]): Check => {
  const { name, kind, program = '', path, install, run, address } = facts
  if (kind === 'echo') return ok(name, 'answers with the prompt')
  if (address)
    return address.listens === undefined
      ? skipped(name, `only --online asks ${address.host}`)
      : address.listens
        ? ok(name, `something listens at ${address.host}`)
        : error(name, `nothing listens at ${address.host}`, startHint(address.host))
  if (run?.is === 'failed')
    return error(
      name,
      `${path} cannot be run: --version ${run.how}`,
      install === undefined ? undefined : `install it again: ${install}`,
    )
  if (run?.is === 'late')
    return warning(name, `${path} did not answer --version in time`, `${program} --version`)
  const missing = daemonProblems.find(
    ({ code, detail }) =>
      code === 'agent-program-missing' &&
      [`agent ${name} needs `, `agent ${name} cannot start: the program `].some((start) =>
        detail.startsWith(start),
      ),
  )
  if (missing)
    return error(
      name,
      `it is at ${path}, but not on the PATH of the running daemon`,
      // A restart keeps the environment; a service has that of its installation.
      'from this shell: doorward daemon stop && doorward daemon start (if it starts at login: doorward daemon install)',
    )
  return ok(
    name,
    run?.is === 'answered' ? `${path} (${run.line || 'no version'})` : `${path}; it was not run`,
  )
}

const startHint = (host: string): string =>
  isLoopbackUrl(`http://${host}`) && host.endsWith(':11434')
    ? 'ollama serve'
    : 'start the server of the model, or fix its address: doorward config edit agents'

/** How a program answered to `--version`. */
type VersionRun =
  | { readonly is: 'answered'; readonly line: string }
  | { readonly is: 'failed'; readonly how: string }
  | { readonly is: 'late' }
  | { readonly is: 'not-run' }

const longestLine = 60
const mostBytes = 4096

/**
 * Runs `<path> --version` for at most `limitMs`, outside any project, without input and with these variables
 * only. Kills its whole process group at the limit.
 */
const runVersion = async (
  path: string,
  env: Readonly<Record<string, string>>,
  limitMs: number,
): Promise<VersionRun> => {
  // Only a shell can run these, and it would interpret the arguments.
  if (/\.(cmd|bat)$/i.test(path)) return { is: 'not-run' }
  return new Promise((resolve) => {
    const child = spawn(path, ['--version'], {
      cwd: tmpdir(),
      env: { ...env },
      stdio: ['ignore', 'pipe', 'ignore'],
      detached: process.platform !== 'win32',
      windowsHide: true,
    })
    let output = ''
    const timer = setTimeout(() => {
      killGroup(child.pid)
      child.stdout.destroy()
      resolve({ is: 'late' })
    }, limitMs)
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (output.length < mostBytes) output += text
    })
    child.once('error', (error) => {
      clearTimeout(timer)
      resolve({ is: 'failed', how: 'code' in error ? String(error.code) : 'it cannot be started' })
    })
    child.once('close', (code, signal) => {
      clearTimeout(timer)
      if (code === 0) resolve({ is: 'answered', line: firstLine(output) })
      else
        resolve({ is: 'failed', how: signal ? `was killed by ${signal}` : `exited with ${code}` })
    })
  })
}

const firstLine = (text: string): string =>
  (
    toPlainText(text)
      .split('\n')
      .map((line) => line.trim())
      .find((line) => line !== '') ?? ''
  ).slice(0, longestLine)

/** Kills the group: many of these programs are scripts that start the real one. */
const killGroup = (pid: number | undefined): void => {
  if (pid === undefined) return
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, 'SIGKILL')
  } catch {
    // It has just exited.
  }
}

/** Checks whether the servers of agents answer; asks no model. */
export const reachAgents = async (config: Config, env: NodeJS.ProcessEnv): Promise<Check[]> => {
  const used = new Map(localAgents(config).map(({ agentName, agent }) => [agentName, agent]))
  const checks = await Promise.all(
    [...used].map(async ([name, agent]): Promise<Check[]> => {
      if (agent.kind === 'openai') {
        const url = joinUrl(agent.base_url, '/models')
        const [key] = agent.api_key_env === undefined ? [] : listSecrets([agent.api_key_env], env)
        const isKey = key !== undefined && /^[\x21-\x7e]+$/.test(key.trim())
        const headers: Record<string, string> = isKey
          ? { authorization: `Bearer ${key.trim()}` }
          : {}
        const asked = await ask(url, { headers })
        if (asked.is === 'failed')
          return [error(name, `${url.host}: ${asked.why}`, 'check base_url and the network')]
        if (asked.status === 401 || asked.status === 403)
          return [
            error(
              name,
              `${url.host} refuses the key`,
              agent.api_key_env === undefined
                ? 'name the variable with the key: api_key_env in agents.yaml'
                : `put a valid key into ${agent.api_key_env} in .env`,
            ),
          ]
        // Every known server lists its models, but another need not.
        if (asked.status >= 400)
          return [
            warning(
              name,
              `${url.host} answers ${asked.status} to the request for its models (${url.pathname})`,
              'check base_url: it ends where /chat/completions begins, mostly with /v1',
            ),
          ]
        return [ok(name, `${url.host} answers`)]
      }
      if (agent.kind === 'http') {
        const url = new URL(agent.url)
        const why = await reachServer(url)
        return [
          why === undefined
            ? ok(name, `something listens at ${url.host}; nothing was sent`)
            : error(name, `${url.host}: ${why}`, 'check its url and the network'),
        ]
      }
      return []
    }),
  )
  return checks.flat()
}
