import { testKeyHeader } from '../../shared/api/api.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { LoopGuard } from '../delivery/loop-guard.ts'
import type { Log } from '../log/log.ts'
import type { ByteBudget } from '../util/byte-budget.ts'
import type { CompiledRule } from './compiled-webhook.ts'
import { decide, type Facts, listEnded, type RunDecision } from './decide.ts'
import {
  type Accepted,
  addFiltered,
  addRejected,
  type ContactParts,
  type Delivery,
  type DueEvent,
  type EventOfRule,
  type Status,
} from './delivery.ts'
import type { SeenDeliveries } from './dedupe.ts'
import { checkEventName } from './event-name.ts'
import { checkBodyTimestamp, getLateSeconds } from './read-delivery.ts'
import { createEvent } from './events/accepted-event.ts'
import type { KeptPayloads } from './events/kept-payloads.ts'
import { loadMultipart } from './forms.ts'
import { isMultipart } from './body.ts'
import type { DeliveryWaiters } from './payload-shape.ts'
import type { RateLimits } from './rate-limit.ts'
import { readDelivery } from './read-delivery.ts'
import { holdBytes, receive } from './receive.ts'
import { formatMaxRuns, type RunBudgets } from './rules/budgets.ts'
import { getEventNames } from './rules/choose.ts'
import { toWhoRequest } from './rules/who.ts'
import {
  acceptHandshake,
  confirmSubscription,
  describeHandshake,
} from './senders/accept-handshake.ts'
import { findUnsignedHandshake } from './senders/handshakes-unsigned.ts'
import { getReply, type Handshake } from './senders/handshakes.ts'
import type { RunPressed } from './signs/again.ts'
import { toCheckRequest, toConclusion } from './signs/check.ts'
import { prove } from './senders/prove.ts'
import type { RemoteKeys } from './senders/remote-keys.ts'
import type { TestKeys } from './senders/test-keys.ts'
import type { DiagnoseRefusal } from './signatures/diagnosis.ts'
import { trustRead, type VerifiedBody, verify } from './signatures/verify.ts'

/*
 * The steps of `pipeline.ts`, in their order. Each reads what the steps before it have put into the delivery.
 */

export type PipelineParts = ContactParts &
  Facts & {
    readonly remoteKeys: RemoteKeys
    readonly testKeys: TestKeys
    readonly budget: ByteBudget
    readonly budgets: RunBudgets
    /** Under which event name each signed body came, in place of the id of an event. */
    readonly eventNames: SeenDeliveries
    readonly rateLimits: RateLimits
    readonly learners: DeliveryWaiters
    readonly diagnose: DiagnoseRefusal
    readonly loopGuard: LoopGuard
    readonly runPressed: RunPressed
    /** For another run under another definition. */
    readonly payloads: KeptPayloads
    readonly log: Pick<Log, 'warn'>
  }

/** A response ends the delivery. */
export type StepResult = Accepted | undefined

/** Returns the finding of an earlier step. */
const required = <Value>(value: Value | undefined): Value => {
  if (value === undefined) throw new DoorwardError('internal', 'a step of a delivery is missing')
  return value
}

export const receiveBody = async (delivery: Delivery, parts: PipelineParts): Promise<undefined> => {
  const { headers, engine } = delivery
  const declared = Number(headers['content-length']?.[0])
  // A sender can declare more than a safe integer, which the schema of events does not allow.
  delivery.size = Math.min(declared || 0, Number.MAX_SAFE_INTEGER)
  const limits = { declared, maxBodyBytes: engine.maxBodyBytes, budget: parts.budget }
  delivery.body = await receive(required(delivery.request), limits)
  delivery.size = delivery.body.bytes.length
}

export const holdFetched = (delivery: Delivery, { budget }: PipelineParts): undefined => {
  const bytes = required(delivery.fetched)
  delivery.size = bytes.length
  delivery.body = holdBytes(bytes, { maxBodyBytes: delivery.engine.maxBodyBytes, budget })
  setVerified(delivery, trustRead(bytes), false)
}

const setVerified = (delivery: Delivery, body: VerifiedBody, signed: boolean): void => {
  const { webhook, headers, receivedAt, source, deliveryId } = delivery
  delivery.verified = { webhook, headers, receivedAt, body, signed, source, deliveryId }
}

/** Comes before verification, so that an unverified sender waits like any other. */
export const awaitOwnMessages = (
  { webhook }: Delivery,
  { loopGuard }: PipelineParts,
): Promise<undefined> | undefined =>
  ['slack', 'jira'].includes(webhook.scheme.name)
    ? loopGuard.posted()?.then(() => undefined)
    : undefined

/** Answers a handshake that no signature covers. */
export const answerUnsigned = (
  delivery: Delivery,
  parts: PipelineParts,
): Promise<Accepted> | undefined => {
  const { webhook } = delivery
  if (!webhook.hasUnsignedPost) return undefined
  const handshake = findUnsignedHandshake(webhook, toRequest(delivery))
  return handshake && acceptHandshake(webhook, handshake, parts)
}

const toRequest = ({ request, headers, body }: Delivery) => ({
  method: 'POST',
  url: required(request).url ?? '',
  headers,
  bytes: required(body).bytes,
})

/** Loads the parser of multipart bodies, as a token or a signature may be a field of one. */
export const loadParser = ({ headers }: Delivery): Promise<undefined> | undefined =>
  isMultipart(headers['content-type']?.[0]) ? loadMultipart().then(() => undefined) : undefined

/** Verifies the JWT of a sender that sends one, and finds the public key of one that signs with a key pair. */
export const proveSender = (
  delivery: Delivery,
  parts: PipelineParts,
): Promise<undefined> | undefined => {
  const { webhook, headers, receivedAt, body } = delivery
  const { remoteKeys, testKeys } = parts
  const testKey = testKeys.take(webhook.path, headers[testKeyHeader]?.[0])
  const { bytes } = required(body)
  return prove(webhook.verifier, {
    headers,
    bytes,
    nowMs: receivedAt.getTime(),
    remoteKeys,
    testKey,
  })?.then(
    (proof) => {
      delivery.proof = proof
      return undefined
    },
    (error: unknown) => {
      throw explainRefusal(error, delivery, parts)
    },
  )
}

export const verifySender = (delivery: Delivery, parts: PipelineParts): undefined => {
  const { headers, webhook, receivedAt, proof } = delivery
  const request = required(delivery.request)
  const { bytes } = required(delivery.body)
  try {
    const line = proof ? { method: 'POST', url: request.url, proof } : request
    const body = verify(bytes, headers, webhook.verifier, receivedAt.getTime(), line)
    setVerified(delivery, body, webhook.verifier !== 'none')
  } catch (error) {
    throw explainRefusal(error, delivery, parts)
  }
}

const explainRefusal = (error: unknown, delivery: Delivery, { diagnose }: PipelineParts) => {
  const { webhook, receivedAt } = delivery
  const request = required(delivery.request)
  const { bytes } = required(delivery.body)
  return diagnose(error, bytes, request.headersDistinct, webhook, receivedAt.getTime(), request)
}

export const parseBody = (delivery: Delivery): undefined => {
  delivery.read = readDelivery(required(delivery.verified))
}

/** The last part of verification, for a sender that signs a time in the body. */
export const checkSignedTime = ({ webhook, receivedAt, read }: Delivery): undefined => {
  const { signed, payload, deliveryId } = required(read)
  if (!signed) return
  const lateSeconds = getLateSeconds(webhook, deliveryId)
  checkBodyTimestamp(payload, webhook.scheme, receivedAt.getTime(), lateSeconds)
}

/** The last part of verification, where no signature covers the name of the event. */
export const checkEvent = ({ read }: Delivery, { eventNames }: PipelineParts): undefined => {
  const found = required(read)
  if (found.signed) checkEventName(found, eventNames, performance.now())
}

export const decideOn = (delivery: Delivery, parts: PipelineParts): undefined => {
  delivery.decision = decide(required(delivery.read), parts, performance.now())
}

/** Ends what waits or runs for the key of this delivery, where `cancel_on` of a rule names its event. */
export const endOlder = ({ engine, read, decision }: Delivery): undefined => {
  const { kind } = required(decision)
  if (kind !== 'run' && kind !== 'filtered') return
  for (const { coalesced, name } of listEnded(required(read)))
    engine.runEvent.endCoalesced(coalesced, name)
}

/** A repeated delivery does not use up the sender's rate. */
export const limitRate = ({ webhook, decision }: Delivery, parts: PipelineParts): undefined => {
  const found = required(decision)
  const isRepeat = found.kind === 'run' ? found.isRepeat : found.kind === 'duplicate'
  if (webhook.rateLimit && !isRepeat)
    parts.rateLimits.count(webhook.path, webhook.rateLimit, performance.now())
}

const toAccepted = ({ reply }: Delivery, id: string, status: Status): Accepted =>
  reply ? { id, status, reply } : { id, status }

/** Answers a delivery that runs no agent. */
export const answerWithoutRun = (
  delivery: Delivery,
  parts: PipelineParts,
): Accepted | undefined => {
  const { webhook, headers } = delivery
  const { payload } = required(delivery.read)
  const decision = required(delivery.decision)
  if (decision.kind === 'handshake') return answerHandshake(delivery, decision.handshake, parts)
  delivery.reply = getReply(webhook.scheme, headers, payload)
  const { events, learners } = parts
  if (decision.kind === 'pressed') {
    const { detail, event: eventId } = decision
    const about = { event: eventId }
    const id = addFiltered(delivery, { state: 'filtered', detail, about }, parts.events)
    parts.runPressed({ eventId, id, read: required(delivery.read) })
    return toAccepted(delivery, id, 'filtered')
  }
  if (decision.kind === 'own') {
    const id = addFiltered(delivery, { state: 'filtered', detail: decision.detail }, events)
    return toAccepted(delivery, id, 'filtered')
  }
  learners.show(webhook.path, payload, () => getEventNames(webhook.scheme, headers, payload))
  if (decision.kind === 'run') return undefined
  const { kind: state, detail } = decision
  const event = decision.kind === 'duplicate' ? decision.of[0] : undefined
  const id = addFiltered(
    delivery,
    { state, detail, about: event === undefined ? undefined : { event } },
    events,
  )
  return toAccepted(delivery, id, state)
}

const answerHandshake = (
  delivery: Delivery,
  handshake: Handshake,
  parts: PipelineParts,
): Accepted => {
  const { webhook, headers } = delivery
  const { status, reply, confirm } = handshake
  delivery.reply = reply ?? getReply(webhook.scheme, headers, required(delivery.read).payload)
  const detail = describeHandshake(handshake, webhook)
  const id = addFiltered(delivery, { state: 'filtered', detail }, parts.events)
  if (confirm !== undefined && webhook.confirm) confirmSubscription(id, confirm, parts)
  return toAccepted(delivery, id, status)
}

/**
 * Makes the events of the rules that are due. A template that cannot be filled rejects its own rule alone;
 * throws the reason where no rule is left.
 */
export const createEvents = (delivery: Delivery, parts: PipelineParts): undefined => {
  const read = required(delivery.read)
  const { due } = toRun(delivery)
  const made: DueEvent[] = []
  const failed: { readonly rule: CompiledRule; readonly error: DoorwardError }[] = []
  for (const rule of due)
    try {
      made.push({ rule, event: createEvent(rule, read) })
    } catch (error) {
      if (!(error instanceof DoorwardError)) throw error
      failed.push({ rule, error })
    }
  if (failed[0] && made.length === 0) throw failed[0].error
  for (const { rule, error } of failed) addRejected(delivery, error, parts, rule)
  delivery.due = made
}

const toRun = ({ decision }: Delivery): RunDecision =>
  required(decision?.kind === 'run' ? decision : undefined)

/** Puts the events into the queue, counts the runs, and keeps what another run needs. */
export const queueEvents = async (delivery: Delivery, parts: PipelineParts): Promise<Accepted> => {
  const { due, engine, body, headers, verified } = delivery
  const { runEvent } = engine
  // The prompts replace the body, whose bytes become free for them. What another machine has to confirm keeps
  // both until then.
  if (!runEvent.needsConfirmation) body?.release()
  const placed = await runEvent.accept(due.map(({ event }) => event))
  const accepted: string[] = []
  const events: EventOfRule[] = placed.map(({ id, status }, index) => {
    const rule = due[index]?.rule
    if (rule && status === 'accepted') {
      accepted.push(id)
      if (rule.maxRuns) parts.budgets.count(rule, performance.now())
    }
    return { id, status, rule: rule?.name }
  })
  parts.payloads.keep(accepted, { body: required(verified).body, headers })
  const { overBudget, overspent, outdated } = toRun(delivery)
  for (const rule of overBudget) events.push(addOverBudget(delivery, rule, parts))
  const passed = [
    ...overspent.map((one) => ({ ...one, code: 'over-budget' as const })),
    ...outdated.map((one) => ({ ...one, code: 'superseded' as const })),
  ]
  for (const { rule, why, code } of passed) {
    const end = { state: 'filtered', code, detail: why } as const
    const id = addFiltered(delivery, end, parts.events, rule)
    if (code === 'over-budget') skipCheck(delivery, rule, id)
    events.push({ id, status: 'filtered', rule: rule.name })
  }
  const [{ id, status } = { id: '', status: 'accepted' as const }] = events
  const answer = toAccepted(delivery, id, status)
  return events.length > 1 ? { ...answer, events } : answer
}

/** Adds the event of a rule that has used up its `max_runs`, which the log says once. */
const addOverBudget = (
  delivery: Delivery,
  rule: CompiledRule,
  { events, budgets, log }: PipelineParts,
): EventOfRule => {
  const { path, name, maxRuns } = rule
  const detail = `the ${maxRuns ? formatMaxRuns(maxRuns) : 'max_runs'} is used up`
  const code = 'over-budget'
  const id = addFiltered(delivery, { state: 'filtered', code, detail }, events, rule)
  skipCheck(delivery, rule, id)
  if (budgets.noteFiltered(rule)) log.warn({ event: id, webhook: path, rule: name, code }, detail)
  return { id, status: 'filtered', rule: name }
}

/** Shows at its commit that a rule did not run, as what it may cost is used up. */
const skipCheck = (delivery: Delivery, rule: CompiledRule, id: string): void => {
  const read = required(delivery.read)
  const check = toWhoRequest(rule, read) ? undefined : toCheckRequest(rule, read)
  const end = { state: 'filtered', code: 'over-budget' } as const
  if (check) delivery.engine.signs.skip(id, check, toConclusion(end, undefined))
}
