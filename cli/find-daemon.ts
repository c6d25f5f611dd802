import { type Client, connect, readDaemonFile } from '../shared/client.ts'
import { DoorwardError } from '../shared/errors.ts'
import { isAlive } from '../shared/process-state.ts'
import type { Asker } from './context.ts'
import { noticeVersion } from './version-notice.ts'

/**
 * Connects to the daemon of a home if it runs. A `run/daemon.json` whose process has gone is not
 * trusted: another program may have its port by now. Throws as `connect` does.
 */
export const findDaemon = async ({ home, userAgent, terminal }: Asker): Promise<Client> => {
  const file = await readDaemonFile(home)
  if (!file || !isAlive(file.pid))
    throw new DoorwardError('daemon-unreachable', 'the daemon is not running', {
      hint: 'doorward daemon start',
    })
  const client = await connect(home, { userAgent })
  if (terminal) noticeVersion(client.daemon, terminal)
  return client
}

/** The same, or undefined when none runs. Throws `daemon-foreign` and `daemon-silent`. */
export const findRunningDaemon = async (asker: Asker): Promise<Client | undefined> => {
  try {
    return await findDaemon(asker)
  } catch (error) {
    if (error instanceof DoorwardError && error.code === 'daemon-unreachable') return undefined
    throw error
  }
}
