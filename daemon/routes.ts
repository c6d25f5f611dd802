import type { Router } from '@koa/router'
import { z } from 'zod'
import { type EventRecord, eventStates, type Restarted } from '../shared/api.ts'
import { tunnelPrograms } from '../shared/api-tunnel.ts'
import { DoorwardError } from '../shared/errors.ts'
import { eventNotFound } from './webhook/events/control.ts'
import { exactRouter, readJsonBody } from './http/body.ts'
import type { EventStream } from './http/sse.ts'
import type { EventStore } from './events/event-store.ts'
import type { Tunnel } from './tunnel/tunnel.ts'
import type { WorkspaceStore } from './workspace/store.ts'
import { type StatusParts, buildStatus } from './status.ts'

export type RouteParts = {
  readonly status: StatusParts
  readonly events: EventStore
  readonly stream: EventStream
  readonly retry: (id: string) => EventRecord
  /** Runs the payload of an event once more, as the webhook is now. */
  readonly runAgain: (id: string) => EventRecord
  readonly cancel: (id: string) => EventRecord
  readonly workspaces: Pick<WorkspaceStore, 'list' | 'clear'>
  readonly tunnel: Pick<Tunnel, 'start' | 'stop' | 'status'>
  readonly restart: () => Promise<Restarted>
  readonly shutdown: () => void
}

const tunnelSchema = z.strictObject({ with: z.enum(tunnelPrograms).optional() })

/** The local API without logins and tokens (`oauth/routes.ts`). */
export const apiRoutes = (parts: RouteParts): Router => {
  const { status, events, stream, retry, runAgain, cancel, workspaces } = parts
  const router = exactRouter()
  router.get('/status', async (ctx) => {
    ctx.body = await buildStatus(status)
  })
  router.get('/metrics', async (ctx) => {
    const { startedAt, metrics } = status
    const snapshot = { ...(await buildStatus(status)), startedAt, streams: stream.followers() }
    const { text, mediaType } = await metrics.expose(snapshot)
    ctx.type = mediaType
    ctx.body = text
  })
  router.get('/webhooks', (ctx) => {
    ctx.body = { webhooks: status.webhooks() }
  })
  router.get('/events', (ctx) => {
    const { limit, webhook, state } = ctx.query
    ctx.body = {
      events: events.list({
        limit: parseLimit(limit),
        ...one('webhook', webhook),
        ...parseState(one('state', state).state),
      }),
    }
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
  router.get('/events/:id', (ctx) => {
    const event = events.get(String(ctx.params['id']))
    if (!event) throw eventNotFound()
    ctx.body = event
  })
  router.post('/events/:id/retry', (ctx) => {
    const { again } = one('again', ctx.query['again'])
    if (again !== undefined && again !== 'true') throw invalid('again is not true')
    ctx.body = (again ? runAgain : retry)(String(ctx.params['id']))
    ctx.status = 202
  })
  router.post('/events/:id/cancel', (ctx) => {
    ctx.body = cancel(String(ctx.params['id']))
    ctx.status = 202
  })
  router.get('/workspaces', async (ctx) => {
    ctx.body = { workspaces: await workspaces.list() }
  })
  router.delete('/workspaces', async (ctx) => {
    ctx.body = await workspaces.clear()
  })
  addDaemonRoutes(router, parts)
  return router
}

const addDaemonRoutes = (
  router: Router,
  { status, tunnel, restart, shutdown }: RouteParts,
): void => {
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
    ctx.res.once('close', shutdown)
  })
}

type Query = string | string[] | undefined

const one = <Name extends string>(name: Name, value: Query): { readonly [K in Name]?: string } => {
  if (value === undefined) return {}
  if (typeof value !== 'string') throw invalid(`${name} is given more than once`)
  return { [name]: value } as { readonly [K in Name]?: string }
}

const parseLimit = (value: Query): number => {
  if (value === undefined) return 100
  if (typeof value === 'string' && /^[1-9]\d{0,5}$/.test(value)) return Number(value)
  throw invalid('limit is not a number from 1 to 999999')
}

const parseState = (state: string | undefined): { readonly state?: string } => {
  if (state === undefined) return {}
  if ((eventStates as readonly string[]).includes(state)) return { state }
  throw invalid(`state is not one of ${eventStates.join(', ')}`)
}

const invalid = (message: string) => new DoorwardError('request-invalid', message)
