import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import type { Status } from '../../shared/api.ts'
import { type Client, connect } from '../../shared/client/client.ts'
import { canHandOver, untilIdle } from '../../shared/client/handover.ts'
import { isPortInUse, readDaemonFile, waitForProcessExit } from '../../shared/client/discovery.ts'
import {
  getStderrPath,
  spawnDaemon,
  type StartFailure,
  type StartMessage,
} from '../../shared/client/spawn.ts'
import { readEnvironment } from '../../shared/config/environment.ts'
import { DoorwardError, errorName } from '../../shared/errors.ts'
import type { Home } from '../../shared/home/home.ts'
import { type Service, findService } from '../../shared/service/service.ts'
import { getUserAgent } from '../../shared/version.ts'
import { readStatus } from '../parse-status.ts'
import { toLabel } from '../text.ts'
import { isUnknownRoute } from './with-daemon.ts'

/** Called with why a daemon that was started exited immediately. */
type OnFailed = (failure: StartFailure) => void

const limitMs = 60_000
const stepMs = 100

/**
 * Restarts the daemon by its own successor. Waits for a daemon that is stopping, stops one of an earlier
 * version, and then starts another; without a daemon, only starts one. Throws `config-invalid` or
 * `home-insecure` and leaves the running daemon alone, or `daemon-unreachable` when none came up.
 */
export const restartDaemon = async (home: Home, onFailed: OnFailed): Promise<void> => {
  const client = await findDaemon(home)
  if (!client) return startAndWait(home, onFailed)
  const { pid } = client.daemon
  if ((await fetchStatus(client))?.stopping) {
    client.close()
    await waitForExit(pid)
    return startAndWait(home, onFailed)
  }
  const hasSuccessor = await requestRestart(client).finally(() => client.close())
  if (hasSuccessor) return waitForSuccessor(home, pid)
  await stopAndWait(home, pid)
  await startAndWait(home, onFailed)
}

/** Starts the daemon, or restarts one that is stopping or whose status cannot be read. */
export const ensureDaemon = async (home: Home, onFailed: OnFailed): Promise<void> => {
  const client = await findDaemon(home)
  if (!client) return startAndWait(home, onFailed)
  const status = await fetchStatus(client).finally(() => client.close())
  if (!status || status.stopping) await restartDaemon(home, onFailed)
}

/** Undefined when the status cannot be read. */
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

/** False when the daemon cannot hand over to this version; it has finished its events then. */
const requestRestart = async (client: Client): Promise<boolean> => {
  try {
    if (!canHandOver(client.daemon)) {
      await untilIdle(client)
      return false
    }
    await client.post('/daemon/restart', undefined, { timeoutMs: limitMs })
    return true
  } catch (error) {
    if (isUnknownRoute(error)) return false
    throw error
  }
}

const waitForSuccessor = async (home: Home, oldPid: number): Promise<void> => {
  for (let waitedMs = 0; waitedMs < limitMs; waitedMs += stepMs) {
    const file = await readDaemonFile(home)
    if (file && file.pid !== oldPid) return
    await delay(stepMs)
  }
  throw new DoorwardError('daemon-unreachable', 'no new daemon came up within a minute', {
    hint: 'doorward daemon logs',
  })
}

const stopAndWait = async (home: Home, pid: number): Promise<void> => {
  // Check first: an invalid configuration must not stop a running daemon.
  const { loadConfig } = await import('../../shared/config/load.ts')
  await loadConfig(home, await readEnvironment(home))
  const client = await findDaemon(home)
  await client?.post('/daemon/shutdown').finally(() => client.close())
  await waitForExit(pid)
}

const waitForExit = async (pid: number): Promise<void> => {
  const from = performance.now()
  const hasExited = await waitForProcessExit(pid, {
    isOver: () => performance.now() - from > limitMs,
  })
  if (!hasExited)
    throw new DoorwardError(
      'daemon-unreachable',
      `the daemon (pid ${pid}) is still finishing its work, so no other was started`,
      { hint: 'choose Start daemon when it has exited' },
    )
}

const startAndWait = async (home: Home, onFailed: OnFailed): Promise<void> => {
  let failure: StartFailure | undefined
  startDaemon(home, (found) => {
    failure = found
  })
  for (let waitedMs = 0; waitedMs < limitMs; waitedMs += stepMs) {
    const hasFailed = failure !== undefined
    // Look once more after a failure: another start may have been quicker.
    const client = await findDaemon(home).catch(() => undefined)
    if (client) return client.close()
    if (failure !== undefined && hasFailed) {
      onFailed(failure)
      throw notStarted(failure.detail)
    }
    await delay(stepMs)
  }
  throw notStarted('it does not answer')
}

const notStarted = (why: string): DoorwardError =>
  new DoorwardError('daemon-unreachable', `the daemon did not start: ${why}`)

/**
 * Starts the daemon: by the service manager where it is installed there, else as a process that outlives
 * the tray. If another program has its port, it is started again once the port is free, for as long as `isWanted`.
 */
export const startDaemon = (
  home: Home,
  onFailed: OnFailed,
  isWanted: () => boolean = () => false,
): void => {
  const fail = (failure: StartFailure): void => {
    onFailed({ ...failure, detail: toLabel(failure.detail, 200) })
    const { port } = failure.about ?? {}
    const again = () => startDaemon(home, onFailed, isWanted)
    if (port !== undefined) void startWhenFree(port, isWanted, again)
  }
  const start = async () => {
    const service = await findService(home)
    if (service) await startService(service, home, fail)
    else startProcess(home, fail)
  }
  start().catch((error: unknown) => {
    if (!existsSync(home.root)) fail(toFailure(`the folder ${home.root} does not exist`))
    else fail(toFailure(error instanceof DoorwardError ? error.message : errorName(error)))
  })
}

const portCheckMs = 1000

/** Gives up where the system does not say whether a port is in use. */
const startWhenFree = async (
  port: number,
  isWanted: () => boolean,
  start: () => void,
): Promise<void> => {
  while (isWanted() && (await isPortInUse(port)) === true)
    await delay(portCheckMs, undefined, { ref: false })
  if (isWanted() && (await isPortInUse(port)) === false) start()
}

/** When to check that the service still runs; a daemon that cannot start exits within these times. */
const checksMs = [1000, 2000, 5000]

const startService = async (service: Service, home: Home, onFailed: OnFailed): Promise<void> => {
  await service.start()
  for (const waitMs of checksMs) {
    await delay(waitMs, undefined, { ref: false })
    const state = await service.state()
    if (state.is === 'failed')
      return onFailed(await findReason(home, `it exited with code ${state.exitCode}`))
  }
}

const startProcess = (home: Home, onFailed: OnFailed): void => {
  const child = spawnDaemon(home)
  let failure: StartFailure | undefined
  child.once('message', (message: StartMessage) => {
    if ('code' in message) failure = message
    child.disconnect()
  })
  child.once('error', () => onFailed(toFailure('it cannot be run')))
  child.once('exit', (code, signal) => {
    const ending = signal ? `it was ended by ${signal}` : `it exited with code ${code}`
    const report = () =>
      failure ? onFailed(failure) : void findReason(home, ending).then(onFailed)
    if (code === 0) return
    // Its message may not have been read yet.
    if (child.connected) child.once('disconnect', report)
    else report()
  })
  child.unref()
}

const toFailure = (detail: string): StartFailure => ({ code: 'daemon-unreachable', detail })

/** Why a daemon without a channel has exited: a broken configuration, a taken port, or what it wrote. */
const findReason = async (home: Home, otherwise: string): Promise<StartFailure> => {
  const { loadConfig, toStartFailure } = await import('../../shared/config/load.ts')
  try {
    const { gateway } = await loadConfig(home, await readEnvironment(home))
    const { port } = gateway.server
    const [line = ''] = (await readFile(getStderrPath(home), 'utf8').catch(() => '')).split('\n')
    const failure = toFailure(line.replace(/^doorward: /, '') || otherwise)
    return (await isPortInUse(port)) === true ? { ...failure, about: { port } } : failure
  } catch (error) {
    return error instanceof DoorwardError ? toStartFailure(error) : toFailure(otherwise)
  }
}
