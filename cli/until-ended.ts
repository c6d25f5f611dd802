import type { DaemonFile, Status } from '../shared/api.ts'
import type { Client } from '../shared/client/client.ts'
import { holderOf, isAlive } from '../shared/home/lock.ts'
import { keepDebuggerShut } from '../shared/runtime.ts'
import { untilGone } from '../shared/client/discovery.ts'
import type { Context } from './context.ts'
import { findRunningDaemon, startPatienceMs } from './find-daemon.ts'
import { hasEnded } from './has-ended.ts'

/** Whether a daemon that answers is on its way to its end: it may finish what it has accepted for long. */
export const isEnding = async (client: Client): Promise<boolean> => {
  try {
    return (await client.get<Status>('/status')).stopping ?? false
  } catch (error) {
    if (await hasEnded(error, client.daemon.pid)) return true
    throw error
  }
}

/** Waits for the daemon of the home, if one is about to end. Throws as `findRunningDaemon` and `isEnding`. */
export const untilNoneEnds = async (context: Context): Promise<void> => {
  const { home, userAgent } = context
  const running = await findRunningDaemon({ home, userAgent }, startPatienceMs)
  if (running && (await isEnding(running).finally(running.close)))
    await untilEnded(context, running.daemon)
}

/**
 * Waits until a daemon that is about to end has gone, or another one has taken its place, and says so.
 * Nothing has begun meanwhile: Ctrl-C ends the process as ever.
 */
export const untilEnded = async (
  { home, terminal }: Pick<Context, 'home' | 'terminal'>,
  { pid }: Pick<DaemonFile, 'pid'>,
): Promise<void> => {
  keepDebuggerShut()
  const isReplaced = async () => {
    const holder = await holderOf(home, 'daemon')
    return holder !== undefined && holder !== pid
  }
  if (!isAlive(pid) || (await isReplaced())) return
  terminal.say(`the daemon (pid ${pid}) is stopping: waiting for its end`)
  await untilGone(pid, { isOver: isReplaced })
}
