import { readDaemonFile } from '../shared/client.ts'
import { systemCode } from '../shared/errors.ts'
import type { Home } from '../shared/home.ts'

/** True when the daemon of a home is gone without having stopped: it would have removed its file. */
export const hasCrashed = async (home: Home): Promise<boolean> => {
  const file = await readDaemonFile(home).catch(() => undefined)
  if (!file) return false
  try {
    process.kill(file.pid, 0)
    return false
  } catch (error) {
    return systemCode(error) === 'ESRCH'
  }
}
