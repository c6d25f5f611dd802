import { randomBytes } from 'node:crypto'
import { unlink } from 'node:fs/promises'
import { warningsOf } from '../shared/config-warnings.ts'
import { nameOf } from '../shared/errors.ts'
import { makeHome } from '../shared/first-home.ts'
import { type Home, prepareHome } from '../shared/home.ts'
import { lockHome } from '../shared/instance-lock.ts'
import type { Config } from '../shared/load-config.ts'
import { version } from '../shared/version.ts'
import { endLeftovers, noteRuns } from './agents/leftovers.ts'
import { readOrMakeApiToken } from './api-token.ts'
import { createApp, createPublicApp } from './app.ts'
import { createGuard } from './guard.ts'
import { serveAccess } from './oauth/serve-access.ts'
import { createByteBudget } from './byte-budget.ts'
import { createDaemonJson } from './daemon-json.ts'
import { createCommentMarks } from './deliver/own-comment.ts'
import { createProgress } from './deliver/progress.ts'
import { createEventLinks } from './event-page/links.ts'
import { linkRoutes } from './event-page/link-routes.ts'
import { serveEventPage } from './event-page/serve-event-page.ts'
import { createEventStream } from './event-stream.ts'
import { type EventStore, createEventStore } from './events.ts'
import { removeHalfWritten } from './half-written.ts'
import { createListeners } from './listeners.ts'
import { type ReadConfig, createLiveConfig, readConfig } from './live-config.ts'
import { logLevelOf } from './log-level.ts'
import { type Log, openLog } from './log.ts'
import { type OAuthEvent, createOAuth } from './oauth/oauth.ts'
import { createQueue } from './queue.ts'
import { apiRoutes } from './routes.ts'
import { type Setup, createSetup } from './setup.ts'
import { viewOf } from './view-of.ts'
import { createDeliveries } from './webhook/deliveries.ts'
import { createExamine } from './webhook/doctor.ts'
import { createKeptEvents } from './webhook/kept-events.ts'
import { createLearners } from './webhook/learners.ts'
import { createRateLimits } from './webhook/rate-limits.ts'
import { createRefusalLog } from './webhook/refusal-log.ts'
import { retryEvent } from './webhook/retry-event.ts'
import { serveWebhooks } from './webhook/routes.ts'
import type { AcceptedEvent } from './webhook/run-event.ts'
import { countEvents, summarize } from './webhook/summaries.ts'
import { tryOutRoutes } from './webhook/try-out-routes.ts'

/*
 * The story of a daemon's life: home -> lock -> configuration -> parts -> listen ... stop: drain,
 * close, remove what it left in run/.
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

/** Starts everything. Throws what keeps it from starting, and then leaves nothing running. */
export const startDaemon = async (
  home: Home,
  processEnv: NodeJS.ProcessEnv,
): Promise<RunningDaemon> => {
  await prepareHome(home)
  const unlock = await lockHome(home)
  try {
    // Of a daemon that was killed: its process number and port may be another's by now.
    await unlink(home.daemonJson).catch(() => undefined)
    await removeHalfWritten(home)
    await makeHome(home)
    const read = await readConfig(home, processEnv)
    const apiToken = await readOrMakeApiToken(home)
    return await serve(home, processEnv, read, apiToken, unlock)
  } catch (error) {
    await unlock()
    throw error
  }
}

const exitDelayMs = 1000

const serve = async (
  home: Home,
  processEnv: NodeJS.ProcessEnv,
  started: ReadConfig,
  apiToken: string,
  unlock: () => Promise<void>,
): Promise<RunningDaemon> => {
  const { server, queue: limits, events: eventLimits } = started.config.gateway
  const { log, close: closeLog } = openLog(home, logLevelOf(started.env))
  const leftovers = await endLeftovers(home)
  if (leftovers > 0) log.warn({ agents: leftovers }, 'ended agents of a daemon that was killed')
  const startedAt = new Date()

  const listeners = createListeners(server)
  const { url } = listeners
  const publicUrl = () => live.current().config.gateway.server.public_url ?? listeners.publicUrl()
  const daemonJson = createDaemonJson(home, startedAt)

  const events = createEventStore(eventLimits.keep)
  const stream = createEventStream(events, randomBytes(6).toString('hex'))
  const countedOf = countEvents(events)
  const budget = createByteBudget(limits.max_bytes)
  const queue = createQueue({
    maxEvents: limits.max_events,
    concurrency: limits.concurrency,
    budget,
  })
  // Logins are there before the setup that uses their tokens, and see each new configuration.
  let known: Pick<Setup, 'config' | 'env'> = started
  const oauth = createOAuth({
    home,
    gateway: viewOf(() => known.config.gateway),
    env: viewOf(() => known.env),
    log,
    announce: announceTo(events),
  })
  const lasting = {
    home,
    queue,
    events,
    log,
    access: oauth.access,
    noteRun: noteRuns(home),
    deliveries: createDeliveries(),
    kept: createKeptEvents<AcceptedEvent>(events),
    marks: createCommentMarks(apiToken),
    progress: createProgress(),
  }
  const setUp = (config: Config, env: NodeJS.ProcessEnv): Setup => {
    const setup = createSetup(config, env, lasting)
    known = setup
    return setup
  }
  const changed = async ({ gateway }: Config): Promise<void> => {
    const { max_events: maxEvents, concurrency, max_bytes: maxBytes } = gateway.queue
    queue.resize({ maxEvents, concurrency })
    budget.resize(maxBytes)
    events.resize(gateway.events.keep)
    await daemonJson
      .write(url(), publicUrl())
      .catch((error: unknown) => log.error({ error: nameOf(error) }, 'cannot write daemon.json'))
  }
  const live = createLiveConfig({ home, processEnv, setUp, changed, events, log }, started)
  const webhooks = () => {
    const { config, env } = live.current()
    return summarize(config, env, publicUrl() ?? url(), countedOf)
  }
  const learners = createLearners()
  const refusals = createRefusalLog(log)

  let stopping: Promise<void> | undefined
  const stop = (): Promise<void> => {
    stopping ??= (async () => {
      log.info('stopping')
      const drained = queue.drain(live.current().config.gateway.queue.drain_timeout)
      learners.close()
      await live.close()
      await drained
      await oauth.close()
      stream.close()
      await listeners.close()
      await daemonJson.remove()
      await unlock()
      refusals.close()
      log.info('stopped')
      await closeLog()
      // Output that nobody reads must not keep the process.
      setTimeout(() => process.exit(), exitDelayMs).unref()
    })()
    return stopping
  }

  const { deliveries, kept, marks } = lasting
  const { isOwnComment } = marks
  const serveWebhook = serveWebhooks(
    live.current,
    {
      budget,
      events,
      deliveries,
      rateLimits: createRateLimits(),
      learners,
      examine: createExamine(),
      isOwnComment,
      refusals,
    },
    log,
  )
  const guard = createGuard(apiToken, listeners.port)
  const links = createEventLinks()
  const retry = (id: string) => retryEvent(id, live.current(), events, kept, deliveries)
  const app = createApp({
    apiToken,
    guard,
    log,
    first: [serveWebhook, serveAccess(guard, oauth.access, log)],
    eventPage: serveEventPage({ port: listeners.port, events, links, retry, log }),
    routers: [
      apiRoutes({
        status: { live, startedAt, url, publicUrl, queue, budget, events, oauth, webhooks },
        events,
        stream,
        retry,
        shutdown: () => void stop(),
      }),
      linkRoutes(events, links, url),
      tryOutRoutes({ current: live.current, learners, isOwnComment }),
      oauth.routes,
    ],
  })
  const publicApp = createPublicApp({ log, webhooks: serveWebhook })

  try {
    // Before anybody can ask: a token that a killed daemon may have used up is not handed out unseen.
    await oauth.start()
    await listeners.listen({ app, publicApp }, apiToken, log)
    await daemonJson.write(url(), publicUrl())
  } catch (error) {
    await oauth.close()
    await listeners.close()
    await closeLog()
    throw error
  }
  live.watch()
  noteStart(log, events, started.config, started.env, url())
  const unfinished = () => {
    const { waiting, running } = queue.counts()
    return waiting + running
  }
  return { url: url(), stop, unfinished, abort: queue.abort }
}

const announceTo =
  (events: EventStore) =>
  ({ provider, what, state, code, detail }: OAuthEvent): void => {
    events.add(new Date(), {
      kind: 'oauth',
      state,
      detail: `${provider}: ${detail ?? what}`,
      ...(code === undefined ? {} : { code }),
    })
  }

const noteStart = (
  log: Log,
  events: EventStore,
  config: Config,
  env: NodeJS.ProcessEnv,
  url: string,
): void => {
  log.info({ url, version, pid: process.pid, webhooks: config.webhooks.length }, 'listening')
  for (const { code, detail, hint } of warningsOf(config, env)) log.warn({ code, hint }, detail)
  events.add(new Date(), { kind: 'daemon', state: 'done', detail: `daemon ${version} started` })
}
