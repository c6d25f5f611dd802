import type { CompiledWebhook } from './compiled-webhook.ts'
import type { Payload } from './body.ts'
import type { SignatureHeaders } from './signatures/header.ts'

/** What filters and templates read of a delivery. */
export type EventScope = {
  readonly event: Payload
  /** Only those that a filter or template of the webhook names. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly webhook: { readonly path: string }
  readonly delivery: { readonly id: string | undefined; readonly received_at: string }
}

const noHeaders: EventScope['headers'] = Object.freeze({})

export const createScope = (
  { path, scopeHeaders }: Pick<CompiledWebhook, 'path' | 'scopeHeaders'>,
  headers: SignatureHeaders,
  event: Payload,
  deliveryId: string | undefined,
  receivedAt: Date,
): EventScope => ({
  event,
  headers: toScopeHeaders(scopeHeaders, headers),
  webhook: { path },
  delivery: { id: deliveryId, received_at: receivedAt.toISOString() },
})

/** The values of these headers; one that was sent several times is joined, as in node:http. */
const toScopeHeaders = (
  names: readonly string[],
  headers: SignatureHeaders,
): EventScope['headers'] =>
  names.length === 0
    ? noHeaders
    : Object.fromEntries(names.map((name) => [name, headers[name.toLowerCase()]?.join(', ')]))
