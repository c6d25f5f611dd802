import type { IncomingMessage, ServerResponse } from 'node:http'
import { eventHeader } from '../../shared/api/api.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { sendJson, sendProblem } from '../http/respond.ts'
import { batchResponse } from '../http/turn-batching.ts'
import type { Log } from '../log/log.ts'
import type { CompiledWebhook } from './compiled-webhook.ts'
import { acceptVisit, allowedMethods, noteNearMiss } from './visits.ts'
import type { Engine } from './engine.ts'
import type { Accepted } from './delivery.ts'
import { acceptDelivery } from './pipeline.ts'
import type { PipelineParts } from './steps.ts'

/** How long the rest of a refused body is read and discarded, so that the sender reads the response. */
const lingerMs = 2000

/** Seconds for `Retry-After` where nothing else is known. */
const retryAfterSeconds = '10'

/** The log for unexpected errors, and what is called with the milliseconds that each response took. */
export type Notes = { readonly log: Log; readonly answered: (ms: number) => void }

/** Handles a request for the path of a webhook; returns false, with nothing done, for any other. */
export type ServeWebhook = (request: IncomingMessage, response: ServerResponse) => boolean

/** Serves webhooks without Koa. A path is compared as it was sent, up to its query. */
export const serveWebhooks = (
  current: () => Engine,
  parts: PipelineParts,
  { log, answered }: Notes,
): ServeWebhook => {
  const serve = async (
    request: IncomingMessage,
    response: ServerResponse,
    webhook: CompiledWebhook,
    engine: Engine,
  ): Promise<void> => {
    const start = performance.now()
    const send = (respond: () => void) =>
      batchResponse(() => {
        respond()
        answered(performance.now() - start)
      })
    try {
      const accepted =
        request.method === 'POST'
          ? await acceptDelivery(request, webhook, engine, parts)
          : await acceptVisit(request, webhook, parts)
      send(() => sendAccepted(response, accepted))
    } catch (error) {
      const retryAfter = error instanceof DoorwardError ? getRetryAfter(error) : undefined
      if (retryAfter !== undefined) response.setHeader('Retry-After', retryAfter)
      if (isNotAllowed(error)) response.setHeader('Allow', allowedMethods(webhook))
      if (!request.complete && !request.destroyed) closeAfterResponse(request, response)
      send(() =>
        webhook.scheme.emptyRefusal && isUnsigned(error)
          ? response.writeHead(401, { 'Content-Length': 0 }).end()
          : sendProblem(response, error, { log, path: webhook.path }),
      )
    }
  }
  return (request, response) => {
    const engine = current()
    const path = parseUrlPath(request.url ?? '')
    const webhook = engine.byPath.get(path)
    // A feed reads its events itself: a request to its path is from someone else.
    if (webhook?.feed) return false
    if (!webhook) {
      const near = engine.nearest(path)
      if (near && !near.feed) noteNearMiss(near, path, parts)
      return false
    }
    void serve(request, response, webhook, engine)
    return true
  }
}

const parseUrlPath = (url: string): string => {
  const query = url.indexOf('?')
  return query === -1 ? url : url.slice(0, query)
}

const isNotAllowed = (error: unknown): boolean =>
  error instanceof DoorwardError && error.code === 'method-not-allowed'

const isUnsigned = (error: unknown): boolean =>
  error instanceof DoorwardError && error.code === 'signature-invalid'

/** 202 with JSON; where the sender requires another response, id and status are in a header. */
const sendAccepted = (response: ServerResponse, { id, status, reply, events }: Accepted): void => {
  if (!reply) return sendJson(response, 202, { id, status, events })
  const { code = 200, type = 'text/plain; charset=utf-8', text, headers } = reply
  response.writeHead(code, {
    ...(code !== 204 && { 'Content-Type': type, 'Content-Length': Buffer.byteLength(text) }),
    'X-Content-Type-Options': 'nosniff',
    ...headers,
    ...(id !== undefined && { [eventHeader]: `${id} ${status}` }),
  })
  response.end(text)
}

const temporary = ['unavailable', 'queue-full', 'stopping']

const getRetryAfter = ({ code, retryAfterMs }: DoorwardError): string | undefined => {
  if (retryAfterMs !== undefined) return String(Math.max(1, Math.ceil(retryAfterMs / 1000)))
  return temporary.includes(code) ? retryAfterSeconds : undefined
}

/**
 * Closes the connection of a sender that continues to send, but only after a while: closing it
 * immediately would reset it, and the sender would lose the response. If the rest of the body does
 * arrive, the connection stays open.
 */
const closeAfterResponse = (request: IncomingMessage, response: ServerResponse): void => {
  // With `Connection: close` from the sender, Node itself would reset it immediately.
  response.shouldKeepAlive = true
  const timer = setTimeout(() => request.socket.destroy(), lingerMs)
  request.once('close', () => clearTimeout(timer))
}
