import type { HandOver, Heir } from './handover/hand-over.ts'
import { type RetireParts, retire } from './handover/retire.ts'
import type { StandIn } from './handover/stand-in.ts'
import type { Listeners } from './http/listeners.ts'
import { type ShutDownParts, shutDown } from './shut-down.ts'

/*
 * How a daemon's life ends. In service it shuts down; after a restart it retires, whoever is in service by
 * then. Somebody who ends the daemon means the one in service: where that is another by now, it is told.
 */

export type Ending = {
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

export type EndingParts = ShutDownParts &
  RetireParts & {
    readonly listeners: Pick<Listeners, 'cut'>
    readonly handOver: Pick<HandOver, 'cancel' | 'heir'>
  }

const exitDelayMs = 1000

export const createEnding = (parts: EndingParts): Ending => {
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
