import { homedir } from 'node:os'
import { join } from 'node:path'

/** The path, with a `~` in front as the home folder of the user: what no shell has expanded. */
export const expandTilde = (path: string, userHome: () => string = homedir): string =>
  path === '~' || path.startsWith('~/') ? join(userHome(), path.slice(1)) : path
