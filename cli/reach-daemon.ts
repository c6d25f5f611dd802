import type { Client } from '../shared/client.ts'
import type { Context } from './context.ts'
import { findDaemon, findRunningDaemon, startPatienceMs } from './find-daemon.ts'

/**
 * The daemon for a command that needs it; one that does not run is started, unless `--no-start`.
 * Throws `daemon-unreachable`, `daemon-foreign`, or `StartError`.
 */
export const reachDaemon = async (context: Context): Promise<Client> => {
  if (!context.start) return findDaemon(context)
  const running = await findRunningDaemon(context, startPatienceMs)
  if (running) return running
  const { startAndConnect } = await import('./start-and-connect.ts')
  const client = await startAndConnect(context)
  context.terminal.say(`started the daemon (${client.daemon.url}, pid ${client.daemon.pid})`)
  return client
}

/** Runs `use` with the daemon and lets go of the connection afterwards. */
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
