import { Router } from '@koa/router'
import { eventStates } from '../shared/api.ts'
import { DoorwardError } from '../shared/errors.ts'
import type { EventStream } from './event-stream.ts'
import type { EventStore } from './events.ts'
import { type StatusParts, statusOf } from './status.ts'

export type RouteParts = {
  readonly status: StatusParts
  readonly events: EventStore
  readonly stream: EventStream
  readonly shutdown: () => void
}

/** The local API but for logins and tokens, which have routes of their own. */
export const apiRoutes = ({ status, events, stream, shutdown }: RouteParts): Router => {
  const router = new Router()
  router.get('/status', async (ctx) => {
    ctx.body = await statusOf(status)
  })
  router.get('/webhooks', (ctx) => {
    ctx.body = { webhooks: status.webhooks() }
  })
  router.get('/events', (ctx) => {
    const { limit, webhook, state } = ctx.query
    ctx.body = {
      events: events.list({
        limit: limitOf(limit),
        ...one('webhook', webhook),
        ...stateOf(one('state', state).state),
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
    if (!event)
      throw new DoorwardError('event-not-found', 'there is no such event in memory', {
        hint: 'doorward events lists those there are; older ones and those before a restart are gone',
      })
    ctx.body = event
  })
  router.post('/daemon/shutdown', (ctx) => {
    ctx.status = 202
    ctx.body = { status: 'stopping' }
    ctx.res.once('close', shutdown)
  })
  return router
}

type Query = string | string[] | undefined

const one = <Name extends string>(name: Name, value: Query): { readonly [K in Name]?: string } => {
  if (value === undefined) return {}
  if (typeof value !== 'string') throw invalid(`${name} is given more than once`)
  return { [name]: value } as { readonly [K in Name]?: string }
}

const limitOf = (value: Query): number => {
  if (value === undefined) return 100
  if (typeof value === 'string' && /^[1-9]\d{0,5}$/.test(value)) return Number(value)
  throw invalid('limit is not a number from 1 to 999999')
}

const stateOf = (state: string | undefined): { readonly state?: string } => {
  if (state === undefined) return {}
  if ((eventStates as readonly string[]).includes(state)) return { state }
  throw invalid(`state is none of ${eventStates.join(', ')}`)
}

const invalid = (message: string) => new DoorwardError('request-invalid', message)
