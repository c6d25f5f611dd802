import { hash } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Stage } from '../../shared/api.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { formatDuration } from '../../shared/text.ts'
import { getKeySource, type SignatureScheme } from '../../shared/signatures/scheme.ts'
import type { Log } from '../log/log.ts'
import type { LoopGuard } from '../delivery/loop-guard.ts'
import type { ByteBudget } from '../util/byte-budget.ts'
import { valueAt } from '../util/payload-path.ts'
import { type AcceptedEvent, type KeptPayloads, toEventFile } from './accepted-event.ts'
import { headersNamed, type CompiledRule, type CompiledWebhook } from './compiled-webhook.ts'
import {
  acceptHandshake,
  confirmSubscription,
  type ContactParts,
  describeHandshake,
} from './senders/contact.ts'
import { type DeliveryKey, deliveryKey, ofRule, type SeenDeliveries } from './dedupe.ts'
import type { Engine } from './engine.ts'
import { type EventGroups, toCoalesced } from './event-groups.ts'
import { createScope } from './event-scope.ts'
import type { RunEvent } from './event-runner.ts'
import { findUnsignedHandshake } from './senders/handshakes-unsigned.ts'
import { findHandshake, getReply, type Reply } from './senders/handshakes.ts'
import type { RemoteKeys } from './senders/remote-keys.ts'
import { loadMultipart } from './multipart.ts'
import { isMultipart, type Payload, readPayload } from './parse.ts'
import type { DeliveryWaiters } from './payload-shape.ts'
import { expandPrompt, fenceIdFor } from './prompt.ts'
import type { RateLimits } from './rate-limit.ts'
import { formatMaxRuns, type RunBudgets } from './run-budgets.ts'
import { chooseRules, getEventName } from './rules.ts'
import { receive, type ReceivedBody } from './receive.ts'
import type { DiagnoseRefusal } from './signature-diagnosis.ts'
import { invalid, type SignatureHeaders } from './signature-header.ts'
import { expandTargets } from './targets.ts'
import { expandWorkspace } from '../workspace/request.ts'
import { type VerifiedBody, verify } from './verify.ts'

/*
 * The story of one delivery:
 *
 *   receive (raw bytes) -> verify -> parse -> filter -> expand -> queue -> 202
 *                                                                   ... agent -> deliver
 *
 * The stages before the response are here and are quick; `event-runner.ts` runs the rest later. An
 * unverified sender learns nothing: all that could inform it comes after `verify`.
 */

export type PipelineParts = ContactParts & {
  readonly remoteKeys: RemoteKeys
  readonly budget: ByteBudget
  readonly deliveries: SeenDeliveries
  readonly rateLimits: RateLimits
  readonly budgets: RunBudgets
  readonly groups: EventGroups
  readonly learners: DeliveryWaiters
  readonly diagnose: DiagnoseRefusal
  readonly loopGuard: LoopGuard
  /** For another run under another definition. */
  readonly payloads: KeptPayloads
  readonly log: Pick<Log, 'warn'>
}

type Status = 'accepted' | 'filtered' | 'duplicate' | 'ping' | 'challenge'

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
type Delivery = {
  readonly request: IncomingMessage
  readonly webhook: CompiledWebhook
  readonly headers: SignatureHeaders
  readonly receivedAt: Date
  stage: Stage
  size: number
  deliveryId: DeliveryId | undefined
  signed: boolean | undefined
  reply: Reply | undefined
  remoteKey: KeyObject | undefined
}

/**
 * Takes one delivery as far as the queue, with one configuration from start to end. Throws why it is
 * refused, after adding that as an event. Nothing after the body is asynchronous.
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
    request,
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
      return processBody(delivery, body, runEvent, parts)
    } finally {
      body.release()
    }
  } catch (error) {
    addRejected(delivery, error, parts)
    throw error
  }
}

const processBody = (
  delivery: Delivery,
  body: ReceivedBody,
  runEvent: RunEvent,
  parts: PipelineParts,
): Accepted => {
  const { webhook, headers, receivedAt } = delivery
  const { scheme } = webhook
  const now = receivedAt.getTime()
  delivery.size = body.bytes.length
  delivery.stage = 'verify'
  const verified = verifyOrDiagnose(body.bytes, delivery, parts.diagnose)
  const isSigned = webhook.verifier !== 'none'
  delivery.stage = 'parse'
  const payload = readPayload(verified, headers, scheme)
  delivery.stage = 'verify'
  const { signedId } = verified
  const deliveryId = getDeliveryId(scheme, headers, { payload, signedId, isSigned })
  if (isSigned) checkBodyTimestamp(payload, scheme, now, getLateSeconds(webhook, deliveryId))
  delivery.signed = isSigned
  delivery.deliveryId = deliveryId
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
  const rules = chooseRules(webhook, headers, scope)
  if (typeof rules === 'string') return pass(delivery, 'filtered', rules, parts)
  const seen = rules.map((rule) => findSeen(rule, key, parts))
  if (!seen.includes(undefined))
    return pass(delivery, 'duplicate', `the same delivery as ${seen.join(', ')}`, parts)
  // After a rule has failed, a repeated delivery is for that rule alone.
  const unseen = rules.filter((_, index) => seen[index] === undefined)
  const groupOf = new Map(unseen.map((rule) => [rule, toCoalesced(rule, scope, receivedAt)]))
  const due = unseen.filter((rule) => {
    const coalesced = groupOf.get(rule)
    // What it replaces has not run.
    const replaces = typeof coalesced === 'object' && parts.groups.hasWaiting(coalesced)
    return replaces || !parts.budgets.isOver(rule, performance.now())
  })
  delivery.stage = 'expand'
  const expand = (rule: CompiledRule): AcceptedEvent => {
    const { values } = rule
    const prompt = expandPrompt(rule.prompt, scope, values, fenceIdFor(values))
    const targets = expandTargets(rule.targets, scope)
    const workspace = rule.workspace && expandWorkspace(rule.workspace, scope)
    const known = toKnownDelivery(delivery, rule)
    const file = toEventFile(rule.agent, { body: verified, headers }, payload)
    const seenAs = ofRule(key, rule.name)
    return {
      webhook: rule,
      receivedAt,
      known,
      prompt,
      workspace,
      payload: file,
      targets,
      ...describeCoalesced(groupOf.get(rule)),
      delivery: seenAs,
    }
  }
  const { accepted, ready } = expandEach(due, expand, delivery, parts)
  delivery.stage = 'queue'
  // The prompts replace the body, whose bytes become free for them.
  body.release()
  const ids = runEvent.accept(accepted)
  const kept = { body: verified.compact(), headers: withoutProof(headers, scheme), receivedAt }
  accepted.forEach(({ known, delivery: seenAs }, index) =>
    parts.payloads.keep(ids[index] ?? '', { ...kept, known, delivery: seenAs }),
  )
  for (const rule of ready) parts.budgets.count(rule, performance.now())
  const events = [
    ...ids.map((id, index) => ({ id, status: 'accepted' as const, rule: ready[index]?.name })),
    ...unseen.filter((rule) => !due.includes(rule)).map((rule) => passOver(delivery, rule, parts)),
  ]
  const [{ id, status } = { id: '', status: 'accepted' as const }] = events
  const answer = toAccepted(delivery, id, status)
  return events.length > 1 ? { ...answer, events } : answer
}

/**
 * The events of these rules. A template that cannot be filled rejects its own rule alone; throws the reason
 * where no rule is left.
 */
const expandEach = (
  rules: readonly CompiledRule[],
  expand: (rule: CompiledRule) => AcceptedEvent,
  delivery: Delivery,
  parts: PipelineParts,
): { readonly accepted: readonly AcceptedEvent[]; readonly ready: readonly CompiledRule[] } => {
  const [only] = rules
  if (rules.length === 1 && only) return { accepted: [expand(only)], ready: rules }
  const failed = new Map<CompiledRule, DoorwardError>()
  const accepted = rules.flatMap((rule) => {
    try {
      return [expand(rule)]
    } catch (error) {
      if (!(error instanceof DoorwardError)) throw error
      failed.set(rule, error)
      return []
    }
  })
  const [reason] = failed.values()
  if (reason && accepted.length === 0) throw reason
  for (const [rule, error] of failed) addRejected(delivery, error, parts, rule)
  return { accepted, ready: rules.filter((rule) => !failed.has(rule)) }
}

const describeCoalesced = (
  coalesced: ReturnType<typeof toCoalesced>,
): Pick<AcceptedEvent, 'coalesced' | 'detail'> => {
  if (coalesced === undefined) return {}
  if (typeof coalesced === 'string')
    return { detail: `it is not coalesced: ${coalesced} of the key is empty in this event` }
  const { quietMs } = coalesced
  return quietMs === 0
    ? { coalesced }
    : { coalesced, detail: `it waits for newer events with its key: ${formatDuration(quietMs)}` }
}

/** Adds the event of a rule that has used up its `max_runs`, which the log says once. */
const passOver = (
  delivery: Delivery,
  rule: CompiledRule,
  { events, budgets, log }: PipelineParts,
): { readonly id: string; readonly status: 'filtered'; readonly rule: string | undefined } => {
  const { path, name, maxRuns } = rule
  const limit = maxRuns ? formatMaxRuns(maxRuns) : 'max_runs'
  const why = { code: 'over-budget', detail: `the ${limit} is used up` }
  const known = toKnownDelivery(delivery, rule)
  const { id } = events.add(delivery.receivedAt, { state: 'filtered', ...why, ...known })
  if (budgets.passOver(rule))
    log.warn({ event: id, webhook: path, rule: name, code: why.code }, `the ${limit} is used up`)
  return { id, status: 'filtered', rule: name }
}

/** The headers of a delivery but those that prove who sent it. */
const withoutProof = (headers: SignatureHeaders, { forms }: SignatureScheme): SignatureHeaders => {
  const kept = Object.assign(Object.create(null) as Record<string, readonly string[]>, headers)
  for (const name of ['authorization', 'cookie', ...forms.map(({ header }) => header)])
    delete kept[name]
  return kept
}

/** The id of the event that this delivery became before by this rule. */
const findSeen = (
  { name }: CompiledRule,
  key: DeliveryKey | undefined,
  { deliveries }: PipelineParts,
): string | undefined => {
  const own = ofRule(key, name)
  return own && deliveries.eventFor(own, performance.now())
}

/** Without a rule for a delivery that runs none. */
const toKnownDelivery = (
  { webhook: { path, rules }, size, deliveryId, signed }: Delivery,
  rule: CompiledRule | undefined = rules.length === 1 ? rules[0] : undefined,
): AcceptedEvent['known'] => ({
  webhook: path,
  rule: rule?.name,
  agent: rule?.agentName ?? null,
  size,
  deliveryId: deliveryId?.id,
  signed,
})

/** Adds the event of a delivery that runs no agent. */
const pass = (
  delivery: Delivery,
  status: Status,
  detail: string,
  { events }: PipelineParts,
): Accepted => {
  const state = status === 'duplicate' ? 'duplicate' : 'filtered'
  const { id } = events.add(delivery.receivedAt, { state, detail, ...toKnownDelivery(delivery) })
  return toAccepted(delivery, id, status)
}

const toAccepted = ({ reply }: Delivery, id: string, status: Status): Accepted =>
  reply ? { id, status, reply } : { id, status }

const addRejected = (
  delivery: Delivery,
  error: unknown,
  { events, refusals }: PipelineParts,
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

const verifyOrDiagnose = (
  bytes: Buffer,
  { headers, request, webhook, receivedAt, remoteKey }: Delivery,
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
const getLateSeconds = (
  { scheme, dedupe }: CompiledWebhook,
  deliveryId: DeliveryId | undefined,
): number =>
  dedupe === 'body' || (dedupe === 'id' && deliveryId !== undefined) ? (scheme.lateSeconds ?? 0) : 0

type DeliveryId = {
  readonly id: string
  /** True when the signature covers the id, so that no one can send the same delivery under another. */
  readonly signed: boolean
}

/** The verified part of a delivery. */
type VerifiedDelivery = {
  readonly payload: Payload
  /** The id in a header that the signature covers, if there is one. */
  readonly signedId: string | undefined
  /** False for a webhook without a secret. */
  readonly isSigned: boolean
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
  verified?: VerifiedDelivery,
): DeliveryId | undefined => {
  // However long it is: no signature covers the other headers.
  if (verified?.signedId !== undefined) return { id: verified.signedId, signed: true }
  if (verified && deliveryId.body !== undefined) {
    const id = valueAt(verified.payload, deliveryId.body.split('.'))
    const text = typeof id === 'number' ? String(id) : id
    if (typeof text === 'string' && text !== '')
      return { id: shown(text), signed: verified.isSigned }
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
