import { randomBytes } from 'node:crypto'
import { unlink } from 'node:fs/promises'
import { createServer } from 'node:http'
import { warningsOf } from '../shared/config-warnings.ts'
import { readEnvironment } from '../shared/environment.ts'
import { DoorwardError } from '../shared/errors.ts'
import { makeHome } from '../shared/first-home.ts'
import { type Home, prepareHome } from '../shared/home.ts'
import { lockHome } from '../shared/instance-lock.ts'
import { type Config, loadConfig } from '../shared/load-config.ts'
import { version } from '../shared/version.ts'
import { writeWhole } from '../shared/write-whole.ts'
import { createInvoke } from './agents/invoke.ts'
import { endLeftovers, noteRuns } from './agents/leftovers.ts'
import { readOrMakeApiToken } from './api-token.ts'
import { createApp } from './app.ts'
import { createByteBudget } from './byte-budget.ts'
import { createDeliver } from './deliver/deliver.ts'
import { createCommentMarks } from './deliver/own-comment.ts'
import { createEventStream } from './event-stream.ts'
import { type EventStore, createEventStore } from './events.ts'
import { closeServer, listen, portOf, urlOf } from './listen.ts'
import { type Log, openLog } from './log.ts'
import { type OAuthEvent, createOAuth } from './oauth/oauth.ts'
import { createQueue } from './queue.ts'
import { apiRoutes } from './routes.ts'
import { webhooksByPath } from './webhook/ready-webhook.ts'
import { serveWebhooks } from './webhook/routes.ts'
import { createRunEvent } from './webhook/run-event.ts'
import { countEvents, summarize } from './webhook/summaries.ts'

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
    const env = await readEnvironment(home, processEnv)
    const config = await loadConfig(home, env)
    const apiToken = await readOrMakeApiToken(home)
    return await serve(home, config, env, apiToken, unlock)
  } catch (error) {
    await unlock()
    throw error
  }
}

const exitDelayMs = 1000

const serve = async (
  home: Home,
  config: Config,
  env: NodeJS.ProcessEnv,
  apiToken: string,
  unlock: () => Promise<void>,
): Promise<RunningDaemon> => {
  const { server: serverConfig, queue: queueConfig, events: eventsConfig } = config.gateway
  const { log, close: closeLog } = openLog(home, logLevelOf(env))
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
  const oauth = createOAuth({
    home,
    gateway: config.gateway,
    env,
    log,
    announce: announceTo(events),
  })
  const server = createServer({
    headersTimeout: 10_000,
    // The whole request; the body alone has 15 s (see receive.ts).
    requestTimeout: 30_000,
    connectionsCheckingInterval: 1000,
  })
  const url = () => urlOf(serverConfig.host, server)
  const countedOf = countEvents(events)
  const webhooks = () => summarize(config, env, url(), countedOf)

  let stopping: Promise<void> | undefined
  const stop = (): Promise<void> => {
    stopping ??= (async () => {
      log.info('stopping')
      await queue.drain(queueConfig.drain_timeout)
      await oauth.close()
      stream.close()
      await closeServer(server)
      await unlink(home.daemonJson).catch(() => undefined)
      await unlock()
      log.info('stopped')
      await closeLog()
      // Output that nobody reads must not keep the process.
      setTimeout(() => process.exit(), exitDelayMs).unref()
    })()
    return stopping
  }

  const marks = createCommentMarks(apiToken)
  const deliver = createDeliver({
    homeFolder: home.root,
    targets: config.gateway.targets,
    env,
    access: oauth.access,
    marks,
    log,
  })
  const app = createApp({
    apiToken,
    port: () => portOf(server),
    log,
    webhooks: serveWebhooks(webhooksByPath(config, env), {
      maxBodyBytes: serverConfig.body_limit,
      budget,
      queue,
      events,
      runEvent: createRunEvent(
        createInvoke({ env, noteRun: noteRuns(home), access: oauth.access }),
        deliver,
        log,
      ),
      isOwnComment: marks.isOwnComment,
      log,
    }),
    routers: [
      apiRoutes({
        status: { config, env, startedAt, url, queue, budget, events, oauth, webhooks },
        events,
        stream,
        shutdown: () => void stop(),
      }),
      oauth.routes,
    ],
  })
  const handle = app.callback()
  server.on('request', (request, response) => void handle(request, response))

  try {
    // Before anybody can ask: a token that a killed daemon may have used up is not handed out unseen.
    await oauth.start()
    await listen(server, serverConfig.host, serverConfig.port, apiToken, log)
    await writeWhole(home.daemonJson, daemonJson(url(), config, startedAt))
  } catch (error) {
    await oauth.close()
    await closeServer(server)
    await closeLog()
    throw error
  }
  noteStart(log, events, config, env, url())
  const unfinished = () => {
    const { waiting, running } = queue.counts()
    return waiting + running
  }
  return { url: url(), stop, unfinished, abort: queue.abort }
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

const daemonJson = (url: string, config: Config, startedAt: Date): string => {
  const publicUrl = config.gateway.server.public_url
  const file = {
    pid: process.pid,
    url,
    ...(publicUrl === undefined ? {} : { publicUrl }),
    version,
    startedAt: startedAt.toISOString(),
  }
  return `${JSON.stringify(file)}\n`
}
