import type { Home } from '../../shared/home/home.ts'
import type { EventStream } from '../http/event-stream.ts'
import type { Intake } from '../intake.ts'
import type { Listeners } from '../http/listeners.ts'
import type { LiveConfig } from '../configuration/live-config.ts'
import type { Log, OpenLog } from '../log/log.ts'
import type { Learners } from '../webhook/learners.ts'
import type { RefusalLog } from '../webhook/refusal-log.ts'
import type { Heir } from './hand-over.ts'
import { nameMainProcess } from './main-process.ts'
import { type StandIn, standIn } from './stand-in.ts'
import type { Predecessor } from './take-over.ts'

export type RetireParts = {
  readonly home: Home
  readonly processEnv: NodeJS.ProcessEnv
  readonly isForeground: boolean
  readonly intake: Pick<Intake, 'queue' | 'unfinished'>
  readonly predecessor?: Pick<Predecessor, 'ended'> | undefined
  readonly live: Pick<LiveConfig, 'close'>
  readonly listeners: Pick<Listeners, 'leave'>
  readonly stream: Pick<EventStream, 'close'>
  readonly learners: Pick<Learners, 'close'>
  readonly refusals: Pick<RefusalLog, 'close'>
  readonly log: Log
  readonly closeLog: OpenLog['close']
}

/** How long connections from before a restart are served: longer than a request may take. */
const leaveLimitMs = 35_000

/**
 * The end of a daemon that has handed over: another one is in service by now, and nothing of it is touched
 * any more. Lets go of the sockets, and finishes what was accepted. `stays` is called when this process is
 * to stay as long as the daemon of the home lives.
 */
export const retire = async (
  parts: RetireParts,
  heir: Heir,
  stays: (remaining: StandIn) => void,
): Promise<void> => {
  const { home, intake, predecessor, live, listeners, stream, learners, refusals, log } = parts
  const isWatched = parts.isForeground || !(await nameMainProcess(heir.pid, parts.processEnv))
  const remaining = isWatched ? standIn(home) : undefined
  if (remaining) stays(remaining)
  log.info({ unfinished: intake.unfinished() }, 'handed over, finishing what was accepted')
  const left = listeners.leave(leaveLimitMs)
  learners.close()
  stream.close()
  await live.close()
  await left
  await Promise.all([intake.queue.drain(), predecessor?.ended])
  refusals.close()
  log.info('finished')
  await parts.closeLog()
  await heir.finished()
  if (remaining) process.exitCode = (await remaining.ended) ? 0 : 1
}
