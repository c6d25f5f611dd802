import { existsSync } from 'node:fs'
import type { Status, StatusProblem } from '../shared/api/api.ts'
import { readDaemonFile } from '../shared/client/discovery.ts'
import type { StartFailure } from '../shared/client/spawn.ts'
import { type About, DoorwardError } from '../shared/errors.ts'
import type { Home } from '../shared/home/home.ts'
import { isAlive } from '../shared/home/lock.ts'
import { version } from '../shared/version.ts'
import type { View } from './view.ts'
import { upperFirst } from './wording.ts'

/** What the tray knows of the daemon, derived from its answers and failures. */
export type DaemonState = {
  readonly view: View['daemon']
  /** A daemon that was just started may be silent until then, by the steady clock. */
  readonly startDeadline: number
  /** Why the last daemon that was started exited immediately. */
  readonly startFailure?: Reason
  readonly lastSeen?: string
}

/** A moment by two clocks: the wall clock for what is shown, the steady one for durations. */
type Moment = {
  /** Milliseconds since 1970. */
  readonly wall: number
  /** Milliseconds on a clock that is never set. */
  readonly steady: number
}

export const momentNow = (): Moment => ({ wall: Date.now(), steady: performance.now() })

export const initialDaemonState: DaemonState = { view: { state: 'connecting' }, startDeadline: 0 }

const startLimitMs = 15_000

export const afterStatus = (status: Status, { wall }: Moment): DaemonState => ({
  view: {
    state: 'connected',
    status: { ...status, problems: [...status.problems, ...versionProblem(status.version)] },
  },
  startDeadline: 0,
  lastSeen: new Date(wall).toISOString(),
})

/** The tray found no daemon and is starting one. */
export const afterStart = ({ steady }: Moment): DaemonState => ({
  view: { state: 'connecting' },
  startDeadline: steady + startLimitMs,
})

/** The daemon that was started has exited. Another daemon may be connected already. */
export const afterStartFailure = (
  before: DaemonState,
  { detail, about }: StartFailure,
): DaemonState => {
  if (before.view.state === 'connected') return before
  const startFailure = { reason: `Daemon did not start: ${detail}`, ...(about && { about }) }
  return unreachable({ ...before, startDeadline: 0, startFailure }, startFailure)
}

/** A connection failed or closed. */
export const afterLoss = (
  before: DaemonState,
  { reason, isRunning }: ConnectionLoss,
  now: Moment,
): DaemonState => {
  if (!isRunning && now.steady < before.startDeadline) return before
  return unreachable(before, isRunning ? { reason } : (before.startFailure ?? { reason }))
}

type Reason = { readonly reason: string; readonly about?: About }

const unreachable = (before: DaemonState, why: Reason): DaemonState => ({
  ...before,
  view: {
    state: 'unreachable',
    ...why,
    ...(before.lastSeen === undefined ? {} : { lastSeen: before.lastSeen }),
  },
})

const versionProblem = (daemonVersion: string): StatusProblem[] => {
  if (daemonVersion === version) return []
  const isOlder = daemonVersion.localeCompare(version, 'en', { numeric: true }) < 0
  return [
    {
      code: isOlder ? 'restart-needed' : 'version-differs',
      detail: `the daemon is version ${daemonVersion}, the tray ${version}: restart the ${isOlder ? 'daemon' : 'tray'}`,
      hint: isOlder ? 'doorward daemon restart' : 'quit the tray, then doorward tray',
    },
  ]
}

/** Why there is no daemon to show. */
export type ConnectionLoss = {
  /** One line for the first row of the menu. */
  readonly reason: string
  /** Whether a daemon of this home runs all the same, so that no other can be started. */
  readonly isRunning: boolean
}

/** Describes why a connection failed, from the error and the home. Never throws. */
export const describeLoss = async (failure: unknown, home: Home): Promise<ConnectionLoss> => {
  const daemon = await readDaemonFile(home).catch(() => undefined)
  const isRunning = daemon !== undefined && isAlive(daemon.pid)
  if (!(failure instanceof DoorwardError)) return { reason: 'Daemon cannot be reached', isRunning }
  const reason = upperFirst(failure.message)
  if (failure.code !== 'daemon-unreachable') return { reason, isRunning }
  if (!existsSync(home.root))
    return { reason: `The folder ${home.root} does not exist`, isRunning: false }
  return { reason: 'Daemon not running', isRunning: false }
}

/** True when the daemon of a home is gone but its file is not: a daemon that stops removes it. */
export const hasCrashed = async (home: Home): Promise<boolean> => {
  const file = await readDaemonFile(home).catch(() => undefined)
  return file !== undefined && !isAlive(file.pid)
}
