import type { EventRecord } from '../../shared/api/api.ts'
import { isFinal } from '../events/event-record.ts'
import type { EventStore } from '../events/event-store.ts'
import type { PastDelivery } from '../sender-apis/sender-api.ts'
import type { CompiledWebhook } from '../webhook/compiled-webhook.ts'
import { holds, isNamed } from '../webhook/rules/choose.ts'

/** True while the daemon remembers an event of this delivery. */
export const hasEvent = (events: EventStore, webhook: string, deliveryId: string): boolean =>
  events.list({ limit: Infinity, webhook }).some((record) => record.deliveryId === deliveryId)

/** The oldest first; of one that was sent again the newest attempt. */
export const oncePerId = (newestFirst: readonly PastDelivery[]): PastDelivery[] => {
  const byId = new Map<string, PastDelivery>()
  for (const delivery of newestFirst)
    if (!byId.has(delivery.deliveryId)) byId.set(delivery.deliveryId, delivery)
  // Stable, as GitHub tells whole seconds.
  return [...byId.values()].toReversed().toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at))
}

/** The deliveries to a webhook that wait, run or are finished here. */
export const listKnown = (events: EventStore, path: string): ReadonlySet<string> =>
  new Set(
    events
      .list({ limit: Infinity, webhook: path })
      .flatMap((record) => (isLost(record) ? [] : (record.deliveryId ?? []))),
  )

/** An event that never ran: the queue was full, the signature was wrong, or the daemon stopped. */
const isLost = ({ state, code }: EventRecord): boolean =>
  state === 'rejected' || (state === 'dropped' && code === 'event-dropped')

/** True once all rules of a delivery are through with it. */
export const isThrough = (events: EventStore, record: EventRecord): boolean => {
  const { state, webhook, deliveryId } = record
  // The delivery that a duplicate repeats may still run.
  if (!isFinal(state) || state === 'duplicate' || isLost(record) || webhook === null) return false
  return !events
    .list({ limit: Infinity, webhook })
    .some((other) => other.deliveryId === deliveryId && !isFinal(other.state))
}

/**
 * False for a delivery that no rule runs, as far as the list of the sender tells: by its event, and by what a
 * filter asks of `event.action` alone. Its details need not be read.
 */
export const canRun = (
  rules: CompiledWebhook['rules'],
  { event, action }: PastDelivery,
): boolean => {
  if (event === 'ping') return false
  const scope = { event: { action }, headers: {} }
  return rules.some(
    ({ on, filter, coalesce }) =>
      isNamed(coalesce?.cancelOn ?? [], [{ event, action }]) ||
      ((!on || isNamed(on, [{ event, action }])) &&
        filter.every(
          (condition) =>
            condition.kind !== 'value' ||
            condition.path.length !== 2 ||
            condition.path[0] !== 'event' ||
            condition.path[1] !== 'action' ||
            holds(scope, condition),
        )),
  )
}
