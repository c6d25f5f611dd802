import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Home } from '../../../shared/home/home.ts'

const trayMain = fileURLToPath(new URL('../../../tray/main.js', import.meta.url))

export type RunningTray = {
  readonly process: ChildProcess
  readonly stderr: () => string
  /** Waits until this stands in standard error. */
  readonly untilSaid: (text: string) => Promise<void>
  /** The exit code, once it has ended. */
  readonly ended: Promise<number | null>
  /** Ends it if it still runs. */
  readonly stop: () => Promise<void>
}

/**
 * Starts the built tray as a child process on a desktop given by its variables, `through` another
 * program if need be.
 */
export const startTray = (
  home: Home,
  env: Record<string, string>,
  cwd?: string,
  through: readonly string[] = [],
): RunningTray => {
  const [program, ...args] = [...through, process.execPath, trayMain, '--home', home.root]
  const child = spawn(program, args, {
    env,
    cwd,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let stderr = ''
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const ended = once(child, 'close').then(() => child.exitCode)
  return {
    process: child,
    stderr: () => stderr,
    untilSaid: async (text) => {
      while (!stderr.includes(text)) {
        const said = child.stderr && once(child.stderr, 'data')
        const end = ended.then(() => Promise.reject(new Error(`it ended and said: ${stderr}`)))
        await Promise.race([said, end])
      }
    },
    ended,
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
      await ended
    },
  }
}
