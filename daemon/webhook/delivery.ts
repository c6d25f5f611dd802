import type { KeyObject } from 'node:crypto'
import type { Stage } from '../../shared/api.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { AcceptedEvent } from './events/accepted-event.ts'
import type { CompiledRule, CompiledWebhook } from './compiled-webhook.ts'
import { type DeliveryId, getDeliveryId } from './delivery-id.ts'
import type { EventStore } from '../events/event-store.ts'
import type { RejectionLog } from './rejection-log.ts'
import type { FetchText } from './senders/remote-keys.ts'
import type { Reply } from './senders/handshakes.ts'
import type { SignatureHeaders } from './signatures/header.ts'

export type Status = 'accepted' | 'filtered' | 'duplicate' | 'ping' | 'challenge'

export type Accepted = {
  /** The id of its event; some of many handshakes have none. */
  readonly id?: string
  readonly status: Status
  /** The response, for a sender that takes no 202 with JSON. */
  readonly reply?: Reply
  /** All events of a delivery for several rules; `id` is the first. */
  readonly events?: readonly {
    readonly id: string
    readonly status: Status
    readonly rule: string | undefined
  }[]
}

/** A delivery in the pipeline, and what is known about it so far. */
export type Delivery = {
  readonly webhook: CompiledWebhook
  readonly headers: SignatureHeaders
  readonly receivedAt: Date
  stage: Stage
  size: number
  deliveryId: DeliveryId | undefined
  signed: boolean | undefined
  /** Read from the API of the sender. */
  readonly source?: 'api'
  reply: Reply | undefined
  remoteKey: KeyObject | undefined
}

export type ContactParts = {
  readonly events: EventStore
  readonly refusals: RejectionLog
  /** True once in ten seconds for each key. */
  readonly isRare: (key: string) => boolean
  /** Writes a secret into `.env`, where it is unset, and uses it. */
  readonly keepSecret: (name: string, value: string) => Promise<void>
  readonly fetchText: FetchText
}

/** Without a rule for a delivery that runs none. */
export const toKnownDelivery = (
  { webhook: { path, rules }, size, deliveryId, signed, source }: Delivery,
  rule: CompiledRule | undefined = rules.length === 1 ? rules[0] : undefined,
): AcceptedEvent['known'] => ({
  webhook: path,
  rule: rule?.name,
  agent: rule?.agentName ?? null,
  size,
  deliveryId: deliveryId?.id,
  signed,
  source,
})

/** What the event of a request without a delivery names. */
export const toContact = ({ path, rules }: CompiledWebhook) => ({
  webhook: path,
  agent: rules[0].agentName,
  size: 0,
})

/** Adds the event of a delivery that runs no agent. */
export const pass = (
  delivery: Delivery,
  status: Status,
  detail: string,
  { events }: ContactParts,
): Accepted => {
  const state = status === 'duplicate' ? 'duplicate' : 'filtered'
  const { id } = events.add(delivery.receivedAt, { state, detail, ...toKnownDelivery(delivery) })
  return toAccepted(delivery, id, status)
}

export const toAccepted = ({ reply }: Delivery, id: string, status: Status): Accepted =>
  reply ? { id, status, reply } : { id, status }

export const addRejected = (
  delivery: Delivery,
  error: unknown,
  { events, refusals }: ContactParts,
  rule?: CompiledRule,
): void => {
  const { webhook, headers, stage } = delivery
  // Without verification, the id is an unproven claim.
  delivery.deliveryId ??= getDeliveryId(webhook.scheme, headers)
  const refused = error instanceof DoorwardError ? error : undefined
  const why = {
    state: 'rejected' as const,
    stage,
    code: refused?.code ?? 'internal',
    detail: refused?.localDetail ?? refused?.message,
  }
  const { id } = events.add(delivery.receivedAt, { ...why, ...toKnownDelivery(delivery, rule) })
  refusals.note({ event: id, webhook: webhook.path, ...why })
}
