import { randomBytes } from 'node:crypto'
import { unlink } from 'node:fs/promises'
import { createServer } from 'node:http'
import { warningsOf } from '../shared/config-warnings.ts'
import { DoorwardError, nameOf } from '../shared/errors.ts'
import { makeHome } from '../shared/first-home.ts'
import { type Home, prepareHome } from '../shared/home.ts'
import { lockHome } from '../shared/instance-lock.ts'
import type { Config } from '../shared/load-config.ts'
import { version } from '../shared/version.ts'
import { writeWhole } from '../shared/write-whole.ts'
import { createInvoke } from './agents/invoke.ts'
import { endLeftovers, noteRuns } from './agents/leftovers.ts'
import { readOrMakeApiToken } from './api-token.ts'
import { createApp, createPublicApp } from './app.ts'
import { createByteBudget } from './byte-budget.ts'
import { createDeliver } from './deliver/deliver.ts'
import { createEventStream } from './event-stream.ts'
import { type EventStore, createEventStore } from './events.ts'
import { closeServer, listen, portOf, urlOf } from './listen.ts'
import { type LiveConfig, type ReadConfig, createLiveConfig, readConfig } from './live-config.ts'
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
import { type AcceptedEvent, createRunEvent } from './webhook/run-event.ts'
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
  const { server: serverConfig, queue: queueConfig, events: eventsConfig } = started.config.gateway
  const { log, close: closeLog } = openLog(home, logLevelOf(started.env))
  const leftovers = await endLeftovers(home)
  if (leftovers > 0) log.warn({ agents: leftovers }, 'ended agents of a daemon that was killed')
  const startedAt = new Date()
  const events = createEventStore(eventsConfig.keep)
  const budget = createByteBudget(queueConfig.max_bytes)
  const queue = createQueue({
    maxEvents: queueConfig.max_events,
    concurrency: queueConfig.concurrency,
    budget,
  })
  const stream = createEventStream(events, randomBytes(6).toString('hex'))
  // Logins are there before the setup that uses their tokens, and see each new configuration.
  let known: Pick<Setup, 'config' | 'env'> = started
  const oauth = createOAuth({
    home,
    gateway: viewOf(() => known.config.gateway),
    env: viewOf(() => known.env),
    log,
    announce: announceTo(events),
  })
  const deliveries = createDeliveries()
  const kept = createKeptEvents<AcceptedEvent>(events)
  const noteRun = noteRuns(home)
  const live: LiveConfig = createLiveConfig(
    {
      home,
      processEnv,
      setUp: (config, env) => {
        const invoke = createInvoke({ env, noteRun, access: oauth.access })
        const deliver = createDeliver(home.root)
        const parts = { invoke, deliver, queue, events, deliveries, kept, log }
        const setup = createSetup(config, env, createRunEvent(parts))
        known = setup
        return setup
      },
      changed: async ({ gateway }) => {
        queue.resize({
          maxEvents: gateway.queue.max_events,
          concurrency: gateway.queue.concurrency,
        })
        budget.resize(gateway.queue.max_bytes)
        events.resize(gateway.events.keep)
        await writeDaemonJson().catch((error: unknown) =>
          log.error({ error: nameOf(error) }, 'cannot write run/daemon.json'),
        )
      },
      events,
      log,
    },
    started,
  )
  const server = createServer(serverLimits)
  const publicServer =
    serverConfig.public_port === undefined ? undefined : createServer(serverLimits)
  const servers = publicServer ? [server, publicServer] : [server]
  const url = () => urlOf(serverConfig.host, server)
  const publicUrl = () =>
    live.current().config.gateway.server.public_url ??
    (publicServer && urlOf(serverConfig.host, publicServer))
  let written: string | undefined
  const writeDaemonJson = async () => {
    const text = daemonJson(url(), publicUrl(), startedAt)
    if (text !== written) await writeWhole(home.daemonJson, text)
    written = text
  }
  const countedOf = countEvents(events)
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
      await Promise.all(servers.map(closeServer))
      await unlink(home.daemonJson).catch(() => undefined)
      await unlock()
      refusals.close()
      log.info('stopped')
      await closeLog()
      // Output that nobody reads must not keep the process.
      setTimeout(() => process.exit(), exitDelayMs).unref()
    })()
    return stopping
  }

  const serveWebhook = serveWebhooks(live.current, {
    budget,
    events,
    deliveries,
    rateLimits: createRateLimits(),
    learners,
    examine: createExamine(),
    refusals,
  })
  const app = createApp({
    apiToken,
    port: () => portOf(server),
    log,
    webhooks: serveWebhook,
    routers: [
      apiRoutes({
        status: { live, startedAt, url, publicUrl, queue, budget, events, oauth, webhooks },
        events,
        stream,
        retry: (id) => retryEvent(id, live.current(), events, kept),
        shutdown: () => void stop(),
      }),
      tryOutRoutes({ current: live.current, learners }),
      oauth.routes,
    ],
  })
  const handle = app.callback()
  server.on('request', (request, response) => void handle(request, response))
  const handlePublic = createPublicApp({ log, webhooks: serveWebhook }).callback()
  publicServer?.on('request', (request, response) => void handlePublic(request, response))

  try {
    // Before anybody can ask: a token that a killed daemon may have used up is not handed out unseen.
    await oauth.start()
    await listen(server, serverConfig.host, serverConfig.port, apiToken, log)
    if (publicServer)
      await listen(publicServer, serverConfig.host, serverConfig.public_port ?? 0, apiToken, log)
    await writeDaemonJson()
  } catch (error) {
    await oauth.close()
    await Promise.all(servers.map(closeServer))
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

const serverLimits = {
  headersTimeout: 10_000,
  // The whole request; the body alone has 15 s (see receive.ts).
  requestTimeout: 30_000,
  connectionsCheckingInterval: 1000,
}

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

const logLevelOf = (env: NodeJS.ProcessEnv): string => {
  const level = env['DOORWARD_LOG_LEVEL'] || 'info'
  if (logLevels.includes(level)) return level
  throw new DoorwardError('config-invalid', 'DOORWARD_LOG_LEVEL is no level of a log', {
    hint: `set it to one of ${logLevels.join(', ')}`,
  })
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

const daemonJson = (url: string, publicUrl: string | undefined, startedAt: Date): string => {
  const file = {
    pid: process.pid,
    url,
    ...(publicUrl === undefined ? {} : { publicUrl }),
    version,
    startedAt: startedAt.toISOString(),
  }
  return `${JSON.stringify(file)}\n`
}
