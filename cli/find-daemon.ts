import { type Client, connect } from '../shared/client/client.ts'
import { readDaemonFile } from '../shared/client/discovery.ts'
import { DoorwardError } from '../shared/errors.ts'
import type { Home } from '../shared/home/home.ts'
import { isAlive } from '../shared/home/lock.ts'
import type { Asker } from './context.ts'
import { noticeVersion } from './version-notice.ts'

/** How long a daemon that is only just starting or ending is waited for, in milliseconds. */
const usualPatienceMs = 500
/** The same for a command that would start one itself: another command may just be doing so. */
export const startPatienceMs = 10_000

/**
 * Connects to the daemon of a home if it runs. A `run/daemon.json` whose process has gone is not
 * trusted: another program may have its port by now. Throws as `connect` does.
 */
export const findDaemon = async (asker: Asker): Promise<Client> => {
  if (await isTold(asker.home, usualPatienceMs)) return connectTold(asker)
  throw new DoorwardError('daemon-unreachable', 'the daemon is not running', {
    hint: 'doorward daemon start',
  })
}

/**
 * The same, or undefined when none runs. Throws `daemon-foreign` and `daemon-silent`, and
 * `daemon-unreachable` when one runs and nothing says where.
 */
export const findRunningDaemon = async (
  asker: Asker,
  patienceMs = usualPatienceMs,
): Promise<Client | undefined> => {
  if (!(await isTold(asker.home, patienceMs))) return undefined
  try {
    return await connectTold(asker)
  } catch (error) {
    if (error instanceof DoorwardError && error.code === 'daemon-unreachable') return undefined
    throw error
  }
}

const connectTold = async ({ home, userAgent, terminal }: Asker): Promise<Client> => {
  const client = await connect(home, { userAgent })
  if (terminal) noticeVersion(client.daemon, terminal)
  return client
}

/** Whether `run/daemon.json` names a process that lives. */
const isTold = async (home: Home, patienceMs: number): Promise<boolean> => {
  const look = async (): Promise<boolean> => {
    const file = await readDaemonFile(home)
    return file !== undefined && isAlive(file.pid)
  }
  if (await look()) return true
  // Loaded only now: nearly always it is not wanted, and every command would wait for it.
  const { untilTold } = await import('./until-told.ts')
  return untilTold(home, look, patienceMs)
}
