import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { sep } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { DoorwardError, nameOf } from '../shared/errors.ts'
import type { Home } from '../shared/home/home.ts'
import { type Service, serviceOf } from '../shared/service/service.ts'
import { isPortHeld } from '../shared/client/discovery.ts'
import { spawnDaemon, stderrOf } from '../shared/client/spawn.ts'
import { labelOf } from './label.ts'

/**
 * Starts the daemon: by the service manager where it is installed there, else as a process of its own
 * that outlives the tray. If it ends with a failure, `onFailed` hears why: what it wrote to standard
 * error. Where that is a port that another program holds, it is started again once the port is free,
 * while it is wanted.
 */
export const startDaemon = (
  home: Home,
  onFailed: (why: string) => void,
  isWanted: () => boolean = () => false,
): void => {
  const fail = (why: string): void => {
    // A row is short, and the program's name tells more than that it is another one.
    onFailed(why.replace(/another program \((.+), (pid \d+)\)/, '$1 ($2)'))
    const port = /^port (\d+) is taken/.exec(why)?.[1]
    const again = () => startDaemon(home, onFailed, isWanted)
    if (port) void startWhenFree(Number(port), isWanted, again)
  }
  const start = async () => {
    const service = await serviceOf(home)
    if (service) await startService(service, home, fail)
    else startProcess(home, fail)
  }
  start().catch((error: unknown) => {
    if (!existsSync(home.root)) fail(`the folder ${home.root} is gone`)
    else fail(error instanceof DoorwardError ? error.message : nameOf(error))
  })
}

const lookMs = 1000

/** Where the system does not tell who holds a port, it is left at that. */
const startWhenFree = async (
  port: number,
  isWanted: () => boolean,
  start: () => void,
): Promise<void> => {
  while (isWanted() && (await isPortHeld(port)) === true)
    await setTimeout(lookMs, undefined, { ref: false })
  if (isWanted() && (await isPortHeld(port)) === false) start()
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
