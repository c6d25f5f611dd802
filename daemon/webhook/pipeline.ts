import type { IncomingMessage } from 'node:http'
import type { Stage } from '../../shared/api.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { ByteBudget } from '../byte-budget.ts'
import { type CommentMarks, ownCommentDetail } from '../deliver/own-comment.ts'
import type { EventStore } from '../events.ts'
import type { Setup } from '../setup.ts'
import { checkBodyTimestamp } from './body-timestamp.ts'
import { type Deliveries, deliveryKey } from './deliveries.ts'
import { type DeliveryId, deliveryIdOf } from './delivery-id.ts'
import type { Examine } from './doctor.ts'
import { expandPrompt } from './expand.ts'
import { expandTargets } from './expand-targets.ts'
import { fenceIdFor } from './fence-id.ts'
import { firstMismatch } from './filter.ts'
import { handshakeOf, wantsEmptyAnswer } from './handshake.ts'
import type { Learners } from './learners.ts'
import { parse } from './parse.ts'
import type { RateLimits } from './rate-limits.ts'
import type { SignatureHeaders } from './read-signature.ts'
import type { ReadyWebhook } from './ready-webhook.ts'
import { receive } from './receive.ts'
import type { RefusalLog } from './refusal-log.ts'
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
  readonly deliveries: Deliveries
  readonly rateLimits: RateLimits
  readonly learners: Learners
  readonly examine: Examine
  /** True for an event about what we wrote ourselves: the loop guard. */
  readonly isOwnComment: CommentMarks['isOwnComment']
  readonly refusals: RefusalLog
}

type Status = 'accepted' | 'filtered' | 'duplicate' | 'ping' | 'challenge'

export type Accepted = {
  readonly id: string
  readonly status: Status
  /** What a sender that wants a plain 200 is answered instead; may be empty. */
  readonly text?: string
}

/**
 * Takes one delivery as far as the queue, all the way under the configuration it came under. Throws
 * what refuses it, after noting it as an event.
 */
export const acceptDelivery = async (
  request: IncomingMessage,
  webhook: ReadyWebhook,
  { maxBodyBytes, runEvent }: Setup,
  parts: PipelineParts,
): Promise<Accepted> => {
  const { budget, events, deliveries, rateLimits, learners, examine, isOwnComment, refusals } =
    parts
  const receivedAt = new Date()
  const now = receivedAt.getTime()
  const { headers, headersDistinct } = request
  const { scheme } = webhook
  let deliveryId: DeliveryId | undefined
  let signed: boolean | undefined
  let stage: Stage = 'receive'
  // A sender can declare more than a number holds exactly, and clients refuse a size that is none.
  let size = Math.min(Number(headers['content-length'] ?? 0) || 0, Number.MAX_SAFE_INTEGER)
  const known = () => ({
    webhook: webhook.path,
    agent: webhook.agentName,
    size,
    ...(deliveryId === undefined ? {} : { deliveryId: deliveryId.id }),
    ...(signed === undefined ? {} : { signed }),
  })

  const countRate = () => {
    if (webhook.rateLimit) rateLimits.count(webhook.path, webhook.rateLimit, performance.now())
  }
  const usualText = wantsEmptyAnswer(scheme, headers['content-type']) ? '' : undefined
  const answer = (id: string, status: Status, text = usualText): Accepted =>
    text === undefined ? { id, status } : { id, status, text }
  const pass = (status: Status, detail: string, text?: string): Accepted => {
    const state = status === 'duplicate' ? 'duplicate' : 'filtered'
    return answer(events.add(receivedAt, { ...known(), state, detail }).id, status, text)
  }

  try {
    const body = await receive(request, { maxBodyBytes, budget })
    try {
      size = body.bytes.length
      stage = 'verify'
      const verified = verifyOrExamine(body.bytes, headersDistinct, webhook, now, examine)
      const isSigned = webhook.verifier !== 'none'
      const isTimeInBody = isSigned && scheme.bodyTimestamp !== undefined
      if (!isTimeInBody) countRate()
      stage = 'parse'
      const payload = parse(verified, headers, scheme.name === 'slack')
      if (isTimeInBody) {
        stage = 'verify'
        checkBodyTimestamp(payload, scheme, now)
        // Not before: old deliveries that somebody sends again must not use up what the sender may send.
        countRate()
      }
      signed = isSigned
      const { signedId } = verified
      deliveryId = deliveryIdOf(scheme, headersDistinct, { payload, signedId, isSigned })
      stage = 'filter'
      const handshake = handshakeOf(scheme, headersDistinct, payload)
      if (handshake) return pass(handshake.status, handshake.detail, handshake.text)
      if (isOwnComment(payload)) return pass('filtered', ownCommentDetail)
      learners.show(webhook.path, payload)
      const mismatch = firstMismatch(payload, webhook.filter)
      // The path is the owner's own word; the value, which is the sender's, is not shown.
      if (mismatch) return pass('filtered', `the filter on ${mismatch.text} does not match`)
      const delivery = deliveryKey(webhook.path, webhook.dedupe, deliveryId?.id, body.bytes)
      const first = delivery && deliveries.eventOf(delivery, performance.now())
      if (first !== undefined) return pass('duplicate', `the same delivery as ${first}`)
      stage = 'expand'
      const { values } = webhook
      const prompt = expandPrompt(webhook.prompt, payload, values, fenceIdFor(values))
      const targets = expandTargets(webhook.targets, payload)
      stage = 'queue'
      // The prompt takes the place of the body, so the body's bytes are free for it.
      body.release()
      const event = { webhook, receivedAt, known: known(), prompt, targets, delivery }
      return answer(runEvent.accept(event), 'accepted')
    } finally {
      body.release()
    }
  } catch (error) {
    // Of a body that is not verified this is no more than what somebody says.
    deliveryId ??= deliveryIdOf(scheme, headersDistinct)
    const refused = error instanceof DoorwardError ? error : undefined
    const detail = refused?.localDetail ?? refused?.message
    const why = {
      state: 'rejected' as const,
      stage,
      code: refused?.code ?? 'internal',
      ...(detail === undefined ? {} : { detail }),
    }
    const { id } = events.add(receivedAt, { ...known(), ...why })
    refusals.note({ event: id, webhook: webhook.path, ...why })
    throw error
  }
}

const verifyOrExamine = (
  bytes: Buffer,
  headers: SignatureHeaders,
  webhook: ReadyWebhook,
  now: number,
  examine: Examine,
): VerifiedBody => {
  try {
    return verify(bytes, headers, webhook.verifier, now)
  } catch (error) {
    throw examine(error, bytes, headers, webhook, now)
  }
}
