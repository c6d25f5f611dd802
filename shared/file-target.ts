import { dirname, isAbsolute, join, relative, sep } from 'node:path'
import { expandTilde } from './expand-tilde.ts'
import type { Template } from './template.ts'

/** The file that a `file:` target names: under the home, unless its path is absolute or begins with `~/`. */
export const targetFile = (path: string, homeFolder: string): string => {
  if (path.startsWith('~/')) return expandTilde(path)
  return isAbsolute(path) ? path : join(homeFolder, path)
}

/** True where the folders of a target are made with its file: no others are. */
export const makesFolders = (path: string): boolean => !isAbsolute(path) && !path.startsWith('~/')

/** The folder of the file a target names, as far as no event chooses it. */
export const fixedFolder = ({ source }: Template, homeFolder: string): string =>
  dirname(targetFile(`${source.split('{{')[0]}x`, homeFolder))

const ours = new Set(['.env', 'config', 'run', 'tokens', 'clients'])

/**
 * True for what doorward itself reads or keeps secret under home, and its log: a target may be made
 * of names out of a payload alone, and an answer in `.env` would be the next start's secrets.
 */
export const isOwnFile = (file: string, homeFolder: string): boolean => {
  const [first = '', second = ''] = relative(homeFolder, file).split(sep).map(folded)
  return ours.has(first) || (first === 'logs' && second.startsWith('daemon.'))
}

/**
 * Some file systems ignore case, and Windows dots and spaces at the end. By way of upper case, which
 * is how they compare: there is a second small s (U+017F).
 */
const folded = (name: string): string =>
  name
    .toUpperCase()
    .toLowerCase()
    .replace(/[. ]+$/, '')
