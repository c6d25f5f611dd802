import { readFile } from 'node:fs/promises'
import { sep } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { DoorwardError, nameOf } from '../shared/errors.ts'
import type { Home } from '../shared/home.ts'
import { serviceOf } from '../shared/login-items.ts'
import type { Service } from '../shared/login-items/service.ts'
import { spawnDaemon, stderrOf } from '../shared/spawn-daemon.ts'
import { labelOf } from './label.ts'

/**
 * Starts the daemon: by the service manager where it is installed there, else as a process of its own
 * that outlives the tray. If it ends with a failure, `onFailed` hears why: what it wrote to standard
 * error.
 */
export const startDaemon = (home: Home, onFailed: (why: string) => void): void => {
  const start = async () => {
    const service = await serviceOf(home)
    if (service) await startService(service, home, onFailed)
    else startProcess(home, onFailed)
  }
  start().catch((error: unknown) =>
    onFailed(error instanceof DoorwardError ? error.message : nameOf(error)),
  )
}

/** When to look whether it still runs: one that cannot start ends within these times. */
const looksMs = [1000, 2000, 5000]

const startService = async (
  service: Service,
  home: Home,
  onFailed: (why: string) => void,
): Promise<void> => {
  await service.start()
  for (const waitMs of looksMs) {
    await setTimeout(waitMs, undefined, { ref: false })
    const state = await service.state()
    if (state.is === 'failed')
      return onFailed(await reasonOr(home, `it ended with exit code ${state.exitCode}`))
  }
}

const startProcess = (home: Home, onFailed: (why: string) => void): void => {
  const child = spawnDaemon(home)
  child.once('message', () => child.disconnect())
  child.once('error', () => onFailed('it cannot be run'))
  child.once('exit', (code, signal) => {
    if (code !== 0)
      void reasonOr(home, `it ended with ${signal ?? `exit code ${code}`}`).then(onFailed)
  })
  child.unref()
}

const reasonOr = async (home: Home, otherwise: string): Promise<string> =>
  (await reasonIn(stderrOf(home), home.root).catch(() => '')) || otherwise

/** A problem in a file says more than that the configuration cannot be used; it is the second line. */
const reasonIn = async (path: string, root: string): Promise<string> => {
  const lines = (await readFile(path, 'utf8')).split('\n').filter((line) => line.trim() !== '')
  const said = lines.filter((line) => !line.startsWith('hint: '))
  const [first = '', second] = said
  return labelOf((second ?? first.replace(/^doorward: /, '')).replace(`${root}${sep}`, ''), 200)
}
