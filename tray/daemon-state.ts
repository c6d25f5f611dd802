import { existsSync } from 'node:fs'
import type { Status, StatusProblem } from '../shared/api.ts'
import { readDaemonFile } from '../shared/client/discovery.ts'
import { DoorwardError } from '../shared/errors.ts'
import type { Home } from '../shared/home/home.ts'
import { isAlive } from '../shared/home/lock.ts'
import { version } from '../shared/version.ts'
import type { View } from './view.ts'
import { upperFirst } from './wording.ts'

/** How the daemon stands, as it is pieced together from answers and failures. */
export type DaemonView = {
  readonly view: View['daemon']
  /** Until when a daemon that was just started may be silent, by the steady clock. */
  readonly patienceUntil: number
  /** Why the daemon that was started last ended at once. */
  readonly startFailure?: string
  readonly lastSeen?: string
}

/** A moment by two clocks: what is shown goes by the one that people set, durations by the other. */
type Moment = {
  /** Milliseconds since 1970. */
  readonly wall: number
  /** Milliseconds since some moment that never changes. */
  readonly steady: number
}

export const momentNow = (): Moment => ({ wall: Date.now(), steady: performance.now() })

export const unknownDaemon: DaemonView = { view: { state: 'connecting' }, patienceUntil: 0 }

const patienceMs = 15_000

/** After an answer. */
export const answered = (status: Status, { wall }: Moment): DaemonView => ({
  view: {
    state: 'connected',
    status: { ...status, problems: [...status.problems, ...versionProblem(status.version)] },
  },
  patienceUntil: 0,
  lastSeen: new Date(wall).toISOString(),
})

/** Nobody there at the start of the tray: a daemon is being started. */
export const starting = ({ steady }: Moment): DaemonView => ({
  view: { state: 'connecting' },
  patienceUntil: steady + patienceMs,
})

/** The daemon that was started has ended, with why in one line; another one may have been quicker. */
export const startFailed = (before: DaemonView, why: string): DaemonView => {
  if (before.view.state === 'connected') return before
  const startFailure = `Daemon did not start: ${why}`
  return lost({ ...before, patienceUntil: 0, startFailure }, startFailure, false)
}

/** After a connection that failed or ended. */
export const failed = (before: DaemonView, { reason, runs }: Loss, now: Moment): DaemonView => {
  if (!runs && now.steady < before.patienceUntil) return before
  return lost(before, runs ? reason : (before.startFailure ?? reason), runs)
}

const lost = (before: DaemonView, reason: string, runs: boolean): DaemonView => ({
  ...before,
  view: {
    state: 'unreachable',
    reason,
    runs,
    ...(before.lastSeen === undefined ? {} : { lastSeen: before.lastSeen }),
  },
})

/** A daemon of another version is shown as well as it can be read, and that it is one is said. */
const versionProblem = (theirs: string): StatusProblem[] => {
  if (theirs === version) return []
  const isOlder = theirs.localeCompare(version, 'en', { numeric: true }) < 0
  return [
    {
      code: 'version-differs',
      detail: `the daemon is version ${theirs}, the tray ${version}: start the ${isOlder ? 'daemon' : 'tray'} again`,
      hint: isOlder ? 'doorward daemon restart' : 'quit the tray, then doorward tray',
    },
  ]
}

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
export const findLoss = async (failure: unknown, home: Home): Promise<Loss> => {
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

/** True when the daemon of a home is gone without having stopped: it would have removed its file. */
export const hasCrashed = async (home: Home): Promise<boolean> => {
  const file = await readDaemonFile(home).catch(() => undefined)
  return file !== undefined && !isAlive(file.pid)
}
