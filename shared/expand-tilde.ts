import { join } from 'node:path'
import { userHome } from './user-home.ts'

/**
 * The path, with a `~` in front as the home folder of the user: what no shell has expanded. Throws
 * `home-unusable` for a `~` where there is no such folder.
 */
export const expandTilde = (path: string): string =>
  path === '~' || path.startsWith('~/') ? join(userHome(), path.slice(1)) : path
