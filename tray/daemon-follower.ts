import { type FSWatcher, watch } from 'node:fs'
import { stat } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import type { DaemonFile, EventRecord, Status } from '../shared/api.ts'
import { isPortInUse, readDaemonFile } from '../shared/client/discovery.ts'
import type { DoorwardError } from '../shared/errors.ts'
import type { Home } from '../shared/home/home.ts'
import { followOnce, type StreamPosition } from './daemon-connection.ts'
import { type ConnectionLoss, describeLoss } from './daemon-state.ts'

/*
 * Stays connected to whichever daemon runs on the home. A loss is reported within 2 s, but not before
 * the grace period is over: a daemon that is back within it, as after a restart, was never lost.
 */

export type Follower = {
  /** The daemon answers; called again after every change. */
  readonly onStatus: (status: Status) => void
  /** One record, as the daemon sent it; the same may come twice after a reconnect. */
  readonly onEvent: (event: EventRecord) => void
  /** There is no daemon or it does not answer. Called after every failed attempt. */
  readonly onLost: (loss: ConnectionLoss) => void
}

const minRetryMs = 500
const maxRetryMs = 30_000
/** Only a daemon that was connected for longer than this gets this long to come back. */
const graceMs = 1300
const graceRetryMs = 100
const checkMs = 1000

/** Follows the daemon of a home until the signal: connects, reads, and connects again. */
export const follow = async (
  home: Home,
  follower: Follower,
  signal: AbortSignal,
): Promise<void> => {
  const loop = new FollowLoop(home, follower, signal)
  while (!signal.aborted) await loop.attempt()
}

class FollowLoop {
  readonly #home: Home
  readonly #follower: Follower
  readonly #signal: AbortSignal
  #retryMs = minRetryMs
  #position: StreamPosition | undefined
  #lostAt: number | undefined

  constructor(home: Home, follower: Follower, signal: AbortSignal) {
    this.#home = home
    this.#follower = follower
    this.#signal = signal
  }

  /** Connects once, stays connected as long as possible, and waits until the next attempt is due. */
  async attempt(): Promise<void> {
    const stamp = await readStamp(this.#home)
    const replaced = new AbortController()
    let daemon: DaemonFile | undefined
    const abortIfReplaced = async (): Promise<void> => {
      if (await isReplaced(this.#home, daemon)) replaced.abort()
    }
    const unwatch = watchRun(this.#home, () => void abortIfReplaced().catch(() => undefined))
    const startedAt = performance.now()
    const signal = AbortSignal.any([this.#signal, replaced.signal])
    const { failure, connectedAt } = await this.#connect(signal, (connected) => {
      daemon = connected
    })
    daemon = undefined
    if (this.#signal.aborted) return unwatch()

    const now = performance.now()
    if (connectedAt !== undefined && now - connectedAt > graceMs) {
      this.#lostAt = now
      this.#retryMs = minRetryMs
    }
    const isInGrace = this.#lostAt !== undefined && now - this.#lostAt < graceMs
    const isQuiet = replaced.signal.aborted || isInGrace
    const loss = isQuiet ? undefined : await this.#reportLoss(failure)
    const backoffMs = this.#retryMs * (0.75 + Math.random() / 2)
    // The time spent on a hanging daemon counts as part of the pause.
    const pauseMs = isQuiet ? graceRetryMs : Math.max(minRetryMs, backoffMs - (now - startedAt))
    const isEarly = await pause(this.#home, pauseMs, stamp, loss?.takenPort, signal)
    unwatch()
    if (isEarly) this.#retryMs = minRetryMs
    else if (loss) this.#retryMs = Math.min(this.#retryMs * 2, maxRetryMs)
  }

  /** Returns why the connection ended, and since when the daemon answered. */
  async #connect(
    signal: AbortSignal,
    onConnected: (daemon: DaemonFile) => void,
  ): Promise<{ readonly failure: unknown; readonly connectedAt: number | undefined }> {
    let connectedAt: number | undefined
    let silence: DoorwardError | undefined
    const reportSilence = async (error: DoorwardError): Promise<void> => {
      const loss = await describeLoss(error, this.#home)
      // The daemon may have answered by now.
      if (silence === error) this.#follower.onLost(loss)
    }
    let failure: unknown
    try {
      await followOnce(this.#home, signal, this.#position, {
        onConnected,
        onStatus: (status) => {
          silence = undefined
          connectedAt ??= performance.now()
          this.#lostAt = undefined
          this.#follower.onStatus(status)
        },
        onEvent: this.#follower.onEvent,
        onPosition: (position) => {
          this.#position = position
        },
        onSilent: (error) => {
          connectedAt = undefined
          silence = error
          void reportSilence(error)
        },
      })
    } catch (error) {
      failure = error
    }
    silence = undefined
    return { failure, connectedAt }
  }

  async #reportLoss(failure: unknown): Promise<ConnectionLoss> {
    this.#lostAt = undefined
    const loss = await describeLoss(failure, this.#home)
    this.#follower.onLost(loss)
    return loss
  }
}

/** Whether `run/daemon.json` names a daemon other than the connected one; true when none is connected. */
const isReplaced = async (home: Home, daemon: DaemonFile | undefined): Promise<boolean> => {
  if (!daemon) return true
  const next = await readDaemonFile(home)
  return (
    next !== undefined &&
    (next.pid !== daemon.pid || next.startedAt !== daemon.startedAt || next.url !== daemon.url)
  )
}

/**
 * Waits, and returns true when there is a reason to connect earlier: a daemon wrote its
 * `run/daemon.json`, or the taken port is free.
 */
const pause = async (
  home: Home,
  waitMs: number,
  stamp: string,
  takenPort: number | undefined,
  signal: AbortSignal,
): Promise<boolean> => {
  const until = performance.now() + waitMs
  for (let left = waitMs; left > 0; left = until - performance.now()) {
    try {
      await delay(Math.min(left, checkMs), undefined, { signal })
    } catch {
      return true
    }
    if ((await readStamp(home)) !== stamp) return true
    if (takenPort !== undefined && (await isPortInUse(takenPort)) === false) return true
  }
  return false
}

/**
 * Calls back when `run/daemon.json` or `run/api.token` changes, until the returned function is called.
 * Does nothing where the folder cannot be watched, so callers check the stamp as well.
 */
const watchRun = (home: Home, onChange: () => void): (() => void) => {
  let watcher: FSWatcher | undefined
  try {
    watcher = watch(home.run, { persistent: false }, (_, name) => {
      if (name === null || name === 'daemon.json' || name === 'api.token') onChange()
    })
    watcher.on('error', () => undefined)
  } catch {
    // The folder is missing or cannot be watched.
  }
  return () => watcher?.close()
}

/** Changes whenever `run/daemon.json` is written, created or removed. */
const readStamp = async (home: Home): Promise<string> => {
  try {
    const { ino, ctimeMs } = await stat(home.daemonJson)
    return `${ino} ${ctimeMs}`
  } catch {
    return 'none'
  }
}
