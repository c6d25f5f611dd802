import type { Home } from '../shared/home/home.ts'
import { createApp, createPublicApp } from './app.ts'
import type { LoopGuard } from './deliver/loop-guard.ts'
import { createEventLinks } from './event-page/links.ts'
import { linkRoutes } from './event-page/link-routes.ts'
import { serveEventPage } from './event-page/serve-event-page.ts'
import type { EventStream } from './http/event-stream.ts'
import { createMemoryKeeper } from './give-back-memory.ts'
import { createGuard } from './http/guard.ts'
import type { HandOver } from './handover/hand-over.ts'
import { passOn } from './handover/pass-on.ts'
import type { Intake } from './intake.ts'
import type { Apps, Listeners } from './http/listeners.ts'
import type { LiveConfig } from './configuration/live-config.ts'
import type { Log } from './log/log.ts'
import type { Memory } from './memory.ts'
import { createMeasures } from './metrics/measures.ts'
import type { OAuthCounts } from './metrics/oauth-counts.ts'
import { serveAccess } from './oauth/serve-access.ts'
import type { Office } from './office.ts'
import { apiRoutes } from './routes.ts'
import { createExamine } from './webhook/doctor.ts'
import type { Learners } from './webhook/learners.ts'
import type { RefusalLog } from './webhook/refusal-log.ts'
import { retryEvent } from './webhook/retry-event.ts'
import { serveWebhooks } from './webhook/routes.ts'
import { summarize } from './webhook/summaries.ts'
import { tryOutRoutes } from './webhook/try-out-routes.ts'
import type { Whereabouts } from './whereabouts.ts'

export type AppsParts = {
  readonly home: Home
  readonly apiToken: string
  readonly startedAt: Date
  readonly listeners: Pick<Listeners, 'port'>
  readonly whereabouts: Pick<Whereabouts, 'url' | 'publicUrl'>
  readonly memory: Memory
  readonly intake: Pick<Intake, 'budget' | 'rooms' | 'queue'>
  readonly live: LiveConfig
  readonly office: Pick<Office, 'oauth' | 'atOnce' | 'access'>
  readonly oauthCounts: OAuthCounts
  readonly stream: EventStream
  readonly learners: Learners
  readonly refusals: RefusalLog
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
export const createApps = (parts: AppsParts): (() => Apps) => {
  const { apiToken, startedAt, listeners, intake, live, office, handOver, log } = parts
  const { home, oauthCounts, stream, learners, refusals, loopGuard, stop, isStopping } = parts
  const { port } = listeners
  const { url, publicUrl } = parts.whereabouts
  const { events, counts, kept, deliveries, rateLimits } = parts.memory
  const { budget, rooms, queue } = intake
  const measures = createMeasures(events)
  const memoryKeeper = createMemoryKeeper()

  const answered = (ms: number): void => {
    measures.answered(ms)
    memoryKeeper.worked()
  }
  const retry = (id: string) => retryEvent(id, live.current(), events, kept, deliveries)
  const webhooks = () => {
    const { config, env } = live.current()
    return summarize(config, env, publicUrl() ?? url(), counts.of)
  }

  return () => {
    const examine = createExamine()
    const serveWebhook = serveWebhooks(
      live.current,
      { budget, rooms, events, deliveries, rateLimits, learners, examine, loopGuard, refusals },
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
      measures,
    }
    const { restart } = handOver
    const shutdown = () => void stop()
    const app = createApp({
      apiToken,
      guard,
      log,
      first: [serveWebhook, serveAccess(guard, office, log)],
      eventPage: serveEventPage({ port, events, links, retry, log }),
      passOn: passOn(handOver),
      routers: [
        apiRoutes({ status, oauthCounts, events, stream, retry, restart, shutdown }),
        linkRoutes(events, links, url),
        tryOutRoutes({ current: live.current, learners, loopGuard, homeFolder: home.root }),
        oauth.routes,
      ],
    })
    return { app, publicApp: createPublicApp({ log, webhooks: serveWebhook }) }
  }
}
