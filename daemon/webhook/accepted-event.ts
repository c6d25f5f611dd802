import type { EventRecord } from '../../shared/api.ts'
import type { ResolvedTarget } from '../delivery/sender.ts'
import type { EventStore } from '../events/event-store.ts'
import type { CompiledRule } from './compiled-webhook.ts'
import type { DeliveryKey } from './dedupe.ts'

/** An accepted event: everything that is kept of a delivery, without its payload. */
export type AcceptedEvent = {
  readonly webhook: Pick<CompiledRule, 'path' | 'agentName' | 'agent' | 'values' | 'deliverEmpty'>
  readonly receivedAt: Date
  readonly known: Pick<EventRecord, 'webhook' | 'agent' | 'size' | 'deliveryId' | 'signed'>
  readonly prompt: string
  readonly targets: readonly ResolvedTarget[]
  /** Identifies the same delivery when the sender repeats it. */
  readonly delivery?: DeliveryKey | undefined
}

/** Events that can be run again: until they are done, or their prompt is no longer in memory. */
export type RetryableEvents<Value> = {
  readonly keep: (id: string, value: Value) => void
  readonly get: (id: string) => Value | undefined
  readonly entries: () => readonly (readonly [id: string, value: Value])[]
}

/** Keeps values by the id of an event, and deletes each when its event is done or forgotten. */
export const createRetryableEvents = <Value>(events: EventStore): RetryableEvents<Value> => {
  const kept = new Map<string, Value>()
  events.onForget((id) => kept.delete(id))
  events.follow(({ record }) => {
    if (record.state === 'done') kept.delete(record.id)
  })
  return {
    keep: (id, value) => void kept.set(id, value),
    get: (id) => kept.get(id),
    entries: () => [...kept],
  }
}
