import { tmpdir } from 'node:os'
import { agentClis, isCliKind } from '../../shared/agents/clis.ts'
import { inspectProgram } from '../../shared/agents/program.ts'
import { describeSandboxOf, type ProgramAgent, runsProgram } from '../../shared/agents/tools.ts'
import { type Check, checksFor } from '../../shared/api/checks.ts'
import { listSecrets } from '../../shared/config/environment.ts'
import type { Config } from '../../shared/config/load.ts'
import { localAgents } from '../../shared/config/queue.ts'
import type { Rule } from '../../shared/config/rule.ts'
import { type Agent, isLoopbackUrl } from '../../shared/config/schema.ts'
import { keyFaults, riskWarnings } from '../../shared/config/warnings.ts'
import { DoorwardError, systemCode } from '../../shared/errors.ts'
import { joinUrl } from '../../shared/net.ts'
import { isUnbounded, unbounded } from '../../shared/sandbox/probe.ts'
import { inspectSandbox } from '../../shared/sandbox/warnings.ts'
import { toPlainText } from '../../shared/text.ts'
import { connectTarget, requestTarget } from '../delivery/request.ts'
import type { Asking } from '../delivery/sender.ts'
import { cleanEnvironment } from './environment.ts'
import type { RunProcess } from './orphans.ts'
import { describeExit } from './program.ts'

const { ok, warning, error, skipped } = checksFor('agents')

type AgentCheckParts = {
  readonly env: NodeJS.ProcessEnv
  readonly homeFolder: string
  readonly run: RunProcess
  readonly signal: AbortSignal
  /** Asks servers on other machines too. */
  readonly asking: Asking | undefined
}

/** Checks whether the agents of enabled webhooks can run, and which may act without permission. */
export const checkAgents = async (
  { config, env }: { readonly config: Config; readonly env: NodeJS.ProcessEnv },
  homeFolder: string,
  run: RunProcess,
  options: Pick<AgentCheckParts, 'signal' | 'asking'>,
): Promise<Check[]> => {
  // The rule with a workspace comes last and wins: it asks for a sandbox.
  const rules = localAgents(config).toSorted(
    (one, other) => Number(one.workspace !== undefined) - Number(other.workspace !== undefined),
  )
  if (rules.length === 0) return [skipped('agents', 'none runs on this machine')]
  const parts = { env, homeFolder, run, ...options }
  const bare = new Set<string>()
  const used = [...new Map(rules.map((rule) => [rule.agentName, rule])).values()]
  const faults = keyFaults({ config, env })
  const checks = await Promise.all(
    used.map(async (rule) => {
      const { agent, agentName: name } = rule
      const unset = faults
        .filter(({ about }) => about.agent === name)
        .map(({ what, hint }) => (runsProgram(agent) ? warning : error)(name, what, hint))
      const found = runsProgram(agent)
        ? await checkProgram(name, agent, rule.workspace, parts, bare)
        : [await checkServer(name, agent, parts)]
      const all = [...unset, ...found]
      const wrong = all.filter(({ status }) => status !== 'ok')
      return wrong.length > 0 ? wrong : all
    }),
  )
  return [
    ...checks.flat(),
    ...riskWarnings(config, bare).map(({ detail, hint }) => warning('permissions', detail, hint)),
  ]
}

const checkProgram = async (
  name: string,
  agent: ProgramAgent,
  workspace: Rule['workspace'],
  parts: AgentCheckParts,
  bare: Set<string>,
): Promise<Check[]> => {
  const bounds = describeSandboxOf(agent, workspace !== undefined)
  const { env, homeFolder } = parts
  const { path, faults } = await inspectProgram(agent, env, homeFolder)
  const sandbox = await inspectSandbox(agent, workspace, env, homeFolder)
  if (sandbox && !sandbox.isRefused) bare.add(name)
  return [
    ...faults.map(({ what, hint }) => error(name, what, hint)),
    ...(sandbox
      ? [(sandbox.isRefused ? error : warning)(name, `it ${sandbox.what}`, sandbox.hint)]
      : []),
    ...(!sandbox && bounds !== undefined && isUnbounded()
      ? [warning(name, `it ${unbounded.what}`, unbounded.hint)]
      : []),
    ...(path === undefined ? [] : [await checkVersion(name, agent, path, parts, bounds)]),
  ]
}

const versionMs = 3500

/** Runs a known program with `--version`, outside any project and without secrets. Others may do anything. */
const checkVersion = async (
  name: string,
  agent: ProgramAgent,
  path: string,
  { env, run, signal }: AgentCheckParts,
  bounds: string | undefined,
): Promise<Check> => {
  const sandbox = bounds === undefined ? '' : `; sandbox: ${bounds}`
  // Only a shell can run the second, and it would interpret the arguments.
  if (!isCliKind(agent.kind) || /\.(cmd|bat)$/i.test(path))
    return ok(name, `${path}; it was not run${sandbox}`)
  const own = Object.entries(agent.env ?? {}).filter(([, value]) => !/^(env|oauth):/.test(value))
  const again = `install it again: ${agentClis[agent.kind].install}`
  const control = new AbortController()
  const abort = () => control.abort('immediately')
  const timer = setTimeout(abort, versionMs)
  signal.addEventListener('abort', abort, { once: true })
  try {
    const result = await run({
      argv: [path, '--version'],
      cwd: tmpdir(),
      env: cleanEnvironment(env, {
        ...Object.fromEntries(own),
        NO_COLOR: '1',
        DISABLE_AUTOUPDATER: '1',
        NO_UPDATE_NOTIFIER: '1',
      }),
      input: '',
      timeoutMs: versionMs * 2,
      outputLimitBytes: 4096,
      signal: control.signal,
    })
    if (result.reason !== 'exit')
      return warning(name, `${path} did not answer --version in time`, `${path} --version`)
    if (result.exitCode === 0)
      return ok(name, `${path} (${firstLine(result.stdout) || 'no version'})${sandbox}`)
    return error(name, `${path} cannot be run: --version ${describeExit(result)}`, again)
  } catch (thrown) {
    const why = systemCode(thrown) ?? 'it cannot be started'
    return error(name, `${path} cannot be run: --version ${why}`, again)
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
  }
}

const firstLine = (output: Buffer): string =>
  (
    toPlainText(output.toString('utf8'))
      .split('\n')
      .map((line) => line.trim())
      .find((line) => line !== '') ?? ''
  ).slice(0, 60)

/** Whether the server of an agent answers; asks no model. On this machine that needs no network. */
const checkServer = async (
  name: string,
  agent: Exclude<Agent, ProgramAgent>,
  { env, signal, asking }: AgentCheckParts,
): Promise<Check> => {
  if (agent.kind === 'echo') return ok(name, 'answers with the prompt')
  const url = new URL(agent.kind === 'openai' ? agent.base_url : agent.url)
  const { host } = url
  const isLocal = isLoopbackUrl(url.href)
  if (!asking && !isLocal) return skipped(name, `only --online asks ${host}`)
  try {
    if (asking && agent.kind === 'openai') return await checkModels(name, agent, env, asking)
    await connectTarget(url, host, asking ?? { signal, timeoutMs: 1000 })
    return ok(name, `something listens at ${host}`)
  } catch (thrown) {
    if (!(thrown instanceof DoorwardError)) throw thrown
    const start = host.endsWith(':11434')
      ? 'ollama serve'
      : 'start the server of the model, or fix its address: doorward config edit agents'
    return error(name, thrown.message, isLocal ? start : thrown.hint)
  }
}

const checkModels = async (
  name: string,
  agent: Extract<Agent, { kind: 'openai' }>,
  env: NodeJS.ProcessEnv,
  asking: Asking,
): Promise<Check> => {
  const { base_url: base, api_key_env: variable } = agent
  const url = joinUrl(base, '/models')
  const key = variable === undefined ? undefined : listSecrets([variable], env)[0]?.trim()
  const isKey = key !== undefined && /^[\x21-\x7e]+$/.test(key)
  const { status } = await requestTarget(url, {
    target: url.host,
    ...(isKey && { token: key }),
    attempt: asking,
  })
  if (status === 401 || status === 403)
    return error(
      name,
      `${url.host} refuses the key`,
      variable === undefined
        ? 'name the variable with the key: api_key_env in agents.yaml'
        : `put a valid key into ${variable} in .env`,
    )
  // Every known server lists its models, but another need not.
  if (status >= 400)
    return warning(
      name,
      `${url.host} answers ${status} to the request for its models (${url.pathname})`,
      'check base_url: it ends where /chat/completions begins, mostly with /v1',
    )
  return ok(name, `${url.host} answers`)
}
