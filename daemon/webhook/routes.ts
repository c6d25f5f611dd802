import type { IncomingMessage } from 'node:http'
import type { Middleware } from 'koa'
import { DoorwardError } from '../../shared/errors.ts'
import { type PipelineParts, acceptDelivery } from './pipeline.ts'
import type { ReadyWebhook } from './ready-webhook.ts'

/** How long the rest of a refused body is read and thrown away, so that the sender sees the answer. */
const lingerMs = 2000

/** Seconds after which a sender may try again, for `Retry-After`. */
const retryAfterSeconds = '10'

/** Answers the paths of webhooks, before anything else is looked at; passes on every other path. */
export const serveWebhooks =
  (byPath: ReadonlyMap<string, ReadyWebhook>, parts: PipelineParts): Middleware =>
  async (ctx, next) => {
    const webhook = byPath.get(ctx.path)
    if (!webhook) return next()
    try {
      if (ctx.method !== 'POST') {
        ctx.set('Allow', 'POST')
        throw new DoorwardError('method-not-allowed', 'a webhook takes POST only')
      }
      ctx.body = await acceptDelivery(ctx.req, webhook, parts)
      ctx.status = 202
    } catch (error) {
      if (error instanceof DoorwardError && isTemporary(error))
        ctx.set('Retry-After', retryAfterSeconds)
      if (!ctx.req.complete) endAfterAnswer(ctx.req)
      throw error
    }
    return undefined
  }

const isTemporary = ({ code }: DoorwardError): boolean =>
  code === 'unavailable' || code === 'queue-full' || code === 'stopping'

/** Closing at once would reset the connection, and the sender would lose the answer. */
const endAfterAnswer = (request: IncomingMessage): void => {
  const { socket } = request
  const timer = setTimeout(() => {
    // A sender that has ended its body may use the connection for its next delivery.
    if (!request.complete) socket.destroy()
  }, lingerMs)
  socket.once('close', () => clearTimeout(timer))
}
