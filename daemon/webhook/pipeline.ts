import type { IncomingMessage } from 'node:http'
import { getKeySource } from '../../shared/signatures/scheme.ts'
import type { LoopGuard } from '../delivery/loop-guard.ts'
import type { ByteBudget } from '../util/byte-budget.ts'
import { headersNamed, type CompiledWebhook } from './compiled-webhook.ts'
import { deliveryKey } from './dedupe.ts'
import { type Accepted, addRejected, type Delivery, pass } from './delivery.ts'
import { checkBodyTimestamp, getDeliveryId, getLateSeconds } from './delivery-id.ts'
import type { Engine } from './engine.ts'
import type { RunEvent } from './events/runner.ts'
import { createScope } from './event-scope.ts'
import { loadMultipart } from './forms.ts'
import { isMultipart } from './body.ts'
import { readPayload } from './parse.ts'
import type { DeliveryWaiters } from './payload-shape.ts'
import type { RateLimits } from './rate-limit.ts'
import { holdBytes, receive, type ReceivedBody } from './receive.ts'
import { getEventName } from './rules/choose.ts'
import { findSeen, runRules, type RunRulesParts } from './rules/run.ts'
import {
  acceptHandshake,
  confirmSubscription,
  describeHandshake,
} from './senders/accept-handshake.ts'
import { findUnsignedHandshake } from './senders/handshakes-unsigned.ts'
import { findHandshake, getReply } from './senders/handshakes.ts'
import type { RemoteKeys } from './senders/remote-keys.ts'
import type { DiagnoseRefusal } from './signatures/diagnosis.ts'
import { trustRead, type VerifiedBody, verify } from './signatures/verify.ts'

/*
 * The story of one delivery:
 *
 *   receive (raw bytes) -> verify -> parse -> filter -> expand -> queue -> 202
 *                                                                   ... agent -> deliver
 *
 * The stages before the response are here and are quick; `events/runner.ts` runs the rest later. An
 * unverified sender learns nothing: all that could inform it comes after `verify`.
 */

export type PipelineParts = RunRulesParts & {
  readonly remoteKeys: RemoteKeys
  readonly budget: ByteBudget
  readonly rateLimits: RateLimits
  readonly learners: DeliveryWaiters
  readonly diagnose: DiagnoseRefusal
  readonly loopGuard: LoopGuard
  /** True for a delivery that ran before a restart, where its sender sends again what catch-up has read. */
  readonly isCaughtUp?: (webhook: CompiledWebhook, deliveryId: string) => boolean
}

/**
 * Takes one delivery as far as the queue, with one configuration from start to end. Throws why it is
 * refused, after adding that as an event. Nothing after the body is asynchronous, unless another machine has
 * to confirm it.
 */
export const acceptDelivery = async (
  request: IncomingMessage,
  webhook: CompiledWebhook,
  { maxBodyBytes, runEvent }: Engine,
  parts: PipelineParts,
): Promise<Accepted> => {
  const headers = headersNamed(request.rawHeaders, webhook.headerNames)
  const declared = Number(headers['content-length']?.[0])
  const delivery: Delivery = {
    webhook,
    headers,
    receivedAt: new Date(),
    stage: 'receive',
    // A sender can declare more than a safe integer, which the schema of events does not allow.
    size: Math.min(declared || 0, Number.MAX_SAFE_INTEGER),
    deliveryId: undefined,
    signed: undefined,
    reply: undefined,
    remoteKey: undefined,
  }
  try {
    const { budget, loopGuard } = parts
    const body = await receive(request, { declared, maxBodyBytes, budget })
    try {
      // Before verification, so that an unverified sender waits like any other.
      const posted = webhook.scheme.name === 'slack' ? loopGuard.posted() : undefined
      if (posted) await posted
      if (isMultipart(headers['content-type']?.[0])) await loadMultipart()
      delivery.stage = 'verify'
      const { bytes } = body
      const sent = { method: 'POST', url: request.url ?? '', headers, bytes }
      const handshake = findUnsignedHandshake(webhook, sent)
      if (handshake) return await acceptHandshake(webhook, handshake, parts)
      const source = getKeySource(webhook.scheme)
      if (source) delivery.remoteKey = await parts.remoteKeys.find(source, headers, bytes)
      const check = () => verifyOrDiagnose(body.bytes, delivery, request, parts.diagnose)
      const accepted = processBody(delivery, body, check, runEvent, parts)
      return accepted instanceof Promise ? await accepted : accepted
    } finally {
      body.release()
    }
  } catch (error) {
    addRejected(delivery, error, parts)
    throw error
  }
}

/** A delivery as the API of its sender has it, which a login read over TLS. */
export type FetchedDelivery = {
  readonly rawHeaders: readonly string[]
  readonly bytes: Buffer
}

/**
 * The second door: takes a delivery that was read from the API of its sender. No signature can be checked, as
 * the API does not have the bytes that were signed; all else is as for one that was sent here.
 */
export const acceptFetched = async (
  { rawHeaders, bytes }: FetchedDelivery,
  webhook: CompiledWebhook,
  { maxBodyBytes, runEvent }: Engine,
  parts: PipelineParts,
): Promise<Accepted> => {
  const delivery: Delivery = {
    webhook,
    headers: headersNamed(rawHeaders.map(toOneLine), webhook.headerNames),
    receivedAt: new Date(),
    stage: 'receive',
    size: bytes.length,
    deliveryId: undefined,
    signed: false,
    source: 'api',
    reply: undefined,
    remoteKey: undefined,
  }
  try {
    const body = holdBytes(bytes, { maxBodyBytes, budget: parts.budget })
    try {
      return await processBody(delivery, body, () => trustRead(bytes), runEvent, parts)
    } finally {
      body.release()
    }
  } catch (error) {
    addRejected(delivery, error, parts)
    throw error
  }
}

/** As in a request of HTTP: the API may tell anything. */
const toOneLine = (header: string): string => header.replaceAll(/[\0\r\n]/g, ' ')

const processBody = (
  delivery: Delivery,
  body: ReceivedBody,
  check: () => VerifiedBody,
  runEvent: RunEvent,
  parts: PipelineParts,
): Accepted | Promise<Accepted> => {
  const { webhook, headers, receivedAt } = delivery
  const { scheme } = webhook
  const now = receivedAt.getTime()
  delivery.size = body.bytes.length
  delivery.stage = 'verify'
  const verified = check()
  const isSigned = webhook.verifier !== 'none' && delivery.source === undefined
  delivery.stage = 'parse'
  const payload = readPayload(verified, headers, scheme)
  delivery.stage = 'verify'
  const { signedId } = verified
  const deliveryId = getDeliveryId(scheme, headers, { payload, signedId, isSigned })
  if (isSigned) checkBodyTimestamp(payload, scheme, now, getLateSeconds(webhook, deliveryId))
  delivery.signed = isSigned
  delivery.deliveryId = deliveryId
  if (isSigned && deliveryId && parts.isCaughtUp?.(webhook, deliveryId.id))
    return pass(delivery, 'duplicate', "it was read from the sender's API before", parts)
  const isAlsoBody = Boolean(scheme.lateSeconds)
  const key = deliveryKey(webhook.path, webhook.dedupe, deliveryId?.id, body.bytes, isAlsoBody)
  // A repeated delivery must not use up the sender's rate.
  if (webhook.rateLimit && !webhook.rules.some((rule) => findSeen(rule, key, parts)))
    parts.rateLimits.count(webhook.path, webhook.rateLimit, performance.now())
  delivery.stage = 'filter'
  const own = () => webhook.secrets().own
  const handshake = findHandshake(scheme, headers, payload, own)
  delivery.reply = handshake ? handshake.reply : getReply(scheme, headers, payload)
  if (handshake) {
    const accepted = pass(delivery, handshake.status, describeHandshake(handshake, webhook), parts)
    if (handshake.confirm !== undefined && webhook.confirm)
      confirmSubscription(accepted.id, handshake.confirm, parts)
    return accepted
  }
  const ownDetail = parts.loopGuard.ownDetail(payload)
  if (ownDetail !== undefined) return pass(delivery, 'filtered', ownDetail, parts)
  parts.learners.show(webhook.path, payload, () => getEventName(scheme, headers, payload))
  const scope = createScope(webhook, headers, payload, delivery.deliveryId?.id, receivedAt)
  return runRules(
    { delivery, verified, payload, scope, key, release: () => body.release() },
    runEvent,
    parts,
  )
}

const verifyOrDiagnose = (
  bytes: Buffer,
  { headers, webhook, receivedAt, remoteKey }: Delivery,
  request: IncomingMessage,
  diagnose: DiagnoseRefusal,
): VerifiedBody => {
  const now = receivedAt.getTime()
  try {
    const line = remoteKey ? { method: 'POST', url: request.url, remoteKey } : request
    return verify(bytes, headers, webhook.verifier, now, line)
  } catch (error) {
    throw diagnose(error, bytes, request.headersDistinct, webhook, now, request)
  }
}
