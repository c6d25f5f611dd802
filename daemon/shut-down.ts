import { isFinal } from './events/event-record.ts'
import type { EventStore } from './events/event-store.ts'
import type { EventStream } from './http/event-stream.ts'
import type { Predecessor } from './handover/take-over.ts'
import type { Intake } from './intake.ts'
import type { Listeners } from './http/listeners.ts'
import type { LiveConfig } from './configuration/live-config.ts'
import type { Log, OpenLog } from './log/log.ts'
import type { Office } from './office.ts'
import type { Learners } from './webhook/learners.ts'
import type { RefusalLog } from './webhook/refusal-log.ts'
import type { Whereabouts } from './whereabouts.ts'

export type ShutDownParts = {
  readonly intake: Pick<Intake, 'drain'>
  readonly predecessor?: Pick<Predecessor, 'end'> | undefined
  readonly live: Pick<LiveConfig, 'close'>
  readonly office: Pick<Office, 'takeNoLogins' | 'close' | 'letGo'>
  readonly listeners: Pick<Listeners, 'close'>
  readonly whereabouts: Pick<Whereabouts, 'remove'>
  readonly stream: Pick<EventStream, 'hint' | 'close'>
  readonly learners: Pick<Learners, 'close'>
  readonly refusals: Pick<RefusalLog, 'close'>
  readonly memory: { readonly events: Pick<EventStore, 'list' | 'record'> }
  readonly isForeground: boolean
  readonly log: Log
  readonly closeLog: OpenLog['close']
}

/**
 * The end of the daemon that is in service: it finishes what was accepted, closes all, and removes what it
 * left in `run/`. It answers until agents have ended, as they may ask it for tokens.
 */
export const shutDown = async (parts: ShutDownParts): Promise<void> => {
  const { intake, predecessor, live, office, listeners, whereabouts, log } = parts
  log.info('stopping')
  const { events } = parts.memory
  const open = events.list({ limit: Infinity }).filter(({ state }) => !isFinal(state))
  const drained = Promise.all([intake.drain(), predecessor?.end(false)])
  parts.learners.close()
  office.takeNoLogins()
  parts.stream.hint()
  await live.close()
  await drained
  const isLost = (id: string) => ['failed', 'dropped'].includes(events.record(id)?.state ?? '')
  if (parts.isForeground) sayLost(open.filter(({ id }) => isLost(id)).length)
  await office.close()
  parts.stream.close()
  await listeners.close()
  await whereabouts.remove()
  await office.letGo()
  parts.refusals.close()
  log.info('stopped')
  await parts.closeLog()
}

/** With its memory goes what could be run again; who sits before it does not see the log. */
const sayLost = (count: number): void => {
  if (count === 0) return
  const [what, them] = count === 1 ? ['event', 'it'] : ['events', 'them']
  process.stderr.write(
    `doorward: ${count} accepted ${what} failed or got no turn before the end; the log names ${them}: deliver ${them} again from the sender\n`,
  )
}
