import type { ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { sep } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { nameOf } from '../shared/errors.ts'
import type { Home } from '../shared/home.ts'
import { isPortHeld } from '../shared/port-holder.ts'
import { spawnDaemon, stderrOf } from '../shared/spawn-daemon.ts'
import { labelOf } from './label.ts'

const lookMs = 1000

/**
 * Starts the daemon as a process of its own that outlives the tray. `onListening` hears that it answers;
 * if it ends with a failure, `onFailed` hears why: what it wrote to standard error. Where that is a
 * port that another program holds, it is started again once the port is free, if it is wanted still.
 */
export const startDaemon = (
  home: Home,
  onFailed: (why: string) => void,
  onListening: () => void = () => undefined,
  isWanted: () => boolean = () => false,
): void => {
  let child: ChildProcess
  try {
    child = spawnDaemon(home)
  } catch (error) {
    return onFailed(existsSync(home.root) ? nameOf(error) : `the folder ${home.root} is gone`)
  }
  child.once('message', () => {
    child.disconnect()
    onListening()
  })
  child.once('error', () => onFailed('it cannot be run'))
  const explain = async (ending: string): Promise<void> => {
    const line = await reasonIn(stderrOf(home), home.root).catch(() => '')
    // A row is short, and the program's name tells more than that it is another one.
    onFailed(line.replace(/another program \((.+), (pid \d+)\)/, '$1 ($2)') || ending)
    const port = /^port (\d+) is taken/.exec(line)?.[1]
    const again = () => startDaemon(home, onFailed, onListening, isWanted)
    if (port) await startWhenFree(Number(port), isWanted, again)
  }
  child.once('exit', (code, signal) => {
    if (code !== 0) void explain(`it ended with ${signal ?? `exit code ${code}`}`)
  })
  child.unref()
}

/** Where the system does not tell who holds a port, it is left at that. */
const startWhenFree = async (
  port: number,
  isWanted: () => boolean,
  start: () => void,
): Promise<void> => {
  while (isWanted() && (await isPortHeld(port)) === true)
    await delay(lookMs, undefined, { ref: false })
  if (isWanted() && (await isPortHeld(port)) === false) start()
}

/** A problem in a file says more than that the configuration cannot be used; it is the second line. */
const reasonIn = async (path: string, root: string): Promise<string> => {
  const lines = (await readFile(path, 'utf8')).split('\n').filter((line) => line.trim() !== '')
  const said = lines.filter((line) => !line.startsWith('hint: '))
  const [first = '', second] = said
  return labelOf((second ?? first.replace(/^doorward: /, '')).replace(`${root}${sep}`, ''), 200)
}
