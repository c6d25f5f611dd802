import { warningsOf } from '../shared/config-warnings.ts'
import { DoorwardError } from '../shared/errors.ts'
import type { Home } from '../shared/home.ts'
import type { HomeLock } from '../shared/instance-lock.ts'
import type { Config } from '../shared/load-config.ts'
import { version } from '../shared/version.ts'
import { endLeftovers, noteRuns } from './agents/leftovers.ts'
import { createApps } from './apps.ts'
import { createCommentMarks } from './deliver/own-comment.ts'
import { createEventStream } from './event-stream.ts'
import type { EventStore } from './events.ts'
import { createHandOver } from './handover/hand-over.ts'
import { nameMainProcess } from './handover/main-process.ts'
import { prove } from './handover/prove.ts'
import { type StandIn, standIn } from './handover/stand-in.ts'
import type { Predecessor } from './handover/take-over.ts'
import { watchForHomeGone } from './home-gone.ts'
import { createIntake } from './intake.ts'
import { type Place, createListeners } from './listeners.ts'
import { type ReadConfig, createLiveConfig, readConfig } from './live-config.ts'
import { logLevelOf } from './log-level.ts'
import { type Log, openLog } from './log.ts'
import { createMemory } from './memory.ts'
import { createOAuthCounts } from './metrics/oauth-counts.ts'
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

const exitDelayMs = 1000
/** How long connections from before a restart are served: longer than a request may take. */
const leaveLimitMs = 35_000

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

  let isStopping = false
  let stopping: Promise<void> | undefined
  let retiring: Promise<void> | undefined
  let remaining: StandIn | undefined
  const drainTimeout = () => live.current().config.gateway.queue.drain_timeout
  const stop = async (): Promise<void> => (remaining ? remaining.stop() : endHere())
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
  const abort = (): void => {
    if (remaining) void remaining.stop()
    else abortHere()
  }
  const abortHere = (): void => {
    void predecessor?.end(true)
    queue.abort()
  }
  const end = async (): Promise<void> => {
    log.info('stopping')
    const drained = Promise.all([queue.drain(drainTimeout()), predecessor?.end(false)])
    learners.close()
    await live.close()
    await drained
    await office.close()
    stream.close()
    await listeners.close()
    await whereabouts.remove()
    await office.letGo()
    refusals.close()
    log.info('stopped')
    await closeLog()
    exitSoon()
  }
  const endWithoutHome = (): void => {
    if (stopping || retiring) return
    log.error('the home is gone: stopping')
    process.stderr.write(`doorward: the home ${home.root} is gone, so the daemon ends\n`)
    void endHere()
  }
  /** Another daemon is in service by now: nothing of it is touched any more. */
  const retire = async (): Promise<void> => {
    if (isForeground || !(await isPassedOn())) remaining = standIn(home)
    log.info({ unfinished: unfinished() }, 'handed over, finishing what was accepted')
    const left = listeners.leave(leaveLimitMs)
    learners.close()
    stream.close()
    await live.close()
    await left
    await Promise.all([queue.drain(), predecessor?.ended])
    refusals.close()
    log.info('finished')
    await closeLog()
    await handOver.heir()?.finished()
    if (remaining) process.exitCode = (await remaining.ended) ? 0 : 1
    exitSoon()
  }
  /** Whether whoever watches this very process, if anybody does, watches the other one by now. */
  const isPassedOn = async (): Promise<boolean> => {
    const heir = handOver.heir()
    return heir === undefined || nameMainProcess(heir.pid, processEnv)
  }
  const hurry = async (retiring: Promise<void>): Promise<void> => {
    void predecessor?.end(false)
    listeners.cut()
    await queue.drain(drainTimeout())
    await retiring
  }
  // Output that nobody reads must not keep the process.
  const exitSoon = () => void setTimeout(() => process.exit(), exitDelayMs).unref()

  const handOver = createHandOver({
    home,
    listeners,
    memory,
    office,
    log,
    check: async () => {
      if (isStopping) throw new DoorwardError('stopping', 'the daemon is stopping')
      return readConfig(home, processEnv)
    },
    resume: async () => {
      listeners.answer(apps())
      await whereabouts.tellAgain()
    },
    silence: (isSilent) => {
      stream.silence(isSilent)
      // Who followed comes back for what was not sent.
      if (!isSilent) stream.close()
    },
    retire: () => {
      retiring = retire()
    },
    end: (atOnce) => {
      if (atOnce) abortHere()
      else void endHere()
    },
    unfinished,
    isStopping: () => isStopping,
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
    stop,
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
      watchForHomeGone(home, endWithoutHome)
      const how = predecessor ? 'restarted' : 'started'
      noteStart(log, events, started.config, started.env, url(), how)
      await predecessor?.serving(url(), startedAt.toISOString())
      return { url: url(), stop, unfinished, abort }
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

const noteStart = (
  log: Log,
  events: EventStore,
  config: Config,
  env: NodeJS.ProcessEnv,
  url: string,
  how: 'started' | 'restarted',
): void => {
  log.info({ url, version, pid: process.pid, webhooks: config.webhooks.length }, 'listening')
  for (const { code, detail, hint } of warningsOf(config, env)) log.warn({ code, hint }, detail)
  events.add(new Date(), { kind: 'daemon', state: 'done', detail: `daemon ${version} ${how}` })
}
