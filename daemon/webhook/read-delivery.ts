import { hash } from 'node:crypto'
import type { EventRecord } from '../../shared/api/api.ts'
import { each, type Path } from '../../shared/paths.ts'
import type { SignatureForm } from '../../shared/signatures/form.ts'
import type { SignatureScheme } from '../../shared/signatures/scheme.ts'
import { textAt, valueAt } from '../util/payload-path.ts'
import type { CompiledWebhook } from './compiled-webhook.ts'
import { type DeliveryKey, deliveryKey } from './dedupe.ts'
import {
  type BodyHeaders,
  parseMediaType,
  // oxlint-disable-next-line no-restricted-imports -- the argument of `parse` is verified
  parseUnverified,
  type Payload,
  toBodyHeaders,
} from './body.ts'
import { invalid, type SignatureHeaders } from './signatures/header.ts'
import type { VerifiedBody } from './signatures/verify.ts'

/** What filters and templates read of a delivery. */
export type EventScope = {
  readonly event: Payload
  /** Only those that a filter or template of the webhook names. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly webhook: { readonly path: string }
  readonly delivery: { readonly id: string | undefined; readonly received_at: string }
  /** The name and times of a schedule. */
  readonly schedule?: unknown
}

/** A verified delivery, before its body is parsed. */
export type VerifiedDelivery = {
  readonly webhook: CompiledWebhook
  readonly headers: SignatureHeaders
  readonly receivedAt: Date
  readonly body: VerifiedBody
  /** False for a webhook without a secret, and for what was read from the API of the sender. */
  readonly signed: boolean
  readonly source: EventRecord['source']
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
  const { path, scheme, dedupe, scopeHeaders, maxBodyBytes } = webhook
  const payload = readPayload(body, headers, scheme, maxBodyBytes)
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
    key: deliveryKey(
      path,
      dedupe,
      toUniqueId(scheme, deliveryId, body),
      body.bytes,
      findSecond(scheme, body, payload),
    ),
    scope: {
      event: payload,
      headers: toScopeHeaders(scopeHeaders, headers),
      webhook: { path },
      delivery: { id: deliveryId, received_at: receivedAt.toISOString() },
      ...(source === 'schedule' && { schedule: valueAt(payload, ['schedule']) }),
    },
  }
}

/** The id of the sender, with the bytes where other deliveries can have the same. */
const toUniqueId = (
  { deliveryId: { isShared } }: SignatureScheme,
  deliveryId: string | undefined,
  { bytes }: VerifiedBody,
): string | undefined =>
  deliveryId !== undefined && isShared
    ? `${deliveryId} ${hash('sha256', bytes, 'hex')}`
    : deliveryId

/**
 * What else identifies a delivery: its bytes, where no signature covers the id; at Slack the message, as an app
 * gets a mention as app_mention and as message, under two ids.
 */
const findSecond = (
  { name, lateSeconds }: SignatureScheme,
  { bytes }: VerifiedBody,
  payload: Payload,
): Buffer | string | undefined => {
  if (lateSeconds) return bytes
  const [type, channel, ts] = ['type', 'channel', 'ts'].map((field) =>
    textAt(payload, 'event', field),
  )
  const isMessage = name === 'slack' && (type === 'app_mention' || type === 'message')
  return isMessage && channel !== undefined && ts !== undefined
    ? `message ${channel} ${ts}`
    : undefined
}

/** Throws what `parseUnverified` throws. */
export const parse = (
  body: VerifiedBody,
  headers: BodyHeaders,
  format: Partial<SignatureScheme> = {},
  maxBytes?: number,
): Payload => parseUnverified(body.bytes, headers, format, maxBytes)

/**
 * The payload of a verified delivery: what `parse` returns, without the token of its sender, or the headers
 * that the scheme names where its sender sends no body.
 */
export const readPayload = (
  body: VerifiedBody,
  headers: SignatureHeaders,
  scheme: Partial<SignatureScheme>,
  maxBytes?: number,
): Payload => {
  const { emptyBody } = scheme
  return emptyBody && body.bytes.length === 0
    ? Object.fromEntries(emptyBody.flatMap((name) => toEntry(name, headers[name]?.[0])))
    : hideBodyToken(parse(body, toBodyHeaders(headers), scheme, maxBytes), scheme)
}

const toEntry = (name: string, value: string | undefined): [string, string][] =>
  value === undefined ? [] : [[name, value]]

/*
 * A token that proves the sender and is a field of the body: it is a secret, and goes into no prompt, answer,
 * file or program.
 */

const placeOf = ({ check, in: place, field }: SignatureForm): Path | undefined => {
  if (check === 'client-state') return ['value', each, 'clientState']
  return place === 'field' ? field : undefined
}

export const hasBodyToken = ({ forms = [] }: Partial<SignatureScheme>): boolean =>
  forms.some((form) => placeOf(form) !== undefined)

/** Replaces it in a payload that was just parsed. */
const hideBodyToken = (payload: Payload, { forms = [] }: Partial<SignatureScheme>): Payload => {
  for (const form of forms) {
    const path = placeOf(form)
    if (path) hideAt(payload, path)
  }
  return payload
}

const hideAt = (value: unknown, [name, ...rest]: Path): void => {
  if (typeof value !== 'object' || value === null || name === undefined) return
  if (name === each) {
    if (Array.isArray(value)) for (const item of value) hideAt(item, rest)
  } else if (Object.hasOwn(value, name)) {
    const fields = value as Record<string, unknown>
    if (rest.length > 0) hideAt(fields[name], rest)
    else fields[name] = '[the token]'
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

/**
 * The last part of verification for a sender whose signed time is in the body (Linear). Throws
 * `signature-invalid` when it is missing, not a number of milliseconds, or too far from now. It may be
 * `lateSeconds` old.
 */
export const checkBodyTimestamp = (
  payload: Payload,
  { bodyTimestamp, toleranceSeconds = 0 }: SignatureScheme,
  nowMs: number,
  lateSeconds = 0,
): void => {
  if (bodyTimestamp === undefined) return
  const timestamp =
    typeof payload === 'object' && payload !== null && Object.hasOwn(payload, bodyTimestamp)
      ? (payload as Readonly<Record<string, unknown>>)[bodyTimestamp]
      : undefined
  if (typeof timestamp !== 'number' || !Number.isFinite(timestamp))
    throw invalid(`the body has no ${bodyTimestamp} in milliseconds`)
  const ageMs = nowMs - timestamp
  const mostMs = (ageMs > 0 ? Math.max(toleranceSeconds, lateSeconds) : toleranceSeconds) * 1000
  if (Math.abs(ageMs) > mostMs)
    throw invalid(
      `${bodyTimestamp} is ${Math.ceil(Math.abs(ageMs) / 1000)} s in the ${ageMs < 0 ? 'future' : 'past'}, ${mostMs / 1000} s are allowed; the signature matches: an old delivery was sent again, or a clock is wrong`,
    )
}

/** How old a delivery may be that was never seen: only where one that was seen is recognised. */
export const getLateSeconds = (
  { scheme, dedupe }: CompiledWebhook,
  deliveryId: string | undefined,
): number =>
  dedupe === 'body' || (dedupe === 'id' && deliveryId !== undefined) ? (scheme.lateSeconds ?? 0) : 0

/** The verified part of a delivery. */
type VerifiedParts = {
  readonly payload: Payload
  /** The id in a header that the signature covers, if there is one. */
  readonly signedId: string | undefined
}

/**
 * The sender's id of a delivery: the signed one, else the field of the verified body that the scheme names,
 * else the first header that has one. An id that is long, or has other characters than visible ASCII, is
 * replaced by its hash, as ids are shown and logged. Without `verified` only the headers are read, and
 * nothing proves them.
 */
export const getDeliveryId = (
  { deliveryId }: SignatureScheme,
  headers: SignatureHeaders,
  verified?: VerifiedParts,
): string | undefined => {
  // However long it is: no signature covers the other headers.
  if (verified?.signedId !== undefined) return verified.signedId
  if (deliveryId.source) return getSourceId(deliveryId, headers, verified?.payload)
  if (verified && deliveryId.body !== undefined) {
    const id = valueAt(verified.payload, deliveryId.body.split('.'))
    const text = typeof id === 'number' ? String(id) : id
    if (typeof text === 'string' && text !== '') return shown(text)
  }
  for (const name of deliveryId.headers) {
    const [value, second] = headers[name] ?? []
    if (value !== undefined && value !== '' && second === undefined) return shown(value)
  }
  return undefined
}

/** Source and id, of the headers, or of a body that has them as fields (CloudEvents 1.0). */
const getSourceId = (
  { headers: [name = ''], body = '', source }: SignatureScheme['deliveryId'],
  headers: SignatureHeaders,
  payload: Payload,
): string | undefined => {
  if (!source) return undefined
  const isStructured = parseMediaType(headers['content-type']?.[0]) === source.mediaType
  const id = isStructured ? textAt(payload, body) : oneOf(headers, name)
  const from = isStructured ? textAt(payload, source.field) : oneOf(headers, source.header)
  if (id === undefined || id === '' || from === undefined) return undefined
  const isVisible = /^[\x21-\x7e]{1,128}$/.test(id) && /^[\x21-\x7e]{1,256}$/.test(from)
  return isVisible ? `${from} ${id}` : shown(`${from} ${id}`)
}

const oneOf = (headers: SignatureHeaders, name: string): string | undefined =>
  headers[name]?.length === 1 ? headers[name][0] : undefined

const shown = (id: string): string =>
  /^[\x21-\x7e]{1,128}$/.test(id) ? id : `sha256:${hash('sha256', id, 'hex')}`
