import type { Home } from '../shared/home.ts'
import type { HomeLock } from '../shared/instance-lock.ts'
import type { Config } from '../shared/load-config.ts'
import { endLeftovers, noteRuns } from './agents/leftovers.ts'
import { createApps } from './apps.ts'
import { createCommentMarks } from './deliver/own-comment.ts'
import { createEnding } from './ending.ts'
import { createEventStream } from './event-stream.ts'
import { createHandOver } from './handover/hand-over.ts'
import { prove } from './handover/prove.ts'
import type { Predecessor } from './handover/take-over.ts'
import { watchForHomeGone } from './home-gone.ts'
import { createIntake } from './intake.ts'
import { type Place, createListeners } from './listeners.ts'
import { type ReadConfig, createLiveConfig, readConfig } from './live-config.ts'
import { logLevelOf } from './log-level.ts'
import { openLog } from './log.ts'
import { createMemory } from './memory.ts'
import { createOAuthCounts } from './metrics/oauth-counts.ts'
import { noteStart } from './note-start.ts'
import type { TokenRecord } from './oauth/token/token-record.ts'
import { type Office, createOffice } from './office.ts'
import { createSetup } from './setup.ts'
import { createLearners } from './webhook/learners.ts'
import { createRefusalLog } from './webhook/refusal-log.ts'
import { createWhereabouts } from './whereabouts.ts'

/*
 * The story of a daemon's life, once its home is there: parts -> office (lock, tokens) -> sockets -> serve
 * ... stop: drain, close, remove what it left in run/. Or a restart: another one takes over, and this one
 * finishes what it has accepted.
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

export type DaemonParts = {
  readonly home: Home
  readonly processEnv: NodeJS.ProcessEnv
  readonly started: ReadConfig
  readonly apiToken: string
  /** The daemon that hands over to this one. */
  readonly predecessor?: Predecessor
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
}: DaemonParts): Daemon => {
  const { server, queue: limits, events: eventLimits } = started.config.gateway
  const { log, close: closeLog } = openLog(home, logLevelOf(started.env))
  const startedAt = new Date()

  const listeners = createListeners(server)
  const whereabouts = createWhereabouts({
    home,
    startedAt,
    listeners,
    configuredUrl: () => live.current().config.gateway.server.public_url,
    log,
  })
  const { url } = whereabouts

  const memory = createMemory(eventLimits.keep)
  const { events, kept, deliveries, progress } = memory
  const stream = createEventStream(events)
  const oauthCounts = createOAuthCounts()
  const intake = createIntake(
    limits,
    (agentName) => live.current().config.agents.get(agentName)?.concurrency ?? 1,
  )
  const { queue, unfinished } = intake
  const access: Office['access'] = async (...asked) => office.access(...asked)
  const marks = createCommentMarks(apiToken)
  const noteRun = noteRuns(home)
  const lasting = { home, queue, events, log, access, noteRun, deliveries, kept, marks, progress }
  const setUp = (config: Config, env: NodeJS.ProcessEnv) => createSetup(config, env, lasting)
  const changed = async ({ gateway }: Config): Promise<void> => {
    intake.resize(gateway.queue)
    events.resize(gateway.events.keep)
    if (!handOver.heir()) await whereabouts.tellIfPossible()
  }
  const live = createLiveConfig({ home, processEnv, setUp, changed, events, log }, started)
  const office = createOffice({
    home,
    current: live.current,
    events,
    log,
    count: oauthCounts.count,
    elsewhere: async () => (await handOver.decided())?.access,
  })
  const learners = createLearners()
  const refusals = createRefusalLog(log)

  const handOver = createHandOver({
    home,
    listeners,
    memory,
    stream,
    office,
    log,
    check: async () => readConfig(home, processEnv),
    resume: async () => {
      listeners.answer(apps())
      await whereabouts.tellAgain()
    },
    retire: (heir) => ending.retire(heir),
    end: (atOnce) => ending.endWithHeir(atOnce),
    unfinished,
    isStopping: () => ending.isStopping(),
  })
  const ending = createEnding({
    home,
    processEnv,
    isForeground,
    intake,
    drainTimeout: () => live.current().config.gateway.queue.drain_timeout,
    predecessor,
    handOver,
    live,
    office,
    listeners,
    whereabouts,
    stream,
    learners,
    refusals,
    log,
    closeLog,
  })

  const apps = createApps({
    apiToken,
    startedAt,
    listeners,
    whereabouts,
    memory,
    intake,
    live,
    office,
    oauthCounts,
    stream,
    learners,
    refusals,
    isOwnComment: marks.isOwnComment,
    handOver,
    stop: ending.stop,
    log,
  })

  predecessor?.follow({
    memory,
    unfinished: intake.elsewhere,
    listeners,
    log,
    access,
    changed: queue.look,
    killed: () => {
      log.warn('the daemon that handed over to this one was killed')
      void endLeftovers(home, log)
    },
  })

  return {
    places: listeners.places,
    bind: async (places = listeners.places) => listeners.bind(places, apiToken, log),
    prove: async () => prove(apps().app, apiToken),
    takeOffice: office.take,
    serve: async () => {
      listeners.answer(apps())
      await whereabouts.tell()
      live.watch()
      watchForHomeGone(home, ending.homeGone)
      const how = predecessor ? 'restarted' : 'started'
      noteStart({ log, events }, started, url(), how)
      await predecessor?.serving(url(), startedAt.toISOString())
      return { url: url(), stop: ending.stop, unfinished, abort: ending.abort }
    },
    giveUp: async () => {
      await office.close()
      await listeners.close()
      await live.close()
      refusals.close()
      await closeLog()
    },
  }
}
