import { join } from 'node:path'
import type { HomeLock } from '../shared/home/lock.ts'
import { isReplaced, version } from '../shared/version.ts'
import { killOrphans } from './agents/orphans.ts'
import { createApp, createPublicApp } from './app.ts'
import { moveHooks } from './bots/deliveries.ts'
import { CatchUp } from './catch-up/catch-up.ts'
import { readConfig } from './config/live-config.ts'
import { watchHomeRemoved } from './daemon-file.ts'
import { pageLinkRoutes } from './page/link.ts'
import { servePage } from './page/page.ts'
import { ruleRoutes } from './config/rule-routes.ts'
import { listWebhooks } from './status.ts'
import { createGuard } from './http/guard.ts'
import { type Apps, type Place } from './http/server.ts'
import type { TokenRecord } from './oauth/tokens/token-record.ts'
import type { Predecessor } from './restart/new-process.ts'
import { Restarter } from './restart/old-process.ts'
import { checkRoutes } from './checks.ts'
import { type EventControls, apiRoutes } from './routes.ts'
import { setupRoutes } from './setup/routes.ts'
import { scheduleRoutes } from './schedules/routes.ts'
import { Scheduler } from './schedules/scheduler.ts'
import { Shutdown } from './shutdown.ts'
import { Hooks, openPast } from './sender-apis/hooks.ts'
import { Sources } from './sources/sources.ts'
import { collectWhenIdle } from './state.ts'
import { Tunnel } from './tunnel/tunnel.ts'
import { createKeepSecret } from './webhook/senders/accept-handshake.ts'
import { createOccasion } from './webhook/visits.ts'
import { tryOutRoutes } from './webhook/try-out-routes.ts'
import { cancelEvent, forgetEvent, retryEvent, runEventAgain } from './webhook/events/control.ts'
import { createRunPressed } from './webhook/signs/again.ts'
import { acceptFetched } from './webhook/pipeline.ts'
import type { PipelineParts } from './webhook/steps.ts'
import { serveWebhooks } from './webhook/routes.ts'
import { fetchText, RemoteKeys } from './webhook/senders/remote-keys.ts'
import { TestKeys } from './webhook/senders/test-keys.ts'
import { diagnoseWithBudget } from './webhook/signatures/diagnosis.ts'
import { createServices, type Services, type StartupInput } from './services.ts'

/*
 * The composition root: here all parts of a daemon are created and connected.
 *
 *   services -> leadership (lock, tokens) -> sockets -> serve: request handlers, run/daemon.json
 *
 * `start.ts` calls these steps, `shutdown.ts` is the end. A restart (`restart/old-process.ts`) lets another
 * process replace this one; if that fails, this one serves again.
 */

/** A daemon whose services exist: it listens nowhere yet, and refreshes no token. */
export type Daemon = {
  readonly places: readonly Place[]
  /** Listens at these places, by default at all. Throws `port-in-use`, `config-invalid`. */
  readonly bind: (places?: readonly Place[]) => Promise<void>
  /** Refreshes tokens from now on; `unsaved` are those that could not be written to the disk. */
  readonly lead: (lock: HomeLock, unsaved: readonly TokenRecord[]) => Promise<void>
  /** Answers requests, and writes where it is reached. */
  readonly serve: () => Promise<RunningDaemon>
  /** After a failed start: closes everything but the lock. */
  readonly giveUp: () => Promise<void>
}

export type RunningDaemon = {
  readonly url: string
  /** Finishes what was accepted, then closes everything, so that the process exits. */
  readonly stop: () => Promise<void>
  /** How many accepted events a stop would wait for. */
  readonly unfinished: () => number
  /** For a second signal: does not wait for agents. */
  readonly abort: () => void
}

export const createDaemon = (input: StartupInput): Daemon => {
  const { home, processEnv, apiToken, predecessor, isForeground = false } = input
  const services = createServices(input)
  const { log, listeners, daemonFile, memory, intake, live, leadership } = services
  const { events } = memory
  const hooks = new Hooks({ home, current: live.current, access: leadership.access, events })
  const tunnel = new Tunnel({ ...services, hooks, events })
  const sources = createSources(services)
  services.onConfig(() => sources.configure())
  const shutdown = new Shutdown({
    ...services,
    sources,
    tunnel,
    processEnv,
    isForeground,
    predecessor,
  })
  const restarter = new Restarter({
    ...services,
    shutdown,
    // Another version may accept another configuration, and checks it itself.
    check: async () => isReplaced() || readConfig(home, processEnv),
    serveAgain: async () => {
      answer()
      await daemonFile.recreate()
    },
  })
  const catchUp = createCatchUp(services, shutdown.signal)
  const scheduler = createScheduler(services, shutdown.signal)
  services.onConfig(() => scheduler.tick())
  const control = { apiToken, catchUp, scheduler, sources, hooks, tunnel, restarter, shutdown }
  const createHandlers = createRequestHandlers(services, control)
  const answer = (): void => listeners.answer(createHandlers())

  if (predecessor) follow(predecessor, services)

  return {
    places: listeners.places,
    bind: async (places = listeners.places) => listeners.bind(places, apiToken, log),
    lead: async (lock, unsaved) => leadership.acquire(lock, unsaved),
    serve: async () => {
      // The last step that can fail: nothing may be accepted by a daemon that does not stay.
      await daemonFile.write()
      await services.journal.load()
      await services.sealedSessions.load(memory.sessions)
      answer()
      live.watch()
      watchHomeRemoved(home, () => shutdown.homeRemoved())
      const [url, publicUrl] = [daemonFile.url(), daemonFile.publicUrl()]
      noteStart(services, predecessor ? 'restarted' : 'started')
      await predecessor?.serving({ url, publicUrl, startedAt: services.startedAt.toISOString() })
      intake.queue.resume()
      services.approvals.resume()
      await catchUp.start()
      await scheduler.start()
      sources.start()
      await tunnel.resume()
      void services.history.start()
      void services.workspaces.trim(live.current().config.gateway)
      void moveHooks(leadership.oauth().bots, live.current().config, log)
      return {
        url,
        stop: async () => shutdown.stop(),
        unfinished: intake.unfinished,
        abort: () => shutdown.abort(),
      }
    },
    giveUp: async () => {
      // First, as clients that wait here would wait for a refresh too.
      await listeners.close()
      await leadership.close()
      await live.close()
      await intake.queue.close()
      services.refusals.close()
      await services.closeLog()
    },
  }
}

/** Takes over what the daemon before this one has, and learns how the events ended that it still runs. */
const follow = (predecessor: Predecessor, services: Services): void => {
  const { home, log, memory, live } = services
  predecessor.follow({
    ...services,
    requeue: ({ id, onlyDelivers }) => {
      const event = memory.kept.get(id)
      const result = onlyDelivers ? memory.events.get(id)?.result : undefined
      if (event) live.current().runEvent.requeue(id, event, result)
    },
    onKilled: () => void killOrphans(home, log),
  })
}

type Control = {
  readonly apiToken: string
  readonly catchUp: CatchUp
  readonly scheduler: Scheduler
  readonly sources: Sources
  readonly hooks: Hooks
  readonly tunnel: Tunnel
  readonly restarter: Restarter
  readonly shutdown: Shutdown
}

/** What answers at the listeners. Each call makes new handlers, for the logins that `Leadership` has then. */
const createRequestHandlers = (
  services: Services,
  { apiToken, catchUp, scheduler, sources, hooks, tunnel, restarter, shutdown }: Control,
): (() => Apps) => {
  const { home, memory, live, leadership, succession, stream, learners, log } = services
  const { port } = services.listeners
  const { events } = memory
  const noteActivity = collectWhenIdle()
  const answered = (ms: number): void => {
    services.metrics.answered(ms)
    noteActivity()
  }
  const controls = createEventControls(services)
  const keys = createKeys()

  return () => {
    const parts = { ...toPipelineParts(services, keys), isCaughtUp: catchUp.isCaughtUp }
    const serveWebhook = serveWebhooks(live.current, parts, { log, answered })
    const oauth = leadership.oauth()
    const status = { ...services, oauth, catchUp, scheduler, sources, tunnel, shutdown }
    const url = services.daemonFile.url
    const app = createApp({
      apiToken,
      guard: createGuard(apiToken, port),
      log,
      serveWebhook,
      page: servePage({ apiToken, port, url, browsers: memory.browsers, stream, log }),
      succession,
      // Each is tried in turn: a token is what programs ask for most.
      routers: [
        oauth.routes,
        oauth.botRoutes,
        apiRoutes({
          ...controls,
          status,
          stream,
          history: services.history,
          hooks,
          workspaces: services.workspaces.store,
          checkOut: async ({ request, commit }, signal) => {
            const { config, env } = live.current()
            const prepare = services.workspaces.preparer(config.gateway, env)
            return prepare({ ...request, ref: commit }, 'session', signal)
          },
          restart: restarter.restart,
        }),
        scheduleRoutes(scheduler),
        checkRoutes({ ...status, hooks }),
        pageLinkRoutes({ browsers: memory.browsers, events, history: services.history, url }),
        setupRoutes({ home, live, run: services.run, oauth, testKeys: keys.testKeys, url }),
        tryOutRoutes({
          current: live.current,
          learners,
          ...keys,
          facts: parts,
          payloads: services.payloads,
          homeFolder: home.root,
        }),
        ruleRoutes({ home, live, list: () => listWebhooks(status) }),
      ],
    })
    return { app, publicApp: tunnel.pings.before(createPublicApp(log, serveWebhook)) }
  }
}

const createEventControls = ({
  live,
  memory,
  payloads,
  approvals,
  intake,
}: Services): EventControls => {
  const { events, kept, deliveries } = memory
  return {
    retry: (id) => retryEvent(id, live.current(), events, kept, deliveries, payloads),
    runAgain: (id) => runEventAgain(id, live.current(), { events, deliveries, payloads }),
    cancel: (id) => cancelEvent(id, { events, queue: intake.queue, approvals }),
    approvals,
    forget: (id) => forgetEvent(id, { events, payloads, sessions: memory.sessions }),
  }
}

/** Deliveries of the sender's own list enter the pipeline by `acceptFetched`. */
const createCatchUp = (services: Services, signal: AbortSignal): CatchUp => {
  const { home, live, leadership, memory, succession, log } = services
  const parts = toPipelineParts(services, createKeys())
  return new CatchUp({
    journalFile: join(home.run, 'catch-up'),
    current: live.current,
    open: (source) => openPast(source, live.current(), leadership.oauth()),
    accept: (delivery, webhook) => acceptFetched(delivery, webhook, live.current(), parts),
    events: memory.events,
    log,
    isServing: () => succession.successor() === undefined,
    signal,
  })
}

/** A schedule sends what it begins into the pipeline, like a delivery that was read. */
const createScheduler = (services: Services, signal: AbortSignal): Scheduler => {
  const { home, live, memory, succession, run, log } = services
  const parts = toPipelineParts(services, createKeys())
  return new Scheduler({
    file: join(home.state, 'schedules.json'),
    current: live.current,
    accept: (delivery, webhook) => acceptFetched(delivery, webhook, live.current(), parts),
    events: memory.events,
    run,
    homeFolder: home.root,
    log,
    isServing: () => succession.successor() === undefined,
    signal,
  })
}

/** What sockets and long polls bring enters the pipeline by `acceptFetched` too. */
const createSources = (services: Services): Sources => {
  const { home, live, leadership, memory, succession, log } = services
  const parts = toPipelineParts(services, createKeys())
  return new Sources({
    current: live.current,
    accept: (delivery, webhook) => acceptFetched(delivery, webhook, live.current(), parts),
    access: leadership.access,
    messages: memory.messages,
    events: memory.events,
    log,
    run: services.run,
    homeFolder: home.root,
    offsetsFile: join(home.state, 'telegram.json'),
    approvals: services.approvals,
    isServing: () => !succession.isHandingOver(),
  })
}

/** The keys of senders, and those of tests. */
const createKeys = () => ({ remoteKeys: new RemoteKeys(fetchText), testKeys: new TestKeys() })

/** What the pipeline of deliveries needs. */
const toPipelineParts = (
  {
    home,
    memory,
    payloads,
    approvals,
    intake,
    live,
    learners,
    refusals,
    loopGuard,
    spending,
    log,
  }: Services,
  keys: Pick<PipelineParts, 'remoteKeys' | 'testKeys'>,
): PipelineParts => {
  const { events, deliveries, eventNames, rateLimits, budgets, groups } = memory
  return {
    budget: intake.budget,
    events,
    deliveries,
    eventNames,
    rateLimits,
    budgets,
    spending,
    groups,
    payloads,
    learners,
    diagnose: diagnoseWithBudget(),
    loopGuard,
    runPressed: createRunPressed({
      current: live.current,
      events,
      deliveries,
      runAgain: (id) => runEventAgain(id, live.current(), { events, deliveries, payloads }),
      approvals,
    }),
    log,
    refusals,
    ...keys,
    fetchText,
    isRare: createOccasion(),
    keepSecret: createKeepSecret(home, async () => live.reload()),
  }
}

/** Notes in the log and the events that a daemon serves. */
const noteStart = (
  { log, memory, daemonFile, live }: Services,
  how: 'started' | 'restarted',
): void => {
  const url = daemonFile.url()
  const webhooks = live.current().config.webhooks.length
  log.info({ url, version, pid: process.pid, webhooks }, 'listening')
  memory.events.add(new Date(), {
    kind: 'daemon',
    state: 'done',
    detail: `daemon ${version} ${how}`,
  })
}
