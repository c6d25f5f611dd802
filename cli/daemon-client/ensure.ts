import type { DaemonFile, Status } from '../../shared/api/api.ts'
import type { Client } from '../../shared/client/client.ts'
import { waitForProcessExit } from '../../shared/client/discovery.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { readLockOwner, isAlive } from '../../shared/home/lock.ts'
import { ignoreSigusr1 } from '../../shared/runtime.ts'
import type { Context } from '../context.ts'
import { findDaemon, findRunningDaemon, hasExited, startPatienceMs } from './connect.ts'

/**
 * Connects to the daemon for a command that needs it; starts it unless `--no-start`.
 * Throws `daemon-unreachable`, `daemon-foreign`, or `StartError`.
 */
export const reachDaemon = async (context: Context): Promise<Client> => {
  if (!context.start) return findDaemon(context)
  const running = await findRunningDaemon(context, startPatienceMs)
  if (running) return running
  const { startAndConnect } = await import('./start.ts')
  const client = await startAndConnect(context)
  context.terminal.say(`started the daemon (${client.daemon.url}, pid ${client.daemon.pid})`)
  return client
}

const maxTries = 3

/**
 * Like `withDaemon`, but when the daemon is stopping the request goes to the next one. With `reads` it is
 * also repeated where no answer came.
 */
export const withNextDaemon = async <Result>(
  context: Context,
  use: (client: Client) => Promise<Result>,
  { reads = false } = {},
): Promise<Result> => {
  for (let tries = 1; ; tries += 1) {
    const client = await reachDaemon(context)
    try {
      return await use(client)
    } catch (error) {
      // Do not restart a daemon forever that stops at every request.
      if (!context.start || tries === maxTries || !(error instanceof DoorwardError)) throw error
      if (error.code === 'stopping') await waitForExit(context, client.daemon)
      else if (!reads || !(await hasExited(error, client.daemon.pid))) throw error
    } finally {
      client.close()
    }
  }
}

/** Runs `use` with the daemon and closes the connection afterwards. */
export const withDaemon = async <Result>(
  context: Context,
  use: (client: Client) => Promise<Result>,
): Promise<Result> => {
  const client = await reachDaemon(context)
  try {
    return await use(client)
  } finally {
    client.close()
  }
}

/** True when a daemon that answers is stopping: it may take long to finish what it has accepted. */
export const isStopping = async (client: Client): Promise<boolean> => {
  try {
    return (await client.get<Status>('/status')).stopping ?? false
  } catch (error) {
    if (await hasExited(error, client.daemon.pid)) return true
    throw error
  }
}

/** Waits for a stopping daemon of the home. Throws what `findRunningDaemon` and `isStopping` throw. */
export const waitForStopping = async (context: Context): Promise<void> => {
  const { home, userAgent } = context
  const running = await findRunningDaemon({ home, userAgent }, startPatienceMs)
  if (running && (await isStopping(running).finally(running.close)))
    await waitForExit(context, running.daemon)
}

/**
 * Prints that the daemon is stopping and waits until it has exited or was replaced. Nothing has been
 * started yet, so Ctrl-C simply ends the process.
 */
export const waitForExit = async (
  { home, terminal }: Pick<Context, 'home' | 'terminal'>,
  { pid }: Pick<DaemonFile, 'pid'>,
): Promise<void> => {
  ignoreSigusr1()
  const isReplaced = async () => {
    const holder = await readLockOwner(home, 'daemon')
    return holder !== undefined && holder !== pid
  }
  if (!isAlive(pid) || (await isReplaced())) return
  terminal.say(`the daemon (pid ${pid}) is stopping: waiting for it to exit`)
  await waitForProcessExit(pid, { isOver: isReplaced })
}
