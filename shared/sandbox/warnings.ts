import { resolve } from 'node:path'
import { expandTilde } from '../home/home.ts'
import { findSandboxFor, isUnbounded, listHomes, findSandbox, unbounded } from './probe.ts'
import { needsSandbox, type ProgramAgent, runsProgram, wantsSandbox } from '../agents/tools.ts'
import type { Config } from '../config/load.ts'
import type { Rule } from '../config/rule.ts'
import type { Warning } from '../config/warning.ts'
import { riskWarnings } from '../config/warnings.ts'
import { localAgents } from '../config/queue.ts'

/** Why an agent has no sandbox though it asks for one; `what` goes on after "agent <name> ". */
export type SandboxFault = {
  readonly what: string
  readonly hint: string
  /** It is not run at all. */
  readonly isRefused: boolean
}

/** Looks for the sandbox of an agent; undefined when it asks for none, or there is one. */
export const inspectSandbox = async (
  agent: ProgramAgent,
  workspace: Rule['workspace'],
  env: NodeJS.ProcessEnv,
  homeFolder: string,
): Promise<SandboxFault | undefined> => {
  if (!wantsSandbox(agent, workspace !== undefined)) return undefined
  // The folder of a workspace is doorward's.
  const cwd = workspace ? undefined : agent.cwd
  const sandbox =
    cwd === undefined
      ? await findSandbox(env)
      : await findSandboxFor(
          resolve(homeFolder, expandTilde(cwd)),
          await listHomes(env, homeFolder),
          env,
        )
  if (!('missing' in sandbox)) return undefined
  const { missing, hint } = sandbox
  const isRefused = needsSandbox(agent)
  const what = isRefused
    ? `is not run without a sandbox: ${missing}`
    : `runs without a sandbox: ${missing}`
  return { what, hint, isRefused }
}

/** Agents of enabled webhooks whose sandbox is missing or bounds no processes, and what is dangerous without it. */
export const sandboxWarnings = async (
  config: Config,
  env: NodeJS.ProcessEnv,
  homeFolder: string,
): Promise<Warning[]> => {
  const found = new Map<string, Warning>()
  const bare = new Set<string>()
  for (const { agentName, agent, workspace } of localAgents(config)) {
    if (!runsProgram(agent)) continue
    const fault = await inspectSandbox(agent, workspace, env, homeFolder)
    if (!fault && isUnbounded() && wantsSandbox(agent, workspace !== undefined))
      found.set(agentName, {
        code: 'sandbox-unbounded',
        detail: `agent ${agentName} ${unbounded.what}`,
        hint: unbounded.hint,
        about: { agent: agentName },
      })
    if (!fault) continue
    found.set(agentName, {
      code: 'sandbox-missing',
      detail: `agent ${agentName} ${fault.what}`,
      hint: fault.hint,
      about: { agent: agentName },
    })
    if (!fault.isRefused) bare.add(agentName)
  }
  const known = new Set(riskWarnings(config).map(({ detail }) => detail))
  const risks = riskWarnings(config, bare).filter(({ detail }) => !known.has(detail))
  return [...found.values(), ...risks]
}
