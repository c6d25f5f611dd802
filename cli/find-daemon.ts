import { type Client, connect, readDaemonFile } from '../shared/client.ts'
import { DoorwardError } from '../shared/errors.ts'
import type { Home } from '../shared/home.ts'
import { isAlive } from '../shared/process-state.ts'

/**
 * Connects to the daemon of a home if it runs. A `run/daemon.json` whose process has gone is not
 * trusted: another program may have its port by now. Throws as `connect` does.
 */
export const findDaemon = async (home: Home): Promise<Client> => {
  const file = await readDaemonFile(home)
  if (!file || !isAlive(file.pid))
    throw new DoorwardError('daemon-unreachable', 'the daemon is not running', {
      hint: 'doorward daemon start',
    })
  return connect(home)
}

/** The same, or undefined when none runs. Throws `daemon-foreign`. */
export const findRunningDaemon = async (home: Home): Promise<Client | undefined> => {
  try {
    return await findDaemon(home)
  } catch (error) {
    if (error instanceof DoorwardError && error.code === 'daemon-unreachable') return undefined
    throw error
  }
}
