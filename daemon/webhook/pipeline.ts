import type { IncomingMessage } from 'node:http'
import type { Stage } from '../../shared/api.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { ByteBudget } from '../byte-budget.ts'
import type { EventStore } from '../events.ts'
import type { Log } from '../log.ts'
import type { Queue } from '../queue.ts'
import { deliveryIdOf } from './delivery-id.ts'
import { expand } from './expand.ts'
import { expandTargets } from './expand-targets.ts'
import { firstMismatch } from './filter.ts'
import { isPing } from './handshake.ts'
import { parse } from './parse.ts'
import type { ReadyWebhook } from './ready-webhook.ts'
import { receive } from './receive.ts'
import type { RunEvent } from './run-event.ts'
import { verify } from './verify.ts'

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
  readonly maxBodyBytes: number
  readonly budget: ByteBudget
  readonly queue: Queue
  readonly events: EventStore
  readonly runEvent: RunEvent
  /** True for an event about what we wrote ourselves: the loop guard. */
  readonly isOwnComment: (payload: unknown) => boolean
  readonly log: Log
}

export type Accepted = { readonly id: string; readonly status: 'accepted' | 'filtered' | 'ping' }

/** Takes one delivery as far as the queue. Throws what refuses it, after noting it as an event. */
export const acceptDelivery = async (
  request: IncomingMessage,
  webhook: ReadyWebhook,
  { maxBodyBytes, budget, queue, events, runEvent, isOwnComment, log }: PipelineParts,
): Promise<Accepted> => {
  const receivedAt = new Date()
  const { headers, headersDistinct } = request
  const deliveryId = deliveryIdOf(headersDistinct)
  let stage: Stage = 'receive'
  // A sender can declare more than a number holds exactly, and clients refuse a size that is none.
  let size = Math.min(Number(headers['content-length'] ?? 0) || 0, Number.MAX_SAFE_INTEGER)
  const known = () => ({
    webhook: webhook.path,
    agent: webhook.agentName,
    size,
    ...(deliveryId === undefined ? {} : { deliveryId }),
  })

  const pass = (status: 'filtered' | 'ping', detail: string): Accepted => {
    const { id } = events.add(receivedAt, { ...known(), state: 'filtered', detail })
    return { id, status }
  }

  try {
    const body = await receive(request, { maxBodyBytes, budget })
    try {
      size = body.bytes.length
      stage = 'verify'
      const verified = verify(body.bytes, headersDistinct, webhook.signature, webhook.keys)
      stage = 'parse'
      const payload = parse(verified, headers['content-type'], headers['content-encoding'])
      stage = 'filter'
      if (isPing(headersDistinct)) return pass('ping', 'the webhook is set up and its secret fits')
      if (isOwnComment(payload)) return pass('filtered', 'our own comment')
      const mismatch = firstMismatch(payload, webhook.filter)
      // The path is the owner's own word; the value, which is the sender's, is not shown.
      if (mismatch) return pass('filtered', `the filter on ${mismatch.text} does not match`)
      stage = 'expand'
      const prompt = expand(webhook.prompt, payload)
      const targets = expandTargets(webhook.targets, payload)
      stage = 'queue'
      // The prompt takes the place of the body, so the body's bytes are free for it.
      body.release()
      return {
        id: runEvent(queue, events, { webhook, receivedAt, known: known(), prompt, targets }),
        status: 'accepted',
      }
    } finally {
      body.release()
    }
  } catch (error) {
    const refused = error instanceof DoorwardError ? error : undefined
    const detail = refused?.localDetail ?? refused?.message
    const why = {
      state: 'rejected' as const,
      stage,
      code: refused?.code ?? 'internal',
      ...(detail === undefined ? {} : { detail }),
    }
    const { id } = events.add(receivedAt, { ...known(), ...why })
    log.info({ event: id, webhook: webhook.path, ...why }, 'event')
    throw error
  }
}
