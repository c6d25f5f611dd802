import type { Status } from '../shared/api.ts'
import { isAlive } from '../shared/process-state.ts'
import type { Context } from './context.ts'
import { findRunningDaemon } from './find-daemon.ts'
import { interruptSignal, pause } from './interrupt.ts'

/** Asks the daemon to end and waits until its process has gone; none running is fine. */
export const stopDaemon = async (context: Context): Promise<void> => {
  const { terminal } = context
  const pid = await stopRunning(context)
  if (terminal.json) terminal.printJson({ running: false, ...(pid === undefined ? {} : { pid }) })
  else terminal.print(pid === undefined ? 'not running' : `stopped (pid ${pid})`)
}

/** Stops the daemon and gives its pid, or undefined when none ran. */
export const stopRunning = async (context: Context): Promise<number | undefined> => {
  const client = await findRunningDaemon(context)
  if (!client) return undefined
  const { pid } = client.daemon
  try {
    const { queue } = await client.get<Status>('/status')
    await client.post('/daemon/shutdown')
    if (queue.running + queue.waiting > 0)
      context.terminal.say(
        `waiting for ${queue.running} running and ${queue.waiting} waiting events`,
      )
  } finally {
    client.close()
  }
  const signal = interruptSignal()
  for (let waitMs = 10; isAlive(pid); waitMs = Math.min(waitMs * 1.5, 250))
    await pause(waitMs, signal)
  return pid
}
