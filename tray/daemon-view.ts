import type { Status } from '../shared/api.ts'
import { DoorwardError } from '../shared/errors.ts'
import { type View, upperFirst } from './view.ts'

/** How the daemon stands, as it is pieced together from answers and failures. */
export type DaemonView = {
  readonly view: View['daemon']
  /** Until when a daemon that was just started may be silent, milliseconds since 1970. */
  readonly patienceUntil: number
  /** Why the daemon we started ended at once. */
  readonly startFailure?: string
  readonly lastSeen?: string
}

export const unknownDaemon: DaemonView = { view: { state: 'connecting' }, patienceUntil: 0 }

/** After an answer. */
export const answered = (status: Status, now: number): DaemonView => ({
  view: { state: 'connected', status },
  patienceUntil: 0,
  lastSeen: new Date(now).toISOString(),
})

/** Nobody there at the start of the tray: a daemon is being started. */
export const starting = (now: number): DaemonView => ({
  view: { state: 'connecting' },
  patienceUntil: now + 15_000,
})

/**
 * The daemon that was started has ended, with why in one line. That counts only while none has ever
 * answered: another one may have been quicker, or it ended after a life of its own.
 */
export const startFailed = (before: DaemonView, why: string): DaemonView => {
  if (before.lastSeen !== undefined) return before
  const startFailure = `Daemon did not start: ${why}`
  return lost({ ...before, patienceUntil: 0, startFailure }, startFailure)
}

/** After a connection that failed or ended. */
export const failed = (before: DaemonView, error: unknown, now: number): DaemonView => {
  const absent = isAbsent(error)
  if (absent && now < before.patienceUntil) return before
  return lost(before, absent ? (before.startFailure ?? 'Daemon not running') : reasonFor(error))
}

/** Whether no daemon runs, in contrast to one that runs and is not right. */
export const isAbsent = (error: unknown): boolean =>
  error instanceof DoorwardError && error.code === 'daemon-unreachable'

const lost = (before: DaemonView, reason: string): DaemonView => ({
  ...before,
  view: {
    state: 'unreachable',
    reason,
    ...(before.lastSeen === undefined ? {} : { lastSeen: before.lastSeen }),
  },
})

const reasonFor = (error: unknown): string => {
  if (!(error instanceof DoorwardError)) return 'Daemon cannot be reached'
  if (error.code === 'daemon-foreign') return 'Another program holds the port of the daemon'
  return upperFirst(error.message)
}
