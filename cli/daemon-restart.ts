import { readEnvironment } from '../shared/environment.ts'
import { loadConfig } from '../shared/load-config.ts'
import type { Context } from './context.ts'
import { startDaemon } from './daemon-start.ts'
import { stopRunning } from './daemon-stop.ts'
import { findRunningDaemon } from './find-daemon.ts'

/**
 * Stops the daemon if it runs, then starts it. A configuration that cannot be used leaves the running
 * one alone: throws `config-invalid` or `home-insecure`.
 */
export const restartDaemon = async (context: Context): Promise<void> => {
  const running = await findRunningDaemon(context)
  running?.close()
  // Without a daemon there may be no home yet; the start makes it.
  if (running) await loadConfig(context.home, await readEnvironment(context.home))
  const pid = await stopRunning(context)
  if (pid !== undefined) context.terminal.say(`stopped (pid ${pid})`)
  await startDaemon(context, [], {})
}
