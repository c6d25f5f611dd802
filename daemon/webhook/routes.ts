import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Context, Middleware } from 'koa'
import { eventHeader } from '../../shared/api.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { Setup } from '../setup.ts'
import { type Accepted, type PipelineParts, acceptDelivery } from './pipeline.ts'

/** How long the rest of a refused body is read and thrown away, so that the sender sees the answer. */
const lingerMs = 2000

/** Seconds after which a sender may try again, for `Retry-After`. */
const retryAfterSeconds = '10'

/** Answers the paths of webhooks, before anything else is looked at; passes on every other path. */
export const serveWebhooks =
  (current: () => Setup, parts: PipelineParts): Middleware =>
  async (ctx, next) => {
    const setup = current()
    const webhook = setup.byPath.get(ctx.path)
    if (!webhook) return next()
    try {
      if (ctx.method !== 'POST') {
        ctx.set('Allow', 'POST')
        throw new DoorwardError('method-not-allowed', 'a webhook takes POST only')
      }
      const { text, ...accepted } = await acceptDelivery(ctx.req, webhook, setup, parts)
      if (text === undefined) {
        ctx.body = accepted
        ctx.status = 202
      } else answerText(ctx, text, accepted)
    } catch (error) {
      const retryAfter = error instanceof DoorwardError ? retryAfterOf(error) : undefined
      if (retryAfter !== undefined) ctx.set('Retry-After', retryAfter)
      if (!ctx.req.complete && !ctx.req.destroyed) endAfterAnswer(ctx.req, ctx.res)
      throw error
    }
    return undefined
  }

/** A plain 200 with this text and nothing else; id and status are in a header. */
const answerText = (ctx: Context, text: string, { id, status }: Omit<Accepted, 'text'>): void => {
  ctx.status = 200
  ctx.type = 'text/plain; charset=utf-8'
  ctx.set('X-Content-Type-Options', 'nosniff')
  ctx.set(eventHeader, `${id} ${status}`)
  ctx.body = text
}

const temporary = ['unavailable', 'queue-full', 'stopping']

const retryAfterOf = ({ code, retryAfterMs }: DoorwardError): string | undefined => {
  if (retryAfterMs !== undefined) return String(Math.max(1, Math.ceil(retryAfterMs / 1000)))
  return temporary.includes(code) ? retryAfterSeconds : undefined
}

/**
 * Ends the connection of a sender that goes on sending, but not at once: that would reset it, and the
 * sender would lose the answer. Not at all when the rest does arrive, as the connection can be used
 * again then.
 */
const endAfterAnswer = (request: IncomingMessage, response: ServerResponse): void => {
  // Node itself resets it at once when the sender asked for `Connection: close`.
  response.shouldKeepAlive = true
  const timer = setTimeout(() => request.socket.destroy(), lingerMs)
  request.once('close', () => clearTimeout(timer))
}
