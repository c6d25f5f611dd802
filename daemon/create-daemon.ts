import type { HomeLock } from '../shared/home/lock.ts'
import { endLeftovers } from './agents/leftovers.ts'
import { createApps } from './apps.ts'
import { createEnding } from './ending.ts'
import { createHandOver } from './handover/hand-over.ts'
import { prove } from './handover/prove.ts'
import type { Predecessor } from './handover/take-over.ts'
import { watchForHomeGone } from './home-gone.ts'
import type { Place } from './http/listeners.ts'
import { isReplaced } from './is-replaced.ts'
import { readConfig } from './configuration/live-config.ts'
import { noteStart } from './note-start.ts'
import type { TokenRecord } from './oauth/token/token-record.ts'
import { type Given, makeParts } from './parts.ts'
import { stayFound } from './stay-found.ts'

/*
 * The story of a daemon's life, once its home is there (`start` brings it here):
 *
 *   parts -> office (lock, tokens) -> sockets -> serve: what answers (`apps`), and where it is found
 *   (`whereabouts`)
 *
 * ... until somebody ends it (`ending`): drain, close, remove what it left in run/ (`shut-down`). Or a
 * restart (`handover/hand-over`): another one takes over, and this one finishes what it has accepted
 * (`handover/retire`); should the other one fail, this one serves again.
 */

export type RunningDaemon = {
  readonly url: string
  /** Finishes what was accepted, then ends everything so that the process can end by itself. */
  readonly stop: () => Promise<void>
  /** How many accepted events a stop would wait for. */
  readonly unfinished: () => number
  /** For a second signal: does not wait for agents. */
  readonly abort: () => void
}

/** What a daemon begins with. */
export type Beginning = Given & {
  /** The daemon that hands over to this one. */
  readonly predecessor?: Predecessor
  /** Whoever started this process watches it. */
  readonly isForeground?: boolean
}

/** A daemon that is made and not in service: it listens nowhere, and renews no token. */
export type Daemon = {
  readonly places: readonly Place[]
  /** Listens at these places, or wherever it does not yet. Throws `port-in-use`, `config-invalid`. */
  readonly bind: (places?: readonly Place[]) => Promise<void>
  /** Throws `internal` when it does not answer as it should. */
  readonly prove: () => Promise<void>
  /** From now on it is the only one that renews tokens; `unsaved` are those the disk refused. */
  readonly takeOffice: (lock: HomeLock, unsaved: readonly TokenRecord[]) => Promise<void>
  /** Answers, and says where it is found. */
  readonly serve: () => Promise<RunningDaemon>
  /** Takes back what it did so far, but for the lock. */
  readonly giveUp: () => Promise<void>
}

export const createDaemon = ({
  home,
  processEnv,
  started,
  apiToken,
  predecessor,
  isForeground = false,
}: Beginning): Daemon => {
  const parts = makeParts({ home, processEnv, started, apiToken }, () => handOver)
  const { log, listeners, whereabouts, memory, intake, live, office } = parts

  const handOver = createHandOver({
    ...parts,
    // What another version takes only that one knows: it says itself what is wrong.
    check: async () => (await isReplaced()) || readConfig(home, processEnv),
    serveAgain: async () => {
      listeners.answer(apps())
      await whereabouts.tellAgain()
    },
    retire: (heir) => ending.retire(heir),
    end: (atOnce) => ending.endWithHeir(atOnce),
    isStopping: () => ending.isStopping(),
  })
  const ending = createEnding({ ...parts, processEnv, isForeground, predecessor, handOver })
  const { stop, abort, homeGone, isStopping } = ending
  const apps = createApps({ ...parts, apiToken, handOver, stop, isStopping })

  predecessor?.follow({ ...parts, killed: () => void endLeftovers(home, log) })

  return {
    places: listeners.places,
    bind: async (places = listeners.places) => listeners.bind(places, apiToken, log),
    prove: async () => prove(apps().app, apiToken),
    takeOffice: office.take,
    serve: async () => {
      // Last of all that can fail: what it accepts before that, nobody would know of afterwards.
      await whereabouts.tell()
      listeners.answer(apps())
      live.watch()
      watchForHomeGone(home, homeGone)
      stayFound(whereabouts, office)
      const url = whereabouts.url()
      noteStart({ log, events: memory.events }, started, url, predecessor ? 'restarted' : 'started')
      const publicUrl = whereabouts.publicUrl()
      await predecessor?.serving({ url, publicUrl, startedAt: parts.startedAt.toISOString() })
      return { url, stop, unfinished: intake.unfinished, abort }
    },
    giveUp: async () => {
      // First, as senders who wait here would wait for a refresh on its way too.
      await listeners.close()
      await office.close()
      await live.close()
      parts.refusals.close()
      await parts.closeLog()
    },
  }
}
