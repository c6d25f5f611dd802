import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Home } from '../shared/home.ts'

/** Starts the daemon as a process of its own that outlives the tray; `onFailed` hears its exit code. */
export const startDaemon = (home: Home, onFailed: (code: number) => void): void => {
  const main = fileURLToPath(new URL('../daemon/main.js', import.meta.url))
  const child = spawn(process.execPath, [main, '--home', home.root], {
    cwd: home.root,
    detached: true,
    stdio: 'ignore',
    windowsHide: true,
  })
  child.once('error', () => onFailed(-1))
  child.once('exit', (code) => {
    if (code) onFailed(code)
  })
  child.unref()
}
