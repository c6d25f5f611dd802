import type { Status, StatusProblem } from '../shared/api.ts'
import { version } from '../shared/version.ts'
import type { Loss } from './loss.ts'
import type { View } from './view.ts'

/** How the daemon stands, as it is pieced together from answers and failures. */
export type DaemonView = {
  readonly view: View['daemon']
  /** Until when a daemon that was just started may be silent, by the steady clock. */
  readonly patienceUntil: number
  /** Why the daemon we started ended at once. */
  readonly startFailure?: string
  readonly lastSeen?: string
}

/** A moment by two clocks: what is shown goes by the one that people set, durations by the other. */
export type Moment = {
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

/**
 * The daemon that was started has ended, with why in one line. That counts only while none has ever
 * answered: another one may have been quicker, or it ended after a life of its own.
 */
export const startFailed = (before: DaemonView, why: string): DaemonView => {
  if (before.lastSeen !== undefined) return before
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
