import type { IncomingMessage } from 'node:http'
import type { EventRecord, Stage } from '../../shared/api/api.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { type CompiledWebhook, headersNamed } from './compiled-webhook.ts'
import { type Accepted, addRejected, type Delivery } from './delivery.ts'
import type { Engine } from './engine.ts'
import {
  answerUnsigned,
  answerWithoutRun,
  awaitOwnMessages,
  checkEvent,
  checkSignedTime,
  createEvents,
  decideOn,
  endOlder,
  holdFetched,
  limitRate,
  loadParser,
  parseBody,
  type PipelineParts,
  proveSender,
  queueEvents,
  receiveBody,
  type StepResult,
  verifySender,
} from './steps.ts'

/*
 * The story of one delivery:
 *
 *   receive (raw bytes) -> verify -> parse -> filter -> expand -> queue -> 202
 *                                                                   ... agent -> deliver
 *
 * The steps before the response are here and are quick; `events/runner.ts` runs the rest later. An unverified
 * sender learns nothing: all that could inform it comes after `verify`.
 */

/** One step of a delivery: a response ends it. Throws why the delivery is refused. */
type Step = {
  readonly stage: Stage
  readonly take: (delivery: Delivery, parts: PipelineParts) => StepResult | Promise<StepResult>
}

/** From the bytes of a verified delivery to its events in the queue. */
const whenVerified: readonly Step[] = [
  { stage: 'parse', take: parseBody },
  { stage: 'verify', take: checkSignedTime },
  { stage: 'verify', take: checkEvent },
  { stage: 'filter', take: decideOn },
  { stage: 'filter', take: endOlder },
  { stage: 'filter', take: limitRate },
  { stage: 'filter', take: answerWithoutRun },
  { stage: 'expand', take: createEvents },
  { stage: 'queue', take: queueEvents },
]

/** The steps of a delivery that was sent here. */
const whenSent: readonly Step[] = [
  { stage: 'receive', take: receiveBody },
  { stage: 'verify', take: awaitOwnMessages },
  { stage: 'verify', take: loadParser },
  { stage: 'verify', take: answerUnsigned },
  { stage: 'verify', take: proveSender },
  { stage: 'verify', take: verifySender },
  ...whenVerified,
]

/** The steps of a delivery that was read from the API of its sender. */
const whenFetched: readonly Step[] = [
  { stage: 'receive', take: holdFetched },
  { stage: 'verify', take: awaitOwnMessages },
  ...whenVerified,
]

/**
 * Takes one delivery as far as the queue, with one configuration from start to end. Throws why it is refused,
 * after adding that as an event.
 */
export const acceptDelivery = async (
  request: IncomingMessage,
  webhook: CompiledWebhook,
  engine: Engine,
  parts: PipelineParts,
): Promise<Accepted> => {
  const delivery = createDelivery(webhook, engine, request.rawHeaders, { request })
  return takeSteps(whenSent, delivery, parts)
}

/** A delivery as the API of its sender has it, which a login read over TLS. */
export type FetchedDelivery = {
  readonly rawHeaders: readonly string[]
  readonly bytes: Buffer
  /** Default: the API of its sender. */
  readonly source?: EventRecord['source']
  /** The id, if no header has one. */
  readonly deliveryId?: string
}

/**
 * Takes a delivery that was read from the API of its sender. No signature can be checked, as the API does not
 * have the bytes that were signed; all else is as for one that was sent here.
 */
export const acceptFetched = async (
  { rawHeaders, bytes, source = 'api', deliveryId }: FetchedDelivery,
  webhook: CompiledWebhook,
  engine: Engine,
  parts: PipelineParts,
): Promise<Accepted> =>
  takeSteps(
    whenFetched,
    createDelivery(webhook, engine, rawHeaders.map(toOneLine), {
      fetched: bytes,
      source,
      deliveryId,
    }),
    parts,
  )

/** As in a request of HTTP: the API may tell anything. */
const toOneLine = (header: string): string => header.replaceAll(/[\0\r\n]/g, ' ')

const createDelivery = (
  webhook: CompiledWebhook,
  engine: Engine,
  rawHeaders: readonly string[],
  given: Partial<Pick<Delivery, 'request' | 'fetched' | 'source' | 'deliveryId'>>,
): Delivery => ({
  webhook,
  engine,
  headers: headersNamed(rawHeaders, webhook.headerNames),
  receivedAt: new Date(),
  request: given.request,
  fetched: given.fetched,
  source: given.source,
  deliveryId: given.deliveryId,
  stage: 'receive',
  size: 0,
  body: undefined,
  proof: undefined,
  verified: undefined,
  read: undefined,
  decision: undefined,
  reply: undefined,
  due: [],
})

const takeSteps = async (
  steps: readonly Step[],
  delivery: Delivery,
  parts: PipelineParts,
): Promise<Accepted> => {
  try {
    for (const { stage, take } of steps) {
      delivery.stage = stage
      const taken = take(delivery, parts)
      const accepted = taken instanceof Promise ? await taken : taken
      if (accepted) return accepted
    }
    throw new DoorwardError('internal', 'a delivery without a response')
  } catch (error) {
    addRejected(delivery, error, parts)
    throw error
  } finally {
    delivery.body?.release()
  }
}
