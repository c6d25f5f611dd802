import type { WebhookSource } from '../../shared/config/source.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { TokenSource } from '../delivery/token.ts'
import { textAt, valueAt } from '../util/payload-path.ts'
import { createApiRequest } from './api-request.ts'
import { toList } from './hook-calls.ts'
import { listPast, toFetched } from './sender-api.ts'
import type { PastDelivery, PastApi } from './sender-api.ts'

const title = 'Stripe'
const perPage = 100
/** A younger one may still be on its way here. */
const settledMs = 60_000

/**
 * The events of an account, which Stripe keeps for thirty days (docs.stripe.com/api/events/list). An event is
 * the body that endpoints get. Stripe lists all of them, not those of one endpoint: `pending_webhooks` is the
 * number of endpoints that have not got it.
 */
export const createStripePast = ({ mode, apiUrl }: WebhookSource, token: TokenSource): PastApi => {
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
      list: async (_hook, { ms }, signal) => {
        let after = ''
        const list = await listPast(ms, perPage, async () => {
          const { json, headers } = await request(`/v1/events?limit=${perPage}${after}`, { signal })
          const items = toList(valueAt(json, ['data']), title)
          after = `&starting_after=${encodeURIComponent(textAt(items.at(-1), 'id') ?? '')}`
          const hasMore = valueAt(json, ['has_more']) === true
          return { deliveries: items.flatMap(toPastDelivery), headers, hasMore }
        })
        if (list === 'same') return list
        const { deliveries, nowMs } = list
        return {
          ...list,
          deliveries:
            mode === 'poll'
              ? deliveries.map((each) => ({ ...each, isAccepted: false }))
              : deliveries.filter(({ at }) => Date.parse(at) <= nowMs - settledMs),
        }
      },
      fetch: async (_hook, id, signal) => {
        const path = `/v1/events/${encodeURIComponent(id)}`
        const { status, json } = await request(path, { signal, handles: [404] })
        return status === 404 ? undefined : toFetched(json, {})
      },
    },
  }
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
