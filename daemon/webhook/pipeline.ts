import type { IncomingMessage } from 'node:http'
import type { Stage } from '../../shared/api.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { ByteBudget } from '../byte-budget.ts'
import type { LoopGuard } from '../deliver/loop-guard.ts'
import type { EventStore } from '../events/event-store.ts'
import type { Setup } from '../setup.ts'
import type { BodyRooms } from './body-rooms.ts'
import { checkBodyTimestamp } from './body-timestamp.ts'
import { type Deliveries, type DeliveryKey, deliveryKey } from './deliveries.ts'
import { type DeliveryId, deliveryIdOf } from './delivery-id.ts'
import type { Examine } from './doctor.ts'
import { expandPrompt } from './expand.ts'
import { expandTargets } from './expand-targets.ts'
import { fenceIdFor } from './fence-id.ts'
import { firstMismatch } from './filter.ts'
import { handshakeOf, wantsEmptyAnswer } from './handshake.ts'
import type { Learners } from './learners.ts'
import { type BodyHeaders, parse } from './parse.ts'
import type { RateLimits } from './rate-limits.ts'
import type { SignatureHeaders } from './read-signature.ts'
import type { ReadyWebhook } from './ready-webhook.ts'
import { type ReceivedBody, receive } from './receive.ts'
import type { RefusalLog } from './refusal-log.ts'
import type { AcceptedEvent } from './accepted-event.ts'
import type { RunEvent } from './run-event.ts'
import { bodyHeadersOf, headersNamed } from './scheme-headers.ts'
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
  readonly rooms: BodyRooms
  readonly events: EventStore
  readonly deliveries: Deliveries
  readonly rateLimits: RateLimits
  readonly learners: Learners
  readonly examine: Examine
  readonly loopGuard: LoopGuard
  readonly refusals: RefusalLog
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
  readonly webhook: ReadyWebhook
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
  webhook: ReadyWebhook,
  { maxBodyBytes, runEvent }: Setup,
  parts: PipelineParts,
): Promise<Accepted> => {
  const given = headersNamed(request.rawHeaders, webhook.headerNames)
  const declared = Number(given['content-length']?.[0])
  const incoming: Incoming = {
    request,
    webhook,
    given,
    written: bodyHeadersOf(given),
    receivedAt: new Date(),
    stage: 'receive',
    // A sender can declare more than a number holds exactly, and clients refuse a size that is none.
    size: Math.min(declared || 0, Number.MAX_SAFE_INTEGER),
    deliveryId: undefined,
    signed: undefined,
  }
  try {
    const { budget, rooms, loopGuard } = parts
    const body = await receive(request, { declared, maxBodyBytes, budget, rooms })
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
  const verified = verifyOrExamine(body.bytes, incoming, parts.examine)
  const isSigned = webhook.verifier !== 'none'
  incoming.stage = 'parse'
  const payload = parse(verified, written, scheme.name === 'slack')
  incoming.stage = 'verify'
  if (isSigned) checkBodyTimestamp(payload, scheme, now)
  incoming.signed = isSigned
  const { signedId } = verified
  incoming.deliveryId = deliveryIdOf(scheme, given, { payload, signedId, isSigned })
  const counted = webhook.rateLimit && seenBefore(incoming, body.bytes, parts)
  // One that somebody sends again, or an old one, must not use up what the sender may send.
  if (webhook.rateLimit && counted?.first === undefined)
    parts.rateLimits.count(webhook.path, webhook.rateLimit, performance.now())
  incoming.stage = 'filter'
  const handshake = handshakeOf(scheme, given, payload)
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
  const event = { webhook, receivedAt, known: knownOf(incoming), prompt, targets, delivery }
  return answered(incoming, runEvent.accept(event), 'accepted')
}

/** What names this delivery, and the event it has become when it came before. */
const seenBefore = (
  { webhook, deliveryId }: Incoming,
  bytes: Buffer,
  { deliveries }: PipelineParts,
): { readonly delivery: DeliveryKey | undefined; readonly first: string | undefined } => {
  const delivery = deliveryKey(webhook.path, webhook.dedupe, deliveryId?.id, bytes)
  return { delivery, first: delivery && deliveries.eventOf(delivery, performance.now()) }
}

const knownOf = ({ webhook, size, deliveryId, signed }: Incoming): AcceptedEvent['known'] => ({
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
  const { id } = events.add(incoming.receivedAt, { state, detail, ...knownOf(incoming) })
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
  incoming.deliveryId ??= deliveryIdOf(webhook.scheme, given)
  const refused = error instanceof DoorwardError ? error : undefined
  const why = {
    state: 'rejected' as const,
    stage,
    code: refused?.code ?? 'internal',
    detail: refused?.localDetail ?? refused?.message,
  }
  const { id } = events.add(incoming.receivedAt, { ...why, ...knownOf(incoming) })
  refusals.note({ event: id, webhook: webhook.path, ...why })
}

const verifyOrExamine = (
  bytes: Buffer,
  { given, request, webhook, receivedAt }: Incoming,
  examine: Examine,
): VerifiedBody => {
  const now = receivedAt.getTime()
  try {
    return verify(bytes, given, webhook.verifier, now)
  } catch (error) {
    throw examine(error, bytes, request.headersDistinct, webhook, now)
  }
}
