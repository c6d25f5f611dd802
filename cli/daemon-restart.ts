import type { Context } from './context.ts'
import { startDaemon } from './daemon-start.ts'
import { stopRunning } from './daemon-stop.ts'

/** Stops the daemon if it runs, then starts it. */
export const restartDaemon = async (context: Context): Promise<void> => {
  const pid = await stopRunning(context)
  if (pid !== undefined) context.terminal.say(`stopped (pid ${pid})`)
  await startDaemon(context, [], {})
}
