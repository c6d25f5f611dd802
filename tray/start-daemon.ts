import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Home } from '../shared/home.ts'
import { labelOf } from './label.ts'

/**
 * Starts the daemon as a process of its own that outlives the tray. If it ends with a failure,
 * `onFailed` hears why: the first line it wrote to standard error. Throws what the file system refuses.
 */
export const startDaemon = (home: Home, onFailed: (why: string) => void): void => {
  const main = fileURLToPath(new URL('../daemon/main.js', import.meta.url))
  const stderrPath = join(home.logs, 'daemon.stderr')
  const stderr = openSync(stderrPath, 'w', 0o600)
  try {
    const child = spawn(process.execPath, [main, '--home', home.root], {
      cwd: home.root,
      detached: true,
      stdio: ['ignore', 'ignore', stderr],
      windowsHide: true,
    })
    child.once('error', () => onFailed('it cannot be run'))
    child.once('exit', (code, signal) => {
      if (code === 0) return
      firstLineOf(stderrPath).then(
        (line) => onFailed(line || `it ended with ${signal ?? `exit code ${code}`}`),
        () => onFailed(`it ended with ${signal ?? `exit code ${code}`}`),
      )
    })
    child.unref()
  } finally {
    closeSync(stderr)
  }
}

const firstLineOf = async (path: string): Promise<string> => {
  const text = await readFile(path, 'utf8')
  return labelOf((text.split('\n')[0] ?? '').replace(/^doorward: /, ''), 200)
}
