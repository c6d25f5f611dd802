import { setTimeout as delay } from 'node:timers/promises'
import type { Status } from '../shared/api.ts'
import { type Client, connect } from '../shared/client/client.ts'
import { readDaemonFile, untilGone } from '../shared/client/discovery.ts'
import { readEnvironment } from '../shared/config/environment.ts'
import { DoorwardError } from '../shared/errors.ts'
import type { Home } from '../shared/home/home.ts'
import { userAgentOf } from '../shared/version.ts'
import { readStatus } from './read-status.ts'
import { startDaemon } from './start-daemon.ts'
import { isUnknownRoute } from './unknown-route.ts'

/** Hears why a daemon that was started ended at once, in one line. */
export type OnFailed = (why: string) => void

const limitMs = 60_000
const stepMs = 100

/**
 * Restarts the daemon: it starts its own successor; one of an earlier version ends and is started anew, and
 * so is one that is about to end. Where none runs it is started. Throws `config-invalid` or `home-insecure`
 * and leaves the running one alone, or `daemon-unreachable` when none came up.
 */
export const restartDaemon = async (home: Home, onFailed: OnFailed): Promise<void> => {
  const client = await findDaemon(home)
  if (!client) return startAndWait(home, onFailed)
  const { pid } = client.daemon
  if ((await statusOf(client))?.stopping) {
    client.close()
    await untilEnded(pid)
    return startAndWait(home, onFailed)
  }
  const handsOver = await askForSuccessor(client).finally(() => client.close())
  if (handsOver) return untilSuccessor(home, pid)
  await stopAndWait(home, pid)
  await startAndWait(home, onFailed)
}

/**
 * Starts the daemon. One that runs and is well is left alone; one that cannot be read, or is about to end,
 * is restarted.
 */
export const startAgain = async (home: Home, onFailed: OnFailed): Promise<void> => {
  const client = await findDaemon(home)
  if (!client) return startAndWait(home, onFailed)
  const status = await statusOf(client).finally(() => client.close())
  if (!status || status.stopping) await restartDaemon(home, onFailed)
}

/** Undefined of one that cannot be read. */
const statusOf = async (client: Client): Promise<Status | undefined> =>
  readStatus(await client.get<unknown>('/status').catch(() => undefined))

const findDaemon = async (home: Home): Promise<Client | undefined> => {
  try {
    return await connect(home, { userAgent: userAgentOf('tray') })
  } catch (error) {
    if (error instanceof DoorwardError && error.code === 'daemon-unreachable') return undefined
    throw error
  }
}

/** False when the daemon is too old to start another in its place. */
const askForSuccessor = async (client: Client): Promise<boolean> => {
  try {
    await client.post('/daemon/restart', undefined, { timeoutMs: limitMs })
    return true
  } catch (error) {
    if (isUnknownRoute(error)) return false
    throw error
  }
}

const untilSuccessor = async (home: Home, oldPid: number): Promise<void> => {
  for (let waitedMs = 0; waitedMs < limitMs; waitedMs += stepMs) {
    const file = await readDaemonFile(home)
    if (file && file.pid !== oldPid) return
    await delay(stepMs)
  }
  throw new DoorwardError('daemon-unreachable', 'no new daemon came up in a minute', {
    hint: 'doorward daemon logs',
  })
}

const stopAndWait = async (home: Home, pid: number): Promise<void> => {
  // What cannot be used must not take the place of what runs.
  const { loadConfig } = await import('../shared/config/load.ts')
  await loadConfig(home, await readEnvironment(home))
  const client = await findDaemon(home)
  await client?.post('/daemon/shutdown').finally(() => client.close())
  await untilEnded(pid)
}

const untilEnded = async (pid: number): Promise<void> => {
  const from = performance.now()
  const hasGone = await untilGone(pid, { isOver: () => performance.now() - from > limitMs })
  if (!hasGone)
    throw new DoorwardError(
      'daemon-unreachable',
      `the daemon (pid ${pid}) finishes what it has accepted; it is not started again yet`,
      { hint: 'choose Start daemon when it has ended' },
    )
}

const startAndWait = async (home: Home, onFailed: OnFailed): Promise<void> => {
  let failure: string | undefined
  startDaemon(home, (why) => {
    failure = why
  })
  for (let waitedMs = 0; waitedMs < limitMs; waitedMs += stepMs) {
    const ended = failure !== undefined
    // Asked for once more after it ended: another start may have been quicker.
    const client = await findDaemon(home).catch(() => undefined)
    if (client) return client.close()
    if (failure !== undefined && ended) {
      onFailed(failure)
      throw notStarted(failure)
    }
    await delay(stepMs)
  }
  throw notStarted('it does not answer')
}

const notStarted = (why: string): DoorwardError =>
  new DoorwardError('daemon-unreachable', `the daemon did not start: ${why}`)
