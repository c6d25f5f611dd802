import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { sep } from 'node:path'
import { setTimeout as delay, setTimeout } from 'node:timers/promises'
import type { Status } from '../../shared/api.ts'
import { type Client, connect } from '../../shared/client/client.ts'
import { isPortInUse, readDaemonFile, waitForProcessExit } from '../../shared/client/discovery.ts'
import { spawnDaemon, getStderrPath } from '../../shared/client/spawn.ts'
import { readEnvironment } from '../../shared/config/environment.ts'
import { DoorwardError, errorName } from '../../shared/errors.ts'
import type { Home } from '../../shared/home/home.ts'
import { type Service, findService } from '../../shared/service/service.ts'
import { getUserAgent } from '../../shared/version.ts'
import { readStatus } from '../parse-status.ts'
import { toLabel } from '../text.ts'
import { isUnknownRoute } from './with-daemon.ts'

/** Hears why a daemon that was started ended at once, in one line. */
type OnFailed = (why: string) => void

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
  if ((await fetchStatus(client))?.stopping) {
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
export const ensureDaemon = async (home: Home, onFailed: OnFailed): Promise<void> => {
  const client = await findDaemon(home)
  if (!client) return startAndWait(home, onFailed)
  const status = await fetchStatus(client).finally(() => client.close())
  if (!status || status.stopping) await restartDaemon(home, onFailed)
}

/** Undefined of one that cannot be read. */
const fetchStatus = async (client: Client): Promise<Status | undefined> =>
  readStatus(await client.get<unknown>('/status').catch(() => undefined))

const findDaemon = async (home: Home): Promise<Client | undefined> => {
  try {
    return await connect(home, { userAgent: getUserAgent('tray') })
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
  const { loadConfig } = await import('../../shared/config/load.ts')
  await loadConfig(home, await readEnvironment(home))
  const client = await findDaemon(home)
  await client?.post('/daemon/shutdown').finally(() => client.close())
  await untilEnded(pid)
}

const untilEnded = async (pid: number): Promise<void> => {
  const from = performance.now()
  const hasGone = await waitForProcessExit(pid, {
    isOver: () => performance.now() - from > limitMs,
  })
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

/**
 * Starts the daemon: by the service manager where it is installed there, else as a process of its own
 * that outlives the tray. If it ends with a failure, `onFailed` hears why: what it wrote to standard
 * error. Where that is a port that another program holds, it is started again once the port is free,
 * while it is wanted.
 */
export const startDaemon = (
  home: Home,
  onFailed: (why: string) => void,
  isWanted: () => boolean = () => false,
): void => {
  const fail = (why: string): void => {
    // A row is short, and the program's name tells more than that it is another one.
    onFailed(why.replace(/another program \((.+), (pid \d+)\)/, '$1 ($2)'))
    const port = /^port (\d+) is taken/.exec(why)?.[1]
    const again = () => startDaemon(home, onFailed, isWanted)
    if (port) void startWhenFree(Number(port), isWanted, again)
  }
  const start = async () => {
    const service = await findService(home)
    if (service) await startService(service, home, fail)
    else startProcess(home, fail)
  }
  start().catch((error: unknown) => {
    if (!existsSync(home.root)) fail(`the folder ${home.root} is gone`)
    else fail(error instanceof DoorwardError ? error.message : errorName(error))
  })
}

const lookMs = 1000

/** Where the system does not tell who holds a port, it is left at that. */
const startWhenFree = async (
  port: number,
  isWanted: () => boolean,
  start: () => void,
): Promise<void> => {
  while (isWanted() && (await isPortInUse(port)) === true)
    await setTimeout(lookMs, undefined, { ref: false })
  if (isWanted() && (await isPortInUse(port)) === false) start()
}

/** When to look whether it still runs: one that cannot start ends within these times. */
const looksMs = [1000, 2000, 5000]

const startService = async (
  service: Service,
  home: Home,
  onFailed: (why: string) => void,
): Promise<void> => {
  await service.start()
  for (const waitMs of looksMs) {
    await setTimeout(waitMs, undefined, { ref: false })
    const state = await service.state()
    if (state.is === 'failed')
      return onFailed(await reasonOr(home, `it ended with exit code ${state.exitCode}`))
  }
}

const startProcess = (home: Home, onFailed: (why: string) => void): void => {
  const child = spawnDaemon(home)
  child.once('message', () => child.disconnect())
  child.once('error', () => onFailed('it cannot be run'))
  child.once('exit', (code, signal) => {
    if (code !== 0)
      void reasonOr(home, `it ended with ${signal ?? `exit code ${code}`}`).then(onFailed)
  })
  child.unref()
}

const reasonOr = async (home: Home, otherwise: string): Promise<string> =>
  (await reasonIn(getStderrPath(home), home.root).catch(() => '')) || otherwise

/** A problem in a file says more than that the configuration cannot be used; it is the second line. */
const reasonIn = async (path: string, root: string): Promise<string> => {
  const lines = (await readFile(path, 'utf8')).split('\n').filter((line) => line.trim() !== '')
  const said = lines.filter((line) => !line.startsWith('hint: '))
  const [first = '', second] = said
  return toLabel((second ?? first.replace(/^doorward: /, '')).replace(`${root}${sep}`, ''), 200)
}
