import { readDaemonFile } from '../shared/daemon-file.ts'
import type { Home } from '../shared/home.ts'
import { isAlive } from '../shared/process-state.ts'

/** True when the daemon of a home is gone without having stopped: it would have removed its file. */
export const hasCrashed = async (home: Home): Promise<boolean> => {
  const file = await readDaemonFile(home).catch(() => undefined)
  return file !== undefined && !isAlive(file.pid)
}
