import { existsSync } from 'node:fs'
import { readDaemonFile } from '../shared/client/discovery.ts'
import { DoorwardError } from '../shared/errors.ts'
import type { Home } from '../shared/home/home.ts'
import { isAlive } from '../shared/home/lock.ts'
import { upperFirst } from './wording.ts'

/** Why there is no daemon to show. */
export type Loss = {
  /** One line for the first row. */
  readonly reason: string
  /** Whether a daemon of this home lives all the same: then none can be started. */
  readonly runs: boolean
  /** The port that another program has in place of the daemon. */
  readonly heldPort?: number
}

/** Says why a connection failed or ended, from what was thrown and what the home tells. Never throws. */
export const lossOf = async (failure: unknown, home: Home): Promise<Loss> => {
  const daemon = await readDaemonFile(home).catch(() => undefined)
  const runs = daemon !== undefined && isAlive(daemon.pid)
  if (!(failure instanceof DoorwardError)) return { reason: 'Daemon cannot be reached', runs }
  if (failure.code === 'daemon-foreign' && daemon)
    return { reason: upperFirst(failure.message), runs, heldPort: Number(new URL(daemon.url).port) }
  if (failure.code !== 'daemon-unreachable') return { reason: upperFirst(failure.message), runs }
  // Removed while we run: nothing can be started there either, but that is what it will say then.
  if (!existsSync(home.root)) return { reason: `The folder ${home.root} is gone`, runs: false }
  return { reason: 'Daemon not running', runs: false }
}
