import type { IncomingMessage } from 'node:http'
import type { EventRecord, Stage } from '../../shared/api/api.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { EventStore } from '../events/event-store.ts'
import type { CompiledRule, CompiledWebhook } from './compiled-webhook.ts'
import type { Decision } from './decide.ts'
import { getDeliveryId } from './read-delivery.ts'
import type { Engine } from './engine.ts'
import { type AcceptedEvent, toKnown } from './events/accepted-event.ts'
import type { ReadDelivery, VerifiedDelivery } from './read-delivery.ts'
import type { ReceivedBody } from './receive.ts'
import type { RejectionLog } from './rejection-log.ts'
import type { Reply } from './senders/handshakes.ts'
import type { FetchText } from './senders/remote-keys.ts'
import type { Proof, SignatureHeaders } from './signatures/header.ts'
import { describeSubject } from './events/subject.ts'

export type Status = 'accepted' | 'filtered' | 'duplicate' | 'ping' | 'challenge'

export type Accepted = {
  /** The id of its event; some of many handshakes have none. */
  readonly id?: string
  readonly status: Status
  /** The response, for a sender that takes no 202 with JSON. */
  readonly reply?: Reply
  /** All events of a delivery for several rules; `id` is the first. */
  readonly events?: readonly EventOfRule[]
}

export type EventOfRule = {
  readonly id: string
  readonly status: Status
  readonly rule: string | undefined
}

/** A delivery in the pipeline: how it came in, and what its steps have found so far. */
export type Delivery = {
  readonly webhook: CompiledWebhook
  readonly engine: Engine
  readonly headers: SignatureHeaders
  readonly receivedAt: Date
  /** One of both: it was sent here, or it was read from the API of its sender. */
  readonly request: IncomingMessage | undefined
  readonly fetched: Buffer | undefined
  /** The id of a delivery that has none in its headers and its body. */
  readonly deliveryId: string | undefined
  readonly source: EventRecord['source']
  stage: Stage
  size: number
  /** Raw bytes, counted in the budget until they are released. */
  body: ReceivedBody | undefined
  proof: Proof | undefined
  verified: VerifiedDelivery | undefined
  read: ReadDelivery | undefined
  decision: Decision | undefined
  reply: Reply | undefined
  /** The rules that run it, and their events. */
  due: readonly DueEvent[]
}

export type DueEvent = { readonly rule: CompiledRule; readonly event: AcceptedEvent }

/** What records and answers a request that runs no agent. */
export type ContactParts = {
  readonly events: EventStore
  readonly refusals: RejectionLog
  /** True once in ten seconds for each key. */
  readonly isRare: (key: string) => boolean
  /** Writes a secret into `.env`, where it is unset, and uses it. */
  readonly keepSecret: (name: string, value: string) => Promise<void>
  readonly fetchText: FetchText
}

/** What is known of a delivery; only a verified one has an id that is proved. */
const toFields = (delivery: Delivery, rule?: CompiledRule): ReturnType<typeof toKnown> => {
  const { webhook, headers, size, source, read } = delivery
  const deliveryId = read ? read.deliveryId : getDeliveryId(webhook.scheme, headers)
  const subject = read && describeSubject(read, rule ?? webhook.rules[0])
  return toKnown(webhook, { deliveryId, signed: read?.signed, source, subject }, size, rule)
}

/** What the event of a request without a delivery names. */
export const toContact = ({ path, rules }: CompiledWebhook) => ({
  webhook: path,
  agent: rules[0]?.agentName ?? null,
  size: 0,
})

/** Adds the event of a delivery, or of one rule, that runs no agent. */
export const addFiltered = (
  delivery: Delivery,
  why: Pick<EventRecord, 'detail' | 'code' | 'about'> & {
    readonly state: 'filtered' | 'duplicate'
  },
  events: EventStore,
  rule?: CompiledRule,
): string => events.add(delivery.receivedAt, { ...why, ...toFields(delivery, rule) }).id

/** Adds the event of a delivery, or of one rule, that is refused. */
export const addRejected = (
  delivery: Delivery,
  error: unknown,
  { events, refusals }: Pick<ContactParts, 'events' | 'refusals'>,
  rule?: CompiledRule,
): void => {
  const refused = error instanceof DoorwardError ? error : undefined
  const why = {
    state: 'rejected' as const,
    stage: delivery.stage,
    code: refused?.code ?? 'internal',
    detail: refused?.localDetail ?? refused?.message,
  }
  const { id } = events.add(delivery.receivedAt, { ...why, ...toFields(delivery, rule) })
  refusals.note({ event: id, webhook: delivery.webhook.path, ...why })
}
