import type { Client } from '../shared/client/client.ts'
import { DoorwardError } from '../shared/errors.ts'
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

const maxTries = 3

/**
 * As `withDaemon`, for what any daemon of the home can do: where one is about to end, the next one is asked.
 * What only `reads` is asked again as well where no answer came.
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
      // One that ends each time it is asked is not started for ever.
      if (!context.start || tries === maxTries || !(error instanceof DoorwardError)) throw error
      const { untilEnded } = await import('./until-ended.ts')
      const { hasEnded } = await import('./has-ended.ts')
      if (error.code === 'stopping') await untilEnded(context, client.daemon)
      else if (!reads || !(await hasEnded(error, client.daemon.pid))) throw error
    } finally {
      client.close()
    }
  }
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
