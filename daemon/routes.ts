import type { Router, RouterContext } from '@koa/router'
import { z } from 'zod'
import { connectHookSchema, catchUpSchema } from '../shared/api/hooks.ts'
import {
  againSchema,
  type AgentPrompt,
  approveSchema,
  type EventRecord,
  rejectSchema,
  type Restarted,
  usageGroups,
} from '../shared/api/api.ts'
import { tunnelPrograms } from '../shared/api/tunnel.ts'
import { DoorwardError } from '../shared/errors.ts'
import { eventNotFound } from './events/event-store.ts'
import { exactRouter, readJsonBody } from './http/body.ts'
import type { History } from './history/history.ts'
import { isOfMemory, onlyOne, parseEventQuery, parseSince } from './history/event-query.ts'
import type { EventStream } from './http/sse.ts'
import type { Hooks } from './sender-apis/hooks.ts'
import type { WorkspaceStore } from './workspace/store.ts'
import { addSessionRoutes, type SessionRoutesParts } from './sessions/routes.ts'
import type { Approvals } from './webhook/approvals/approvals.ts'
import { type StatusParts, buildStatus, listWebhooks } from './status.ts'

/** Actions of a person on an event. Each throws why it cannot be done. */
export type EventControls = {
  readonly retry: (id: string) => EventRecord
  /** Runs the payload of an event once more, as the webhook is now. */
  readonly runAgain: (id: string) => EventRecord
  readonly cancel: (id: string) => EventRecord
  readonly approvals: Approvals
  readonly forget: (id: string) => EventRecord
}

type RouteParts = EventControls & {
  readonly status: StatusParts
  readonly stream: EventStream
  readonly history: History
  readonly hooks: Hooks
  readonly workspaces: WorkspaceStore
  readonly checkOut: SessionRoutesParts['checkOut']
  readonly restart: () => Promise<Restarted>
}

const tunnelSchema = z.strictObject({ with: z.enum(tunnelPrograms).optional() })
const pingSchema = z.strictObject({ path: z.string().min(1).max(1000) })

/** The local API without logins and tokens (`oauth/routes.ts`). */
export const apiRoutes = (parts: RouteParts): Router => {
  const { status, workspaces } = parts
  const router = exactRouter()
  router.get('/status', async (ctx) => {
    ctx.body = await buildStatus(status)
  })
  router.get('/metrics', async (ctx) => {
    const { startedAt, metrics } = status
    const snapshot = {
      ...(await buildStatus(status)),
      startedAt,
      streams: parts.stream.followers(),
    }
    const { text, mediaType } = await metrics.expose(snapshot)
    ctx.type = mediaType
    ctx.body = text
  })
  router.get('/usage', async (ctx) => {
    const { since = '30d', by = 'rule' } = onlyOne(ctx.query, ['since', 'by'])
    const group = usageGroups.find((known) => known === by)
    if (!group) throw invalid(`by is not one of ${usageGroups.join(', ')}`)
    ctx.body = await status.memory.usage.report(parseSince(since), group)
  })
  router.get('/webhooks', (ctx) => {
    ctx.body = { webhooks: listWebhooks(status) }
  })
  router.get('/workspaces', async (ctx) => {
    ctx.body = { workspaces: await workspaces.list() }
  })
  router.delete('/workspaces', async (ctx) => {
    ctx.body = await workspaces.clear()
  })
  addEventRoutes(router, parts)
  addSessionRoutes(router, { sessions: status.memory.sessions, checkOut: parts.checkOut })
  addHookRoutes(router, parts)
  addDaemonRoutes(router, parts)
  return router
}

const addEventRoutes = (
  router: Router,
  { status, stream, history, retry, runAgain, cancel, forget, approvals }: RouteParts,
): void => {
  const { catchUp } = status
  const { events } = status.memory
  router.get('/events', async (ctx) => {
    const query = parseEventQuery(ctx.query)
    ctx.body = isOfMemory(query) ? { events: events.list(query) } : await history.listAll(query)
  })
  router.delete('/events', async (ctx) => {
    ctx.body = await history.forgetAll()
  })
  router.get('/events/stream', async (ctx) => {
    if (ctx.method === 'HEAD') {
      ctx.type = 'text/event-stream'
      ctx.status = 200
      return
    }
    ctx.respond = false
    await stream.open(ctx.req, ctx.res)
  })
  router.get('/events/missed', async (ctx) => {
    const { fresh } = onlyOne(ctx.query, ['fresh'])
    if (fresh !== undefined && fresh !== 'true') throw invalid('fresh is not true')
    ctx.body = { hooks: await catchUp.list(fresh === 'true') }
  })
  router.post('/events/missed', async (ctx) => {
    ctx.body = await catchUp.decide(await readJsonBody(ctx, catchUpSchema))
  })
  router.get('/events/:id', async (ctx) => {
    const typed = String(ctx.params['id'])
    const id = events.tryResolve(typed)
    ctx.body = id === undefined ? await history.find(typed) : events.get(id)
    if (!ctx.body) throw eventNotFound()
  })
  router.delete('/events/:id', async (ctx) => {
    const typed = String(ctx.params['id'])
    const id = events.tryResolve(typed)
    const forgotten = id === undefined ? undefined : forget(id)
    const past = await history.forget(id ?? typed)
    ctx.body = forgotten ?? past
    if (!ctx.body) throw eventNotFound()
  })
  router.get('/events/:id/prompt', (ctx) => {
    const prompt: AgentPrompt = {
      prompt: events.agentPrompt(events.resolve(String(ctx.params['id']))),
    }
    ctx.body = prompt
  })
  router.post('/events/:id/retry', (ctx) => {
    const { again } = onlyOne(ctx.query, ['again'])
    if (again !== undefined && again !== 'true') throw invalid('again is not true')
    ctx.body = (again ? runAgain : retry)(events.resolve(String(ctx.params['id'])))
    ctx.status = 202
  })
  addApprovalRoutes(router, status, approvals)
  router.post('/events/:id/cancel', (ctx) => {
    ctx.body = cancel(events.resolve(String(ctx.params['id'])))
    ctx.status = 202
  })
}

/** The owner answers. Whoever has the bearer token is the owner. */
const addApprovalRoutes = (
  router: Router,
  { memory: { events } }: StatusParts,
  approvals: RouteParts['approvals'],
): void => {
  const idIn = (ctx: RouterContext) => events.resolve(String(ctx.params['id']))
  const byOwner = (where = 'api') => ({ by: 'owner', where })
  router.post('/events/:id/approve', async (ctx) => {
    const { without, where, digest } = await readJsonBody(ctx, approveSchema)
    ctx.body = await approvals.approve(idIn(ctx), byOwner(where), without, digest)
    ctx.status = 202
  })
  router.post('/events/:id/reject', async (ctx) => {
    const { where, digest } = await readJsonBody(ctx, rejectSchema)
    ctx.body = await approvals.reject(idIn(ctx), byOwner(where), digest)
  })
  router.post('/events/:id/again', async (ctx) => {
    const { remark, where, digest } = await readJsonBody(ctx, againSchema)
    ctx.body = await approvals.again(idIn(ctx), byOwner(where), remark, digest)
    ctx.status = 202
  })
  router.post('/events/:id/deliver', async (ctx) => {
    ctx.body = await approvals.deliver(idIn(ctx))
    ctx.status = 202
  })
}

/** The hooks at the senders. */
const addHookRoutes = (router: Router, { hooks }: RouteParts): void => {
  router.get('/webhooks/hooks', async (ctx) => {
    ctx.body = { hooks: await hooks.list(abortOnClose(ctx)) }
  })
  router.post('/webhooks/hooks', async (ctx) => {
    const request = await readJsonBody(ctx, connectHookSchema)
    // It goes on when the client leaves: a hook whose number is lost could not be deleted.
    ctx.body = await hooks.connect(request, new AbortController().signal)
  })
  router.post('/webhooks/hooks/ping', async (ctx) => {
    const { path } = await readJsonBody(ctx, pingSchema)
    ctx.body = await hooks.ping(path, abortOnClose(ctx))
  })
  router.delete('/webhooks/hooks', async (ctx) => {
    const { path } = ctx.query
    if (typeof path !== 'string') throw invalid('path: required, once')
    ctx.body = await hooks.disconnect(path, new AbortController().signal)
  })
}

const abortOnClose = (ctx: RouterContext): AbortSignal => {
  const control = new AbortController()
  ctx.res.once('close', () => control.abort())
  return control.signal
}

const addDaemonRoutes = (router: Router, { status, restart }: RouteParts): void => {
  const { tunnel, shutdown } = status
  router.post('/daemon/reload', async (ctx) => {
    const { webhooks, agents } = await status.live.reload()
    const problems = status.live.problems()
    ctx.body = { status: 'reloaded', webhooks: webhooks.length, agents: agents.size, problems }
  })
  // Windows cannot pass a listening socket to another process: there clients stop and start the daemon.
  if (process.platform !== 'win32')
    router.post('/daemon/restart', async (ctx) => {
      ctx.body = await restart()
      ctx.status = 202
      // This process is about to exit.
      ctx.set('Connection', 'close')
    })
  router.get('/daemon/tunnel', (ctx) => {
    ctx.body = tunnel.status()
  })
  router.post('/daemon/tunnel', async (ctx) => {
    await tunnel.start((await readJsonBody(ctx, tunnelSchema)).with)
    ctx.body = tunnel.status()
  })
  router.delete('/daemon/tunnel', async (ctx) => {
    await tunnel.stop()
    ctx.body = tunnel.status()
  })
  router.post('/daemon/shutdown', (ctx) => {
    ctx.status = 202
    ctx.body = { status: 'stopping' }
    ctx.res.once('close', () => void shutdown.stop())
  })
}

const invalid = (message: string) => new DoorwardError('request-invalid', message)
