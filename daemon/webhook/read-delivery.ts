import type { CompiledWebhook } from './compiled-webhook.ts'
import { type DeliveryKey, deliveryKey } from './dedupe.ts'
import { getDeliveryId } from './delivery-id.ts'
import type { Payload } from './body.ts'
import { readPayload } from './parse.ts'
import type { SignatureHeaders } from './signatures/header.ts'
import type { VerifiedBody } from './signatures/verify.ts'

/** What filters and templates read of a delivery. */
export type EventScope = {
  readonly event: Payload
  /** Only those that a filter or template of the webhook names. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly webhook: { readonly path: string }
  readonly delivery: { readonly id: string | undefined; readonly received_at: string }
}

/** A verified delivery, before its body is parsed. */
export type VerifiedDelivery = {
  readonly webhook: CompiledWebhook
  readonly headers: SignatureHeaders
  readonly receivedAt: Date
  readonly body: VerifiedBody
  /** False for a webhook without a secret, and for what was read from the API of the sender. */
  readonly signed: boolean
  readonly source: 'api' | undefined
  /** Known already, for a delivery that runs again: its signature is no longer here. */
  readonly deliveryId?: string | undefined
}

/** A verified delivery that was parsed: `decide` chooses its rules, and `createEvent` makes its events. */
export type ReadDelivery = VerifiedDelivery & {
  readonly payload: Payload
  readonly scope: EventScope
  readonly deliveryId: string | undefined
  /** Identifies the same delivery when the sender repeats it. */
  readonly key: DeliveryKey | undefined
}

/** Third stage. Throws as `parse`. */
export const readDelivery = (verified: VerifiedDelivery): ReadDelivery => {
  const { webhook, headers, receivedAt, body, signed, source } = verified
  const { path, scheme, dedupe, scopeHeaders } = webhook
  const payload = readPayload(body, headers, scheme)
  const { signedId } = body
  const deliveryId = verified.deliveryId ?? getDeliveryId(scheme, headers, { payload, signedId })
  return {
    webhook,
    headers,
    receivedAt,
    body,
    signed,
    source,
    payload,
    deliveryId,
    key: deliveryKey(path, dedupe, deliveryId, body.bytes, Boolean(scheme.lateSeconds)),
    scope: {
      event: payload,
      headers: toScopeHeaders(scopeHeaders, headers),
      webhook: { path },
      delivery: { id: deliveryId, received_at: receivedAt.toISOString() },
    },
  }
}

const noHeaders: EventScope['headers'] = Object.freeze({})

/** The values of these headers; one that was sent several times is joined, as in node:http. */
const toScopeHeaders = (
  names: readonly string[],
  headers: SignatureHeaders,
): EventScope['headers'] =>
  names.length === 0
    ? noHeaders
    : Object.fromEntries(names.map((name) => [name, headers[name.toLowerCase()]?.join(', ')]))
