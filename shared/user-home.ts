import { homedir } from 'node:os'
import { isAbsolute } from 'node:path'
import { DoorwardError } from './errors.ts'

/**
 * The home folder of the user; undefined where neither HOME nor the system's list of users names one, as
 * in a container that runs under a number of its own.
 */
export const findUserHome = (): string | undefined => {
  try {
    const folder = homedir()
    return isAbsolute(folder) ? folder : undefined
  } catch {
    return undefined
  }
}

/** The same as programs with this environment take it, HOME first; the root folder where there is none. */
export const homeFor = (env: NodeJS.ProcessEnv): string => env['HOME'] || (findUserHome() ?? '/')

/** The home folder of the user. Throws `home-unusable` where there is none. */
export const userHome = (): string => {
  const folder = findUserHome()
  if (folder !== undefined) return folder
  throw new DoorwardError('home-unusable', 'no home folder: HOME is not set', {
    hint: 'set HOME, or name a folder with --home or DOORWARD_HOME',
  })
}
