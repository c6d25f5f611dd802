import type { StatusProblem } from '../../../shared/api.ts'
import { riskWarnings, withoutVariable } from '../../../shared/config/warnings.ts'
import { isLoopbackUrl } from '../../../shared/config/schema.ts'
import type { Config } from '../../../shared/config/load.ts'
import { shellWord } from '../../shell-word.ts'
import { type Check, checksOf } from '../check.ts'
import type { AgentFacts } from '../look/agents.ts'

const { ok, warning, error, skipped } = checksOf('agents')

/** Whether the agents of enabled webhooks can be asked, and which may act on their own. */
export const judgeAgents = (
  agents: readonly AgentFacts[],
  config: Config,
  daemonSays: readonly StatusProblem[],
): Check[] => [
  ...(agents.length === 0 ? [skipped('agents', 'no enabled webhook names one')] : []),
  ...agents.flatMap((agent) => judgeAgent(agent, daemonSays)),
  ...riskWarnings(config).map(({ detail, hint }) => warning('permissions', detail, hint)),
]

const judgeAgent = (facts: AgentFacts, daemonSays: readonly StatusProblem[]): Check[] => {
  const { name, unset, cwd } = facts
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
  if (cwd && cwd.is !== 'folder') {
    const hint =
      cwd.is === 'missing'
        ? `mkdir -p ${shellWord(cwd.path)}`
        : 'name a folder: doorward config edit agents'
    faults.push(error(name, `its cwd ${cwd.path} is no folder`, hint))
  }
  const itself = judgeItself(facts, daemonSays)
  return itself.status === 'ok' && faults.length > 0 ? faults : [...faults, itself]
}

const judgeItself = (facts: AgentFacts, daemonSays: readonly StatusProblem[]): Check => {
  const { name, kind, program = '', path, install, run, address } = facts
  if (kind === 'echo') return ok(name, 'answers with the prompt; needs nothing')
  if (address)
    return address.listens === undefined
      ? skipped(name, `${address.host} is asked with --online only`)
      : address.listens
        ? ok(name, `something listens at ${address.host}`)
        : error(name, `nothing listens at ${address.host}`, startHint(address.host))
  if (path === undefined)
    return error(
      name,
      /[\\/]/.test(program)
        ? `${program} is not there, or not executable`
        : `the program ${program} is not on PATH`,
      install === undefined
        ? 'install it, or write its full path: doorward config edit agents'
        : `install it with: ${install}`,
    )
  if (run?.is === 'failed')
    return error(
      name,
      `${path} cannot be run: --version ${run.how}`,
      install === undefined ? undefined : `install it again: ${install}`,
    )
  if (run?.is === 'late')
    return warning(name, `${path} did not answer --version in time`, `${program} --version`)
  const missing = daemonSays.find(
    ({ code, detail }) =>
      code === 'agent-program-missing' && detail.startsWith(`agent ${name} needs`),
  )
  if (missing)
    return error(
      name,
      `it is at ${path}, but the running daemon has another PATH and does not find it`,
      // A restart hands the environment on; a service has the one it was installed with.
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
    : 'start the server of the model, or mend its address: doorward config edit agents'
