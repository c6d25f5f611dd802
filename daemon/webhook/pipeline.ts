import { hash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Stage } from '../../shared/api.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { SignatureScheme } from '../../shared/signature-schemes.ts'
import type { LoopGuard } from '../delivery/loop-guard.ts'
import type { EventStore } from '../events/event-store.ts'
import type { ByteBudget } from '../util/byte-budget.ts'
import { valueAt } from '../util/payload-path.ts'
import type { AcceptedEvent } from './accepted-event.ts'
import { toBodyHeaders, headersNamed, type CompiledWebhook } from './compiled-webhook.ts'
import { type SeenDeliveries, type DeliveryKey, deliveryKey } from './dedupe.ts'
import type { Engine } from './engine.ts'
import type { RunEvent } from './event-runner.ts'
import { firstMismatch } from './filter.ts'
import { type BodyHeaders, isForm, parse, type Payload } from './parse.ts'
import type { DeliveryWaiters } from './payload-shape.ts'
import { expandPrompt, fenceIdFor } from './prompt.ts'
import type { RateLimits } from './rate-limit.ts'
import { receive, type ReceivedBody } from './receive.ts'
import type { RejectionLog } from './rejection-log.ts'
import type { DiagnoseRefusal } from './signature-diagnosis.ts'
import { invalid, type SignatureHeaders } from './signature-header.ts'
import { expandTargets } from './targets.ts'
import { type VerifiedBody, verify } from './verify.ts'

/*
 * The story of one delivery:
 *
 *   receive (raw bytes) -> verify -> parse -> filter -> expand -> queue -> 202
 *                                                                   ... agent -> deliver
 *
 * What stands before the answer happens here and is quick; the rest is `run-event.ts`, later. A
 * sender that is not verified learns nothing: all that can tell it something comes after `verify`.
 */

export type PipelineParts = {
  readonly budget: ByteBudget
  readonly events: EventStore
  readonly deliveries: SeenDeliveries
  readonly rateLimits: RateLimits
  readonly learners: DeliveryWaiters
  readonly diagnose: DiagnoseRefusal
  readonly loopGuard: LoopGuard
  readonly refusals: RejectionLog
}

type Status = 'accepted' | 'filtered' | 'duplicate' | 'ping' | 'challenge'

export type Accepted = {
  readonly id: string
  readonly status: Status
  /** What a sender that wants a plain 200 is answered instead; may be empty. */
  readonly text?: string
}

/** A delivery, and what is known of it so far. */
type Incoming = {
  readonly request: IncomingMessage
  readonly webhook: CompiledWebhook
  readonly given: SignatureHeaders
  readonly written: BodyHeaders
  readonly receivedAt: Date
  stage: Stage
  size: number
  deliveryId: DeliveryId | undefined
  signed: boolean | undefined
}

/**
 * Takes one delivery as far as the queue, all the way under the configuration it came under. Throws
 * what refuses it, after noting it as an event. All that follows the body happens in one turn.
 */
export const acceptDelivery = async (
  request: IncomingMessage,
  webhook: CompiledWebhook,
  { maxBodyBytes, runEvent }: Engine,
  parts: PipelineParts,
): Promise<Accepted> => {
  const given = headersNamed(request.rawHeaders, webhook.headerNames)
  const declared = Number(given['content-length']?.[0])
  const incoming: Incoming = {
    request,
    webhook,
    given,
    written: toBodyHeaders(given),
    receivedAt: new Date(),
    stage: 'receive',
    // A sender can declare more than a number holds exactly, and clients refuse a size that is none.
    size: Math.min(declared || 0, Number.MAX_SAFE_INTEGER),
    deliveryId: undefined,
    signed: undefined,
  }
  try {
    const { budget, loopGuard } = parts
    const body = await receive(request, { declared, maxBodyBytes, budget })
    try {
      // Before anything is looked at: a sender that is not verified waits like any other.
      const posted = webhook.scheme.name === 'slack' ? loopGuard.posted() : undefined
      if (posted) await posted
      return take(incoming, body, runEvent, parts)
    } finally {
      body.release()
    }
  } catch (error) {
    noteRefusal(incoming, error, parts)
    throw error
  }
}

const take = (
  incoming: Incoming,
  body: ReceivedBody,
  runEvent: RunEvent,
  parts: PipelineParts,
): Accepted => {
  const { webhook, given, written, receivedAt } = incoming
  const { scheme } = webhook
  const now = receivedAt.getTime()
  incoming.size = body.bytes.length
  incoming.stage = 'verify'
  const verified = verifyOrDiagnose(body.bytes, incoming, parts.diagnose)
  const isSigned = webhook.verifier !== 'none'
  incoming.stage = 'parse'
  const payload = parse(verified, written, scheme.name === 'slack')
  incoming.stage = 'verify'
  if (isSigned) checkBodyTimestamp(payload, scheme, now)
  incoming.signed = isSigned
  const { signedId } = verified
  incoming.deliveryId = getDeliveryId(scheme, given, { payload, signedId, isSigned })
  const counted = webhook.rateLimit && seenBefore(incoming, body.bytes, parts)
  // One that somebody sends again, or an old one, must not use up what the sender may send.
  if (webhook.rateLimit && counted?.first === undefined)
    parts.rateLimits.count(webhook.path, webhook.rateLimit, performance.now())
  incoming.stage = 'filter'
  const handshake = findHandshake(scheme, given, payload)
  if (handshake) return pass(incoming, handshake.status, handshake.detail, parts, handshake.text)
  const ownDetail = parts.loopGuard.ownDetail(payload)
  if (ownDetail !== undefined) return pass(incoming, 'filtered', ownDetail, parts)
  parts.learners.show(webhook.path, payload)
  const mismatch = firstMismatch(payload, webhook.filter)
  if (mismatch) {
    // The path is the owner's own word; the value, which is the sender's, is not shown.
    return pass(incoming, 'filtered', `the filter on ${mismatch.text} does not match`, parts)
  }
  const { delivery, first } = counted ?? seenBefore(incoming, body.bytes, parts)
  if (first !== undefined)
    return pass(incoming, 'duplicate', `the same delivery as ${first}`, parts)
  incoming.stage = 'expand'
  const { values } = webhook
  const prompt = expandPrompt(webhook.prompt, payload, values, fenceIdFor(values))
  const targets = expandTargets(webhook.targets, payload)
  incoming.stage = 'queue'
  // The prompt takes the place of the body, so the body's bytes are free for it.
  body.release()
  const event = { webhook, receivedAt, known: toKnownDelivery(incoming), prompt, targets, delivery }
  return answered(incoming, runEvent.accept(event), 'accepted')
}

/** What names this delivery, and the event it has become when it came before. */
const seenBefore = (
  { webhook, deliveryId }: Incoming,
  bytes: Buffer,
  { deliveries }: PipelineParts,
): { readonly delivery: DeliveryKey | undefined; readonly first: string | undefined } => {
  const delivery = deliveryKey(webhook.path, webhook.dedupe, deliveryId?.id, bytes)
  return { delivery, first: delivery && deliveries.eventFor(delivery, performance.now()) }
}

const toKnownDelivery = ({
  webhook,
  size,
  deliveryId,
  signed,
}: Incoming): AcceptedEvent['known'] => ({
  webhook: webhook.path,
  agent: webhook.agentName,
  size,
  deliveryId: deliveryId?.id,
  signed,
})

/** A delivery that wakes no agent. */
const pass = (
  incoming: Incoming,
  status: Status,
  detail: string,
  { events }: PipelineParts,
  text?: string,
): Accepted => {
  const state = status === 'duplicate' ? 'duplicate' : 'filtered'
  const { id } = events.add(incoming.receivedAt, { state, detail, ...toKnownDelivery(incoming) })
  return answered(incoming, id, status, text)
}

const answered = (
  { webhook, written }: Incoming,
  id: string,
  status: Status,
  text = wantsEmptyAnswer(webhook.scheme, written['content-type']) ? '' : undefined,
): Accepted => (text === undefined ? { id, status } : { id, status, text })

const noteRefusal = (
  incoming: Incoming,
  error: unknown,
  { events, refusals }: PipelineParts,
): void => {
  const { webhook, given, stage } = incoming
  // Of a body that is not verified this is no more than what somebody says.
  incoming.deliveryId ??= getDeliveryId(webhook.scheme, given)
  const refused = error instanceof DoorwardError ? error : undefined
  const why = {
    state: 'rejected' as const,
    stage,
    code: refused?.code ?? 'internal',
    detail: refused?.localDetail ?? refused?.message,
  }
  const { id } = events.add(incoming.receivedAt, { ...why, ...toKnownDelivery(incoming) })
  refusals.note({ event: id, webhook: webhook.path, ...why })
}

const verifyOrDiagnose = (
  bytes: Buffer,
  { given, request, webhook, receivedAt }: Incoming,
  diagnose: DiagnoseRefusal,
): VerifiedBody => {
  const now = receivedAt.getTime()
  try {
    return verify(bytes, given, webhook.verifier, now)
  } catch (error) {
    throw diagnose(error, bytes, request.headersDistinct, webhook, now)
  }
}

/** A verified request that asks whether the webhook works, and wakes no agent. */
type Handshake = {
  readonly status: 'ping' | 'challenge'
  readonly detail: string
  /** The body of a 200 as plain text, where the sender wants one. */
  readonly text?: string
}

/**
 * Reads the handshake of a sender, undefined for a delivery. GitHub's `ping` (docs: "Webhook events and
 * payloads"); Slack's `url_verification`, answered with its challenge (docs: "url_verification"), and
 * its `ssl_check` of a slash command.
 */
export const findHandshake = (
  { name }: SignatureScheme,
  headers: SignatureHeaders,
  payload: Payload,
): Handshake | undefined => {
  if (name === 'slack') return slackHandshake(payload)
  const [event, second] = headers['x-github-event'] ?? []
  if ((name !== 'github' && name !== 'hmac') || event !== 'ping' || second !== undefined)
    return undefined
  return { status: 'ping', detail: 'the webhook is set up and its secret fits' }
}

const maxChallenge = 4096

const slackHandshake = (payload: Payload): Handshake | undefined => {
  const challenge = valueAt(payload, ['challenge'])
  if (valueAt(payload, ['type']) === 'url_verification' && typeof challenge === 'string')
    return {
      status: 'challenge',
      detail: 'Slack asked for its challenge: the webhook is set up and its secret fits',
      text: challenge.slice(0, maxChallenge),
    }
  if (valueAt(payload, ['ssl_check']) === '1')
    return { status: 'challenge', detail: 'Slack checked the certificate', text: '' }
  return undefined
}

/**
 * True for what Slack wants a plain 200 for, and would show the person an error else: slash commands
 * and the buttons and forms of messages (docs: "Implementing slash commands", "Handling user
 * interaction"). A body would be shown to the person, so there is none.
 */
export const wantsEmptyAnswer = (
  { name }: SignatureScheme,
  contentType: string | undefined,
): boolean => name === 'slack' && isForm(contentType)

/**
 * The last part of verification for a sender that puts the signed time into the body (Linear). Throws
 * `signature-invalid` when it is missing, no number of milliseconds, or too far from now either way.
 */
export const checkBodyTimestamp = (
  payload: Payload,
  { bodyTimestamp, toleranceSeconds = 0 }: SignatureScheme,
  nowMs: number,
): void => {
  if (bodyTimestamp === undefined) return
  const timestamp =
    typeof payload === 'object' && payload !== null && Object.hasOwn(payload, bodyTimestamp)
      ? (payload as Readonly<Record<string, unknown>>)[bodyTimestamp]
      : undefined
  if (typeof timestamp !== 'number' || !Number.isFinite(timestamp))
    throw invalid(`the body has no ${bodyTimestamp} in milliseconds`)
  const ageMs = nowMs - timestamp
  if (Math.abs(ageMs) > toleranceSeconds * 1000)
    throw invalid(
      `${bodyTimestamp} is ${Math.ceil(Math.abs(ageMs) / 1000)} s in the ${ageMs < 0 ? 'future' : 'past'}, ${toleranceSeconds} s are taken; the signature fits: an old delivery came again, or a clock is wrong`,
    )
}

type DeliveryId = {
  readonly id: string
  /** True when whoever made the signature chose the id too: nobody else can send the same under another. */
  readonly signed: boolean
}

/** What was verified of a delivery. */
type VerifiedDelivery = {
  readonly payload: Payload
  /** The id in a header that the signature covers, if there is one. */
  readonly signedId: string | undefined
  /** False for a webhook without a secret. */
  readonly isSigned: boolean
}

/**
 * The sender's own name for a delivery: the signed one, else the field of the verified body that the
 * scheme has it in, else the first of its headers that has one. Where it is long, or more than visible ASCII,
 * a hash stands for it: it is shown and logged. Without `verified` the headers alone are looked at, and
 * nothing of them is known to be true.
 */
export const getDeliveryId = (
  { deliveryId }: SignatureScheme,
  headers: SignatureHeaders,
  verified?: VerifiedDelivery,
): DeliveryId | undefined => {
  // However long it is: another header is the word of who sent it this time, and not of who signed it.
  if (verified?.signedId !== undefined) return { id: verified.signedId, signed: true }
  if (verified && deliveryId.body !== undefined) {
    const id = getField(verified.payload, deliveryId.body)
    if (typeof id === 'string' && id !== '') return { id: shown(id), signed: verified.isSigned }
  }
  for (const name of deliveryId.headers) {
    const [value, second] = headers[name] ?? []
    if (value !== undefined && value !== '' && second === undefined)
      return { id: shown(value), signed: false }
  }
  return undefined
}

const shown = (id: string): string =>
  /^[\x21-\x7e]{1,128}$/.test(id) ? id : `sha256:${hash('sha256', id, 'hex')}`

const getField = (payload: Payload, name: string): unknown =>
  typeof payload === 'object' && payload !== null && Object.hasOwn(payload, name)
    ? (payload as Readonly<Record<string, unknown>>)[name]
    : undefined
