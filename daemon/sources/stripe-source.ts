import type { WebhookSource } from '../../shared/config/source.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { TokenSource } from '../delivery/token.ts'
import { textAt, valueAt } from '../util/payload-path.ts'
import { createApiRequest, parseText } from './api-request.ts'
import { maxListed, type PastDelivery, type PastSource } from './source.ts'

const title = 'Stripe'
const perPage = 100
/** A younger one may still be on its way here. */
const settledMs = 60_000

/**
 * The events of an account, which Stripe keeps for thirty days (docs.stripe.com/api/events/list). An event is
 * the body that endpoints get. Stripe lists all of them, not those of one endpoint: `pending_webhooks` is the
 * number of endpoints that have not got it.
 */
export const createStripeSource = (
  { mode, apiUrl }: Pick<WebhookSource, 'mode' | 'apiUrl'>,
  token: TokenSource,
): PastSource => {
  const baseUrl = (apiUrl ?? 'https://api.stripe.com').replace(/\/+$/, '')
  const headers = { accept: 'application/json' }
  const request = createApiRequest({
    title,
    baseUrl,
    headers,
    token,
    toFailure: (_, { status }) => (status === 403 ? mayNotRead(token) : undefined),
  })
  return {
    title,
    past: {
      list: async (_hook, { ms: sinceMs }, signal) => {
        const deliveries: PastDelivery[] = []
        const since = Math.floor((sinceMs ?? 0) / 1000)
        let nowMs = Number.NaN
        let isWhole = false
        let after = ''
        for (let page = 1; !isWhole && page <= maxListed / perPage; page += 1) {
          const query = sinceMs === undefined ? 'limit=1' : `limit=${perPage}&created[gte]=${since}`
          const listed = await request(`/v1/events?${query}${after}`, { signal, isLarge: true })
          if (page === 1) nowMs = dateOf(listed.headers['date'])
          const { items, hasMore } = readList(listed.text)
          isWhole = sinceMs === undefined || !hasMore || items.length === 0
          if (sinceMs !== undefined) deliveries.push(...items.flatMap(toPastDelivery))
          after = `&starting_after=${encodeURIComponent(textAt(items.at(-1), 'id') ?? '')}`
        }
        if (mode === 'poll')
          return {
            deliveries: deliveries.map((each) => ({ ...each, isAccepted: false })),
            nowMs,
            isWhole,
          }
        const settled = deliveries.filter(({ at }) => Date.parse(at) <= nowMs - settledMs)
        return { deliveries: settled, nowMs, isWhole }
      },
      fetch: async (_hook, id, signal) => {
        const path = `/v1/events/${encodeURIComponent(id)}`
        const { status, text } = await request(path, { signal, isLarge: true, handles: [404] })
        if (status === 404 || text === undefined) return undefined
        return { rawHeaders: ['content-type', 'application/json'], bytes: Buffer.from(text) }
      },
    },
  }
}

const dateOf = (header: string | undefined): number => {
  const ms = Date.parse(header ?? '')
  return Number.isNaN(ms) ? Date.now() : ms
}

const readList = (text: string | undefined) => {
  const document = parseText(text)
  const items = valueAt(document, ['data'])
  if (!Array.isArray(items)) throw new DoorwardError('source-failed', `${title} returned no list`)
  return { items: items as unknown[], hasMore: valueAt(document, ['has_more']) === true }
}

const toPastDelivery = (item: unknown): PastDelivery[] => {
  const id = textAt(item, 'id')
  const created = valueAt(item, ['created'])
  const pending = valueAt(item, ['pending_webhooks'])
  if (id === undefined || typeof created !== 'number') return []
  return [
    {
      id,
      deliveryId: id,
      at: new Date(created * 1000).toISOString(),
      event: textAt(item, 'type') ?? '',
      isOk: pending === 0,
      isAccepted: pending === 0,
      answer: pending === 0 ? 'delivered' : 'not delivered yet',
    },
  ]
}

const mayNotRead = ({ tokenEnv = '' }: TokenSource): DoorwardError =>
  new DoorwardError('scope-missing', `the key in ${tokenEnv} may not read events`, {
    hint: 'give it the permission Events: Read at https://dashboard.stripe.com/apikeys',
  })
