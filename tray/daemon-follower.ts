import { type FSWatcher, watch } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { DaemonFile, EventRecord, Status } from '../shared/api/api.ts'
import { readDaemonFile } from '../shared/client/discovery.ts'
import type { DoorwardError } from '../shared/errors.ts'
import type { Home } from '../shared/home/home.ts'
import {
  type ConnectionListener,
  defaultSilentMs,
  followOnce,
  type StreamPosition,
} from './daemon-connection.ts'
import { type ConnectionLoss, describeLoss } from './daemon-state.ts'

/*
 * Stays connected to whichever daemon runs on the home. A successor that has taken over, as after a
 * restart, is no loss.
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
const successorMs = 100

/**
 * Follows the daemon of a home until the signal: connects, reads, and connects again. Tests may have less
 * patience with a silent daemon.
 */
export const follow = async (
  home: Home,
  follower: Follower,
  signal: AbortSignal,
  silentMs = defaultSilentMs,
): Promise<void> => {
  const loop = new FollowLoop(home, follower, signal, silentMs)
  while (!signal.aborted) await loop.attempt()
}

class FollowLoop {
  readonly #home: Home
  readonly #follower: Follower
  readonly #signal: AbortSignal
  readonly #silentMs: number
  #retryMs = minRetryMs
  #position: StreamPosition | undefined

  constructor(home: Home, follower: Follower, signal: AbortSignal, silentMs: number) {
    this.#home = home
    this.#follower = follower
    this.#signal = signal
    this.#silentMs = silentMs
  }

  /** Connects once, stays connected as long as possible, and waits until the next attempt is due. */
  async attempt(): Promise<void> {
    const replaced = new AbortController()
    let daemon: DaemonFile | undefined
    const abortIfReplaced = async (): Promise<void> => {
      if (await isReplaced(this.#home, daemon)) replaced.abort()
    }
    const unwatch = watchRun(this.#home, () => void abortIfReplaced().catch(() => undefined))
    const startedAt = performance.now()
    const signal = AbortSignal.any([this.#signal, replaced.signal])
    try {
      const failure = await this.#connect(signal, (connected) => {
        daemon = connected
      })
      if (this.#signal.aborted) return
      if (daemon) await abortIfReplaced()
      daemon = undefined
      if (replaced.signal.aborted) return await pause(successorMs, this.#signal)
      this.#follower.onLost(await describeLoss(failure, this.#home))
      const backoffMs = this.#retryMs * (0.75 + Math.random() / 2)
      this.#retryMs = Math.min(this.#retryMs * 2, maxRetryMs)
      // The time spent on a hanging daemon counts as part of the pause.
      await pause(Math.max(minRetryMs, backoffMs - (performance.now() - startedAt)), signal)
      if (replaced.signal.aborted) this.#retryMs = minRetryMs
    } finally {
      unwatch()
    }
  }

  /** Returns why the connection ended. */
  async #connect(signal: AbortSignal, onConnected: (daemon: DaemonFile) => void): Promise<unknown> {
    let silence: DoorwardError | undefined
    const reportSilence = async (error: DoorwardError): Promise<void> => {
      const loss = await describeLoss(error, this.#home)
      // The daemon may have answered by now.
      if (silence === error) this.#follower.onLost(loss)
    }
    try {
      const listener: ConnectionListener = {
        onConnected,
        onStatus: (status) => {
          silence = undefined
          this.#retryMs = minRetryMs
          this.#follower.onStatus(status)
        },
        onEvent: this.#follower.onEvent,
        onPosition: (position) => {
          this.#position = position
        },
        onSilent: (error) => {
          silence = error
          void reportSilence(error)
        },
      }
      return await followOnce(this.#home, signal, this.#position, listener, this.#silentMs)
    } catch (error) {
      return error
    } finally {
      silence = undefined
    }
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

/** Waits until the time is over or the signal. */
const pause = async (ms: number, signal: AbortSignal): Promise<void> =>
  delay(ms, undefined, { signal }).catch(() => undefined)

/**
 * Calls back when `run/daemon.json` or `run/api.token` changes, until the returned function is called.
 * Where the folder cannot be watched, the pauses decide how soon a new daemon is found.
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
