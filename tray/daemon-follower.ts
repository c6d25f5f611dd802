import { type FSWatcher, watch } from 'node:fs'
import { stat } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import type { DaemonFile, EventRecord, Status } from '../shared/api.ts'
import { isPortInUse, readDaemonFile } from '../shared/client/discovery.ts'
import type { DoorwardError } from '../shared/errors.ts'
import type { Home } from '../shared/home/home.ts'
import { followOnce, type Place } from './daemon-connection.ts'
import { type ConnectionLoss, describeLoss } from './daemon-state.ts'

/*
 * The daemon comes and goes: this keeps a connection to whichever one runs on the home. What is told
 * is true within 2 s, and not sooner than can be known: a daemon that is back in little more than a second, as after
 * a restart, was never gone.
 */

export type Follower = {
  /** The daemon answers; called again after every change. */
  readonly onStatus: (status: Status) => void
  /** One record, as the daemon sent it; the same may come twice after a reconnect. */
  readonly onEvent: (event: EventRecord) => void
  /** There is no daemon or it does not answer. Called after every failed attempt. */
  readonly onLost: (loss: ConnectionLoss) => void
}

const firstWaitMs = 500
const longestWaitMs = 30_000
/** For so long a daemon that was well for longer than that may be gone before it is said. */
const graceMs = 1300
const retryMs = 100
const lookMs = 1000

/** Follows the daemon of a home until the signal: connects, reads, and connects again for ever. */
export const follow = async (
  home: Home,
  follower: Follower,
  signal: AbortSignal,
): Promise<void> => {
  let waitMs = firstWaitMs
  let last: Place | undefined
  let goneSince: number | undefined
  while (!signal.aborted) {
    const stamp = await readStamp(home)
    const wake = new AbortController()
    let daemon: DaemonFile | undefined
    const wakeIfReplaced = async (): Promise<void> => {
      if (await isReplaced(home, daemon)) wake.abort()
    }
    const unwatch = watchRun(home, () => void wakeIfReplaced().catch(() => undefined))
    const beganAt = performance.now()
    let wellSince: number | undefined
    let silence: DoorwardError | undefined
    const tellSilence = async (error: DoorwardError): Promise<void> => {
      const loss = await describeLoss(error, home)
      // It may have gone on meanwhile.
      if (silence === error) follower.onLost(loss)
    }
    let failure: unknown
    try {
      await followOnce(home, AbortSignal.any([signal, wake.signal]), last, {
        onConnected: (connected) => {
          daemon = connected
        },
        onStatus: (status) => {
          silence = undefined
          wellSince ??= performance.now()
          goneSince = undefined
          follower.onStatus(status)
        },
        onEvent: follower.onEvent,
        onPlace: (place) => {
          last = place
        },
        onSilent: (error) => {
          wellSince = undefined
          silence = error
          void tellSilence(error)
        },
      })
    } catch (error) {
      failure = error
    }
    daemon = undefined
    silence = undefined
    if (signal.aborted) return unwatch()

    const now = performance.now()
    if (wellSince !== undefined && now - wellSince > graceMs) {
      goneSince = now
      waitMs = firstWaitMs
    }
    const isQuiet = wake.signal.aborted || (goneSince !== undefined && now - goneSince < graceMs)
    let loss: ConnectionLoss | undefined
    if (!isQuiet) {
      goneSince = undefined
      loss = await describeLoss(failure, home)
      follower.onLost(loss)
    }
    const backoffMs = waitMs * (0.75 + Math.random() / 2)
    // A daemon that hangs was waited for already.
    const pauseMs = isQuiet ? retryMs : Math.max(firstWaitMs, backoffMs - (now - beganAt))
    const woken = await pause(home, pauseMs, stamp, loss?.takenPort, [signal, wake.signal])
    unwatch()
    if (woken) waitMs = firstWaitMs
    else if (!isQuiet) waitMs = Math.min(waitMs * 2, longestWaitMs)
  }
}

/** Whether `run/daemon.json` names another daemon; without one that we are connected to, any change counts. */
const isReplaced = async (home: Home, daemon: DaemonFile | undefined): Promise<boolean> => {
  if (!daemon) return true
  const next = await readDaemonFile(home)
  return (
    next !== undefined &&
    (next.pid !== daemon.pid || next.startedAt !== daemon.startedAt || next.url !== daemon.url)
  )
}

/**
 * Waits, but not longer than until a daemon writes its `run/daemon.json` or the port that was held is
 * free: so a daemon that comes back after hours is seen at once. Answers whether that was why.
 */
const pause = async (
  home: Home,
  waitMs: number,
  stamp: string,
  takenPort: number | undefined,
  signals: AbortSignal[],
): Promise<boolean> => {
  const until = performance.now() + waitMs
  const signal = AbortSignal.any(signals)
  for (let left = waitMs; left > 0; left = until - performance.now()) {
    try {
      await delay(Math.min(left, lookMs), undefined, { signal })
    } catch {
      return true
    }
    if ((await readStamp(home)) !== stamp) return true
    if (takenPort !== undefined && (await isPortInUse(takenPort)) === false) return true
  }
  return false
}

/**
 * Calls back when `run/daemon.json` or `run/api.token` has changed, until it is ended. Where there is
 * no folder, or no watch, it hears nothing: whoever waits looks at the stamp now and then as well.
 */
const watchRun = (home: Home, onChange: () => void): (() => void) => {
  let watcher: FSWatcher | undefined
  try {
    watcher = watch(home.run, { persistent: false }, (_, name) => {
      if (name === null || name === 'daemon.json' || name === 'api.token') onChange()
    })
    watcher.on('error', () => undefined)
  } catch {
    // Then there is none.
  }
  return () => watcher?.close()
}

/** Differs when `run/daemon.json` has been written, or has come or gone, since. */
const readStamp = async (home: Home): Promise<string> => {
  try {
    const { ino, ctimeMs } = await stat(home.daemonJson)
    return `${ino} ${ctimeMs}`
  } catch {
    return 'none'
  }
}
