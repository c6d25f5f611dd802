import { readFile } from 'node:fs/promises'
import type { Config } from '../shared/config/load.ts'
import { collectWarnings } from '../shared/config/warnings.ts'
import type { Home } from '../shared/home/home.ts'
import type { HomeLock } from '../shared/home/lock.ts'
import { packageFolder, version } from '../shared/version.ts'
import { endLeftovers, noteAndRun, noteRuns } from './agents/orphans.ts'
import { createApp, createPublicApp } from './app.ts'
import { LiveConfig, readConfig, type ReadConfig } from './config/live-config.ts'
import {
  createDaemonFileWriter,
  watchDaemonFile,
  watchHomeRemoved,
  type DaemonFileWriter,
} from './daemon-file.ts'
import { createCommentMarks, createLoopGuard, type LoopGuard } from './delivery/loop-guard.ts'
import { createEventLinks } from './event-page/links.ts'
import { linkRoutes, serveEventPage } from './event-page/routes.ts'
import type { EventStore } from './events/event-store.ts'
import { passOn } from './handover/pass-on.ts'
import { prove } from './handover/prove.ts'
import { createGuard } from './http/guard.ts'
import { type Apps, createListeners, type Listeners, type Place } from './http/server.ts'
import { createEventStream, type EventStream } from './http/sse.ts'
import { collectWhenIdle } from './idle-gc.ts'
import { createIntake, type Intake } from './intake.ts'
import { createLeadership, type Leadership } from './leadership.ts'
import { type Log, getLogLevel, openLog } from './log/log.ts'
import { Metrics } from './metrics/metrics.ts'
import type { TokenRecord } from './oauth/tokens/token-record.ts'
import type { Predecessor } from './restart/new-process.ts'
import { createHandOver, type HandOver } from './restart/old-process.ts'
import { apiRoutes } from './routes.ts'
import { createShutdownController } from './shutdown.ts'
import { createMemory, type Memory } from './state.ts'
import { summarize } from './webhook/compiled-webhook.ts'
import { tryOutRoutes } from './webhook/dry-run.ts'
import { createEngine } from './webhook/engine.ts'
import { createDeliveryWaiters, type DeliveryWaiters } from './webhook/payload-shape.ts'
import { createRejectionLog, type RejectionLog } from './webhook/rejection-log.ts'
import { retryEvent } from './webhook/retry-event.ts'
import { serveWebhooks } from './webhook/routes.ts'
import { diagnoseWithBudget } from './webhook/signature-diagnosis.ts'

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
export type DaemonInput = StartupInput & {
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
}: DaemonInput): Daemon => {
  const parts = createServices({ home, processEnv, started, apiToken }, () => handOver)
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
  const ending = createShutdownController({
    ...parts,
    processEnv,
    isForeground,
    predecessor,
    handOver,
  })
  const { stop, abort, homeGone, isStopping } = ending
  const apps = createRequestHandlers({ ...parts, apiToken, handOver, stop, isStopping })

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
      watchHomeRemoved(home, homeGone)
      watchDaemonFile(whereabouts, office)
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

/** What a daemon is made of, whichever way it starts and ends. */
type Parts = {
  readonly home: Home
  readonly startedAt: Date
  readonly log: Log
  readonly closeLog: () => Promise<void>
  readonly listeners: Listeners
  readonly whereabouts: DaemonFileWriter
  readonly memory: Memory
  readonly stream: EventStream
  readonly intake: Intake
  readonly loopGuard: LoopGuard
  readonly live: LiveConfig
  readonly office: Leadership
  readonly metrics: Metrics
  readonly learners: DeliveryWaiters
  readonly refusals: RejectionLog
}

/** What there is before any part: a home, and what was read from it. */
type StartupInput = {
  readonly home: Home
  readonly processEnv: NodeJS.ProcessEnv
  readonly started: ReadConfig
  readonly apiToken: string
}

/** Nothing listens, renews or watches yet. `handOver` is not asked for before all of them are there. */
const createServices = (
  { home, processEnv, started, apiToken }: StartupInput,
  handOver: () => Pick<HandOver, 'heir' | 'decided'>,
): Parts => {
  const { gateway } = started.config
  const { log, close: closeLog } = openLog(home, getLogLevel(started.env))
  const startedAt = new Date()
  const current = () => live.current()

  const listeners = createListeners(gateway.server)
  const whereabouts = createDaemonFileWriter({ home, startedAt, listeners, current, log })

  const memory = createMemory(gateway.events.keep)
  const { events, messages } = memory
  const stream = createEventStream(events)
  const intake = createIntake(gateway.queue, current)
  const marks = createCommentMarks(apiToken)

  const access: Leadership['access'] = async (...asked) => office.access(...asked)
  const lasting = {
    ...memory,
    home,
    queue: intake.queue,
    access,
    run: noteAndRun(noteRuns(home)),
    marks,
    log,
    // After a restart those who follow are with the other daemon.
    isFollowed: () => stream.followers() > 0 || handOver().heir() !== undefined,
  }
  const live = new LiveConfig(
    {
      home,
      processEnv,
      compile: (config, env) => createEngine(config, env, lasting),
      onChange: async ({ gateway }) => {
        intake.resize(gateway.queue)
        events.resize(gateway.events.keep)
        if (!handOver().heir()) await whereabouts.tellIfPossible()
      },
      events,
      log,
    },
    started,
  )

  const metrics = new Metrics(events)
  const office = createLeadership({
    home,
    current,
    events,
    log,
    count: metrics.countToken,
    elsewhere: async () => (await handOver().decided())?.access,
  })
  const learners = createDeliveryWaiters()
  const refusals = createRejectionLog(log)

  return {
    home,
    startedAt,
    log,
    closeLog,
    listeners,
    whereabouts,
    memory,
    stream,
    intake,
    loopGuard: createLoopGuard(marks, messages),
    live,
    office,
    metrics,
    learners,
    refusals,
  }
}

type AppsParts = {
  readonly home: Home
  readonly apiToken: string
  readonly startedAt: Date
  readonly listeners: Pick<Listeners, 'port'>
  readonly whereabouts: Pick<DaemonFileWriter, 'url' | 'publicUrl'>
  readonly memory: Memory
  readonly intake: Pick<Intake, 'budget' | 'queue'>
  readonly live: LiveConfig
  readonly office: Pick<Leadership, 'oauth' | 'access'>
  readonly metrics: Metrics
  readonly stream: EventStream
  readonly learners: DeliveryWaiters
  readonly refusals: RejectionLog
  readonly loopGuard: LoopGuard
  readonly handOver: Pick<HandOver, 'restart' | 'heir' | 'decided'>
  readonly stop: () => Promise<void>
  readonly isStopping: () => boolean
  readonly log: Log
}

/**
 * What answers at the listeners of a daemon: each call makes it anew, around the logins of the office as
 * it is then. Links to pages of events end with what was made before.
 */
const createRequestHandlers = (parts: AppsParts): (() => Apps) => {
  const { apiToken, startedAt, listeners, intake, live, office, handOver, log } = parts
  const { home, metrics, stream, learners, refusals, loopGuard, stop, isStopping } = parts
  const { port } = listeners
  const { url, publicUrl } = parts.whereabouts
  const { events, counts, kept, deliveries, rateLimits } = parts.memory
  const { budget, queue } = intake
  const activity = collectWhenIdle()

  const answered = (ms: number): void => {
    metrics.answered(ms)
    activity()
  }
  const retry = (id: string) => retryEvent(id, live.current(), events, kept, deliveries)
  const webhooks = () => {
    const { config, env } = live.current()
    return summarize(config, env, publicUrl() ?? url(), counts.of)
  }

  return () => {
    const diagnose = diagnoseWithBudget()
    const serveWebhook = serveWebhooks(
      live.current,
      { budget, events, deliveries, rateLimits, learners, diagnose, loopGuard, refusals },
      { log, answered },
    )
    const oauth = office.oauth()
    const guard = createGuard(apiToken, port)
    const links = createEventLinks()
    const status = {
      live,
      startedAt,
      url,
      publicUrl,
      isStopping,
      queue,
      budget,
      events,
      oauth,
      webhooks,
      metrics,
    }
    const { restart } = handOver
    const shutdown = () => void stop()
    const app = createApp({
      apiToken,
      guard,
      log,
      serveWebhook,
      eventPage: serveEventPage({ port, events, links, retry, log }),
      passOn: passOn(handOver),
      routers: [
        apiRoutes({ status, events, stream, retry, restart, shutdown }),
        linkRoutes(events, links, url),
        tryOutRoutes({ current: live.current, learners, loopGuard, homeFolder: home.root }),
        oauth.routes,
      ],
    })
    return { app, publicApp: createPublicApp(log, serveWebhook) }
  }
}

/** Says in log and events that a daemon serves, and what a person should know of its configuration. */
const noteStart = (
  { log, events }: { readonly log: Log; readonly events: EventStore },
  { config, env }: { readonly config: Config; readonly env: NodeJS.ProcessEnv },
  url: string,
  how: 'started' | 'restarted',
): void => {
  log.info({ url, version, pid: process.pid, webhooks: config.webhooks.length }, 'listening')
  for (const { code, detail, hint } of collectWarnings(config, env))
    log.warn({ code, hint }, detail)
  events.add(new Date(), { kind: 'daemon', state: 'done', detail: `daemon ${version} ${how}` })
}

/** True once another version was put in the place of the one that runs, as by an upgrade. */
const isReplaced = async (): Promise<boolean> => {
  try {
    const text = await readFile(new URL('package.json', packageFolder), 'utf8')
    return (JSON.parse(text) as { readonly version?: unknown } | null)?.version !== version
  } catch {
    // Gone, or just being written.
    return false
  }
}
