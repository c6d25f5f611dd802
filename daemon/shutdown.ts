import type { LiveConfig } from './config/live-config.ts'
import type { DaemonFileWriter } from './daemon-file.ts'
import { isFinal } from './events/event-record.ts'
import type { EventStore } from './events/event-store.ts'
import type { Listeners } from './http/server.ts'
import type { EventStream } from './http/sse.ts'
import type { Intake } from './intake.ts'
import type { Leadership } from './leadership.ts'
import type { Log, OpenLog } from './log/log.ts'
import type { Predecessor } from './restart/new-process.ts'
import { type HandOver, type Heir, retire, type RetireParts } from './restart/old-process.ts'
import type { StandIn } from './restart/supervisor.ts'
import type { DeliveryWaiters } from './webhook/payload-shape.ts'
import type { RejectionLog } from './webhook/rejection-log.ts'

/*
 * How a daemon's life ends. In service it shuts down; after a restart it retires, whoever is in service by
 * then. Somebody who ends the daemon means the one in service: where that is another by now, it is told.
 */

type ShutdownController = {
  /** Finishes what was accepted, then ends everything so that the process can end by itself. */
  readonly stop: () => Promise<void>
  /** For a second signal: does not wait for agents. */
  readonly abort: () => void
  /** The home was removed, so nobody can stop this daemon any more. */
  readonly homeGone: () => void
  /** Another daemon has taken over. */
  readonly retire: (heir: Heir) => void
  /** That other one is stopped, as `stop` or as `abort` does: ends what is left here. */
  readonly endWithHeir: (atOnce: boolean) => void
  readonly isStopping: () => boolean
}

type EndingParts = ShutDownParts &
  RetireParts & {
    readonly listeners: Pick<Listeners, 'cut'>
    readonly handOver: Pick<HandOver, 'cancel' | 'heir'>
  }

const exitDelayMs = 1000

export const createShutdownController = (parts: EndingParts): ShutdownController => {
  const { home, intake, predecessor, listeners, handOver, log } = parts
  let isStopping = false
  let stopping: Promise<void> | undefined
  let retiring: Promise<void> | undefined
  /** What stays of this process for whoever watches it. */
  let remaining: StandIn | undefined

  /** Ends what this process does, whoever is in service. */
  const endHere = async (): Promise<void> => {
    isStopping = true
    const wasInService = !retiring
    await handOver.cancel()
    // It was too late for that: who stops the daemon means the one in service.
    if (wasInService && retiring) handOver.heir()?.stop()
    stopping ??= retiring ? hurry(retiring) : end()
    return stopping
  }
  const abortHere = (): void => {
    void predecessor?.end(true)
    intake.queue.abort()
  }
  const end = async (): Promise<void> => {
    await shutDown(parts)
    exitSoon()
  }
  const leave = async (heir: Heir): Promise<void> => {
    await retire(parts, heir, (standIn) => (remaining = standIn))
    exitSoon()
  }
  const hurry = async (retiring: Promise<void>): Promise<void> => {
    void predecessor?.end(false)
    listeners.cut()
    await intake.drain()
    await retiring
  }

  return {
    stop: async () => (remaining ? remaining.stop() : endHere()),
    abort: () => {
      if (remaining) void remaining.stop()
      else abortHere()
    },
    homeGone: () => {
      if (stopping || retiring) return
      log.error('the home is gone: stopping')
      process.stderr.write(`doorward: the home ${home.root} is gone, so the daemon ends\n`)
      void endHere()
    },
    retire: (heir) => {
      retiring = leave(heir)
    },
    endWithHeir: (atOnce) => {
      if (atOnce) abortHere()
      else void endHere()
    },
    isStopping: () => isStopping,
  }
}

/** Output that nobody reads must not keep the process. */
const exitSoon = () => void setTimeout(() => process.exit(), exitDelayMs).unref()

type ShutDownParts = {
  readonly intake: Pick<Intake, 'drain'>
  readonly predecessor?: Pick<Predecessor, 'end'> | undefined
  readonly live: Pick<LiveConfig, 'close'>
  readonly office: Pick<Leadership, 'takeNoLogins' | 'close' | 'letGo'>
  readonly listeners: Pick<Listeners, 'close'>
  readonly whereabouts: Pick<DaemonFileWriter, 'remove'>
  readonly stream: Pick<EventStream, 'hint' | 'close'>
  readonly learners: Pick<DeliveryWaiters, 'close'>
  readonly refusals: Pick<RejectionLog, 'close'>
  readonly memory: { readonly events: Pick<EventStore, 'list' | 'record'> }
  readonly isForeground: boolean
  readonly log: Log
  readonly closeLog: OpenLog['close']
}

/**
 * The end of the daemon that is in service: it finishes what was accepted, closes all, and removes what it
 * left in `run/`. It answers until agents have ended, as they may ask it for tokens.
 */
const shutDown = async (parts: ShutDownParts): Promise<void> => {
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
