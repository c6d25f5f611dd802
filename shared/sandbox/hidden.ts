import { realpath } from 'node:fs/promises'
import { dirname, sep } from 'node:path'
import { getUserHome } from '../home/home.ts'
import { findSandbox, type Sandbox } from './probe.ts'

export const isInside = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder.endsWith(sep) ? folder : `${folder}${sep}`)

/** The homes of the user and of doorward, by their names and where they really are. */
export const listHomes = async (env: NodeJS.ProcessEnv, homeFolder: string): Promise<string[]> => {
  const homes = [getUserHome(env), homeFolder]
  const real = await Promise.all(homes.map(async (home) => realpath(home).catch(() => home)))
  return [...new Set([...homes, ...real])]
}

/** True when a folder is the root, or contains or is a home. */
export const wouldShow = (path: string, homes: readonly string[]): boolean =>
  path === dirname(path) || homes.some((home) => isInside(home, path))

/** The sandbox for a program that starts in this folder; a folder that contains a home would show it all. */
export const findSandboxFor = async (
  cwd: string,
  homes: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<Sandbox> =>
  wouldShow(await realpath(cwd).catch(() => cwd), homes)
    ? {
        missing: `its cwd ${cwd} contains your home folder, or doorward's`,
        hint: 'name a folder of a project: doorward config edit agents',
      }
    : findSandbox(env)
