import { readFile } from 'node:fs/promises'
import { sep } from 'node:path'
import type { Home } from '../shared/home.ts'
import { spawnDaemon, stderrOf } from '../shared/spawn-daemon.ts'
import { labelOf } from './label.ts'

/**
 * Starts the daemon as a process of its own that outlives the tray. If it ends with a failure,
 * `onFailed` hears why: what it wrote to standard error. Throws what the file system refuses.
 */
export const startDaemon = (home: Home, onFailed: (why: string) => void): void => {
  const child = spawnDaemon(home)
  child.once('message', () => child.disconnect())
  child.once('error', () => onFailed('it cannot be run'))
  child.once('exit', (code, signal) => {
    if (code === 0) return
    reasonIn(stderrOf(home), home.root).then(
      (line) => onFailed(line || `it ended with ${signal ?? `exit code ${code}`}`),
      () => onFailed(`it ended with ${signal ?? `exit code ${code}`}`),
    )
  })
  child.unref()
}

/** A problem in a file says more than that the configuration cannot be used; it is the second line. */
const reasonIn = async (path: string, root: string): Promise<string> => {
  const lines = (await readFile(path, 'utf8')).split('\n').filter((line) => line.trim() !== '')
  const said = lines.filter((line) => !line.startsWith('hint: '))
  const [first = '', second] = said
  return labelOf((second ?? first.replace(/^doorward: /, '')).replace(`${root}${sep}`, ''), 200)
}
