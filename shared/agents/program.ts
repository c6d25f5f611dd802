import { stat } from 'node:fs/promises'
import { isAbsolute, resolve } from 'node:path'
import { expandTilde, quoteForShell } from '../home/home.ts'
import { agentClis, isCliKind } from './clis.ts'
import { type ProgramAgent, runsProgram } from './tools.ts'
import { findProgram, isExecutable } from './detect.ts'
import type { Config } from '../config/load.ts'
import { warn, type Warning } from '../config/warning.ts'
import { localAgents } from '../config/queue.ts'

/** Why an agent cannot start; `what` goes on after "agent <name>: ". */
export type ProgramFault = {
  readonly code: 'agent-program-missing' | 'agent-folder-missing'
  readonly what: string
  readonly hint: string
}

export type InspectedProgram = {
  readonly program: string
  /** Its path, where it can be run. */
  readonly path?: string
  readonly faults: readonly ProgramFault[]
}

const edit = 'doorward config edit agents'

/** Looks for the program and the folder of an agent, without running anything. */
export const inspectProgram = async (
  agent: ProgramAgent,
  env: NodeJS.ProcessEnv,
  homeFolder: string,
): Promise<InspectedProgram> => {
  const program =
    agent.kind === 'command' ? (agent.command[0] ?? '') : agentClis[agent.kind].program
  const cwd = agent.cwd === undefined ? undefined : resolve(homeFolder, expandTilde(agent.cwd))
  const path = await findPath(program, cwd, searchPath(agent, env), env['PATHEXT'])
  const programFault = path === undefined ? describeMissing(program, agent) : undefined
  const folderFault = cwd === undefined ? undefined : await checkFolder(cwd)
  return {
    program,
    ...(path !== undefined && { path }),
    faults: [programFault, folderFault].filter((fault) => fault !== undefined),
  }
}

/** The agent's own PATH, which may be `env:NAME`, or the daemon's. */
const searchPath = (agent: ProgramAgent, env: NodeJS.ProcessEnv): string => {
  const own = agent.env?.['PATH']
  const named = own?.startsWith('env:') ? env[own.slice('env:'.length)] : own
  return named ?? env['PATH'] ?? env['Path'] ?? ''
}

const findPath = async (
  program: string,
  cwd: string | undefined,
  path: string,
  extensions: string | undefined,
): Promise<string | undefined> => {
  if (!/[\\/]/.test(program)) return findProgram(program, path, extensions)
  // Without a cwd it runs in a new, empty folder.
  if (cwd === undefined && !isAbsolute(program)) return undefined
  const full = resolve(cwd ?? '', program)
  if (await isExecutable(full)) return full
  const [folder, name] = [resolve(full, '..'), full.split(/[\\/]/).at(-1) ?? '']
  return findProgram(name, folder, extensions)
}

const describeMissing = (program: string, agent: ProgramAgent): ProgramFault => {
  const missing = (what: string, hint: string) =>
    ({ code: 'agent-program-missing', what, hint }) as const
  if (agent.kind !== 'command')
    return missing(
      `the program ${program} is not on PATH`,
      `install it with: ${agentClis[agent.kind].install}`,
    )
  const [, first] = /^(\S+)\s+\S/.exec(program) ?? []
  if (first !== undefined)
    return missing(
      `the program "${first} …" is several words in one, and no shell takes them apart`,
      `write each word apart, as [${first}, …], or run a shell: [sh, -c, "…"]: ${edit}`,
    )
  return /[\\/]/.test(program)
    ? missing(
        `${program} is missing, or not executable`,
        `install it, make it executable with chmod +x, or write its full path, without ~ and variables: ${edit}`,
      )
    : missing(
        `the program ${program} is not on PATH`,
        `install it, or write its full path: ${edit}`,
      )
}

const checkFolder = async (path: string): Promise<ProgramFault | undefined> => {
  const fault = (what: string, hint: string) =>
    ({ code: 'agent-folder-missing', what, hint }) as const
  const found = await stat(path).catch(() => undefined)
  if (found?.isDirectory()) return undefined
  if (found) return fault(`its cwd ${path} is not a folder`, `name a folder: ${edit}`)
  return fault(
    `its cwd ${path} is not a folder: it does not exist`,
    // `~name` and variables are not replaced either, and would be part of the name.
    /[~$*{}]/.test(path) ? `name a folder that exists: ${edit}` : `mkdir -p ${quoteForShell(path)}`,
  )
}

/** Warnings for agents of enabled webhooks that cannot start. */
export const agentProgramWarnings = async (
  config: Config,
  env: NodeJS.ProcessEnv,
  homeFolder: string,
): Promise<Warning[]> => {
  const used = new Map(localAgents(config).map(({ agentName, agent }) => [agentName, agent]))
  const found = await Promise.all(
    [...used].map(async ([name, agent]) => {
      if (!runsProgram(agent)) return []
      const { program, faults } = await inspectProgram(agent, env, homeFolder)
      return faults.flatMap(({ code, what, hint }) => {
        const needs = isCliKind(agent.kind) && code === 'agent-program-missing'
        const detail = needs
          ? `agent ${name} needs the program ${program}, which is not on PATH`
          : `agent ${name} cannot start: ${what}`
        return warn(code, detail, hint, { agent: name })
      })
    }),
  )
  return found.flat()
}
