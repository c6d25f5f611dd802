import { access, constants, stat } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import type { Agent } from './agent-schema.ts'
import { type AgentCli, type CliKind, agentClis, cliKinds, isCliKind } from './agent-clis.ts'
import type { Warning } from './warning.ts'
import type { Config } from './load.ts'

/** An agent program, and where it lies on this machine; without `path` it is not installed. */
export type DetectedCli = {
  readonly kind: CliKind
  readonly name: string
  readonly path?: string
  readonly install: string
}

/** Looks for every agent program that doorward knows on PATH. Runs none of them. */
export const detectAgentClis = async (env: NodeJS.ProcessEnv): Promise<DetectedCli[]> =>
  Promise.all(
    cliKinds.map(async (kind) => {
      const { name, program, install } = agentClis[kind]
      const path = await findProgram(program, env['PATH'] ?? env['Path'] ?? '', env['PATHEXT'])
      return { kind, name, install, ...(path !== undefined && { path }) }
    }),
  )

/**
 * The enabled webhooks whose agent needs a program that is not there, as warnings. An entry with a PATH
 * of its own is looked up on that one.
 */
export const warnMissingPrograms = async (
  config: Config,
  env: NodeJS.ProcessEnv,
): Promise<Warning[]> => {
  const used = new Map(
    config.webhooks
      .filter(({ enabled }) => enabled)
      .map(({ agentName, agent }) => [agentName, agent]),
  )
  const found = await Promise.all(
    [...used].map(async ([agentName, agent]): Promise<Warning[]> => {
      const missing = await findMissingProgram(agent, env)
      if (!missing) return []
      return [
        {
          code: 'agent-program-missing',
          detail: `agent ${agentName} needs the program ${missing.program}, which is not on PATH`,
          hint: `install it with: ${missing.install}`,
        },
      ]
    }),
  )
  return found.flat()
}

/** The program that this agent needs and that is not on its PATH, with what installs it. */
export const findMissingProgram = async (
  agent: Agent,
  env: NodeJS.ProcessEnv,
): Promise<Pick<AgentCli, 'program' | 'install'> | undefined> => {
  if (!isCliKind(agent.kind)) return undefined
  const { program, install } = agentClis[agent.kind]
  const own = 'env' in agent ? agent.env?.['PATH'] : undefined
  const path = own ?? env['PATH'] ?? env['Path'] ?? ''
  return (await findProgram(program, path, env['PATHEXT'])) ? undefined : { program, install }
}

/** Where a program lies on this search path, or undefined. `extensions` are those of PATHEXT, on Windows. */
export const findProgram = async (
  program: string,
  searchPath: string,
  extensions: string | undefined,
): Promise<string | undefined> => {
  const endings = process.platform === 'win32' ? (extensions ?? '.EXE;.CMD').split(';') : ['']
  for (const folder of searchPath.split(delimiter))
    for (const ending of endings) {
      if (folder === '') continue
      const path = join(folder, `${program}${ending}`)
      if (await isExecutable(path)) return path
    }
  return undefined
}

const isExecutable = async (path: string): Promise<boolean> => {
  try {
    await access(path, constants.X_OK)
    return (await stat(path)).isFile()
  } catch {
    return false
  }
}
