import { readDaemonFile } from '../shared/client/discovery.ts'
import type { Home } from '../shared/home/home.ts'
import { isAlive } from '../shared/home/lock.ts'

/** True when the daemon of a home is gone without having stopped: it would have removed its file. */
export const hasCrashed = async (home: Home): Promise<boolean> => {
  const file = await readDaemonFile(home).catch(() => undefined)
  return file !== undefined && !isAlive(file.pid)
}
