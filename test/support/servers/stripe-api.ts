import { json, startTargetServer, type TargetServer } from './target-server.ts'

/*
 * Stripe's list of events (docs.stripe.com/api/events/list) for a restricted key: the newest first, by `created`
 * and `starting_after`, for thirty days.
 */

type StripeEvent = {
  readonly id: string
  readonly object: 'event'
  readonly api_version: string
  readonly created: number
  readonly type: string
  readonly pending_webhooks: number
  readonly data: { readonly object: Readonly<Record<string, unknown>> }
}

export type StripeServer = Pick<TargetServer, 'requests' | 'next' | 'close' | 'origin'> & {
  readonly events: StripeEvent[]
  /** Adds an event; returns its id. */
  readonly add: (event: {
    readonly type?: string
    readonly pending?: number
    readonly secondsAgo?: number
    readonly amount?: number
  }) => string
  /** How far its clock is ahead of ours. */
  aheadMs: number
  /** The permission Events: Read. */
  mayRead: boolean
}

const keptSeconds = 30 * 24 * 3600

export const startStripeServer = async (key: string): Promise<StripeServer> => {
  const events: StripeEvent[] = []
  let count = 0
  const clock = () => Date.now() + self.aheadMs
  const server = await startTargetServer(async (response, recorded, request) => {
    const [status, document] = answer(recorded.path, recorded.headers.authorization)
    await json(status, document, { date: new Date(clock()).toUTCString() })(
      response,
      recorded,
      request,
    )
  })

  const answer = (path: string, authorization = ''): readonly [number, unknown] => {
    if (authorization !== `Bearer ${key}`) return failure(401, 'Invalid API Key provided')
    if (!self.mayRead)
      return failure(403, "The provided key 'rk_***' does not have the required permissions")
    const { pathname, searchParams } = new URL(path, 'http://loopback')
    const now = clock() / 1000
    const kept = events.filter(({ created }) => created > now - keptSeconds)
    const [, id] = /^\/v1\/events\/(\w+)$/.exec(pathname) ?? []
    if (id !== undefined) {
      const event = kept.find((one) => one.id === id)
      return event ? [200, event] : failure(404, `No such event: '${id}'`)
    }
    if (pathname !== '/v1/events') return failure(404, 'Unrecognized request URL')
    const since = Number(searchParams.get('created[gte]') ?? 0)
    const limit = Number(searchParams.get('limit') ?? 10)
    if (limit < 1 || limit > 100) return failure(400, 'Invalid limit')
    const after = searchParams.get('starting_after')
    const start = after === null ? 0 : kept.findIndex((one) => one.id === after) + 1
    const rest = kept.slice(start).filter(({ created }) => created >= since)
    const data = rest.slice(0, limit)
    return [200, { object: 'list', url: '/v1/events', has_more: rest.length > limit, data }]
  }

  const add: StripeServer['add'] = ({
    type = 'invoice.paid',
    pending = 1,
    secondsAgo = 0,
    amount = 0,
  }) => {
    count += 1
    const id = `evt_1${String(count).padStart(23, '0')}`
    events.unshift({
      id,
      object: 'event',
      api_version: '2026-10-28',
      created: Math.floor(clock() / 1000) - secondsAgo,
      type,
      pending_webhooks: pending,
      data: { object: { amount } },
    })
    return id
  }

  const { origin, requests, next, close } = server
  const self: StripeServer = {
    origin,
    requests,
    next,
    close,
    events,
    add,
    aheadMs: 0,
    mayRead: true,
  }
  return self
}

const failure = (status: number, message: string): readonly [number, unknown] => [
  status,
  { error: { type: 'invalid_request_error', message } },
]
