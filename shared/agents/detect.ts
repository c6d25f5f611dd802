import { access, constants, stat } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import type { Agent } from './schema.ts'
import { type AgentCli, type CliKind, agentClis, cliKinds, isCliKind } from './clis.ts'

/** An agent program; without `path` it is not installed. */
export type DetectedCli = {
  readonly kind: CliKind
  readonly name: string
  readonly path?: string
  readonly install: string
}

/** Looks for all known agent programs on PATH, without running them. */
export const detectAgentClis = async (env: NodeJS.ProcessEnv): Promise<DetectedCli[]> =>
  Promise.all(
    cliKinds.map(async (kind) => {
      const { name, program, install } = agentClis[kind]
      const path = await findProgram(program, env['PATH'] ?? env['Path'] ?? '', env['PATHEXT'])
      return { kind, name, install, ...(path !== undefined && { path }) }
    }),
  )

/** The program that this agent needs if it is not on its PATH, with the command that installs it. */
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

/** The path of a program on this search path, or undefined. `extensions` is PATHEXT, on Windows. */
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

/** True for a file that this user may run. */
export const isExecutable = async (path: string): Promise<boolean> => {
  try {
    await access(path, constants.X_OK)
    return (await stat(path)).isFile()
  } catch {
    return false
  }
}
