import { readFileSync } from 'node:fs'
import { type Client, connect, readDaemonFile } from '../shared/client.ts'
import { DoorwardError, systemCode } from '../shared/errors.ts'
import type { Home } from '../shared/home.ts'

/**
 * Connects to the daemon of a home if it runs. A `run/daemon.json` whose process has gone is not
 * trusted: another program may have its port by now. Throws as `connect` does.
 */
export const findDaemon = async (home: Home): Promise<Client> => {
  const file = await readDaemonFile(home)
  if (!file || !isAlive(file.pid))
    throw new DoorwardError('daemon-unreachable', 'the daemon is not running', {
      hint: 'doorward daemon start',
    })
  return connect(home)
}

/** The same, or undefined when none runs. Throws `daemon-foreign`. */
export const findRunningDaemon = async (home: Home): Promise<Client | undefined> => {
  try {
    return await findDaemon(home)
  } catch (error) {
    if (error instanceof DoorwardError && error.code === 'daemon-unreachable') return undefined
    throw error
  }
}

/** True while a process of this number exists and has not ended. */
export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return !isZombie(pid)
  } catch (error) {
    return systemCode(error) === 'EPERM'
  }
}

/**
 * A process that has ended keeps its number until its parent asks for its exit code, which in a
 * container without an init is never. Linux only: proc(5), field 3 of stat.
 */
const isZombie = (pid: number): boolean => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return /^ [ZX]/.test(stat.slice(stat.lastIndexOf(')') + 1))
  } catch {
    return false
  }
}
