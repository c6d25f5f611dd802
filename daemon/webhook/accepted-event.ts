import type { EventRecord } from '../../shared/api.ts'
import type { DeliveryKey } from './deliveries.ts'
import type { ReadyTarget } from '../deliver/ready-target.ts'
import type { ReadyWebhook } from './ready-webhook.ts'

/** An event that was accepted: all that is kept of a delivery. The payload itself is gone by now. */
export type AcceptedEvent = {
  readonly webhook: Pick<ReadyWebhook, 'path' | 'agentName' | 'agent' | 'values'>
  readonly receivedAt: Date
  readonly known: Pick<EventRecord, 'webhook' | 'agent' | 'size' | 'deliveryId' | 'signed'>
  readonly prompt: string
  readonly targets: readonly ReadyTarget[]
  /** What the sender's repeat of this delivery would have in common with it. */
  readonly delivery?: DeliveryKey | undefined
}
