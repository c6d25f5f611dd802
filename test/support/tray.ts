import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Home } from '../../shared/home.ts'

const trayMain = fileURLToPath(new URL('../../tray/main.js', import.meta.url))

export type RunningTray = {
  readonly process: ChildProcess
  readonly stderr: () => string
  /** The exit code, once it has ended. */
  readonly ended: Promise<number | null>
  /** Ends it if it still runs. */
  readonly stop: () => Promise<void>
}

/** Starts the built tray as a child process on a desktop given by its variables. */
export const startTray = (home: Home, env: Record<string, string>, cwd?: string): RunningTray => {
  const child = spawn(process.execPath, [trayMain, '--home', home.root], {
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
    ended,
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
      await ended
    },
  }
}
