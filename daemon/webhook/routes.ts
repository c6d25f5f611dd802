import type { IncomingMessage, ServerResponse } from 'node:http'
import { eventHeader } from '../../shared/api.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { Log } from '../log/log.ts'
import { answerAtEndOfTurn } from '../http/turn-batching.ts'
import { answerJson, answerProblem, type ServeFirst } from '../http/respond.ts'
import type { Engine } from './engine.ts'
import { type Accepted, type PipelineParts, acceptDelivery } from './pipeline.ts'
import type { CompiledWebhook } from './compiled-webhook.ts'

/** How long the rest of a refused body is read and thrown away, so that the sender sees the answer. */
const lingerMs = 2000

/** Seconds after which a sender may try again, for `Retry-After`. */
const retryAfterSeconds = '10'

/** Who hears of unexpected errors, and how many milliseconds each answer took. */
export type Notes = { readonly log: Log; readonly answered: (ms: number) => void }

/**
 * What stands before the app: the path of a webhook is looked up once, and nothing of the local API is
 * run for it. A path is taken as it was sent, up to its query.
 */
export const serveWebhooks = (
  current: () => Engine,
  parts: PipelineParts,
  { log, answered }: Notes,
): ServeFirst => {
  const serve = async (
    request: IncomingMessage,
    response: ServerResponse,
    webhook: CompiledWebhook,
    setup: Engine,
  ): Promise<void> => {
    const start = performance.now()
    const send = (answer: () => void) =>
      answerAtEndOfTurn(() => {
        answer()
        answered(performance.now() - start)
      })
    try {
      if (request.method !== 'POST') {
        response.setHeader('Allow', 'POST')
        throw new DoorwardError('method-not-allowed', 'a webhook takes POST only')
      }
      const { id, status, text } = await acceptDelivery(request, webhook, setup, parts)
      send(() => {
        if (text === undefined) answerJson(response, 202, { id, status })
        else answerText(response, text, { id, status })
      })
    } catch (error) {
      const retryAfter = error instanceof DoorwardError ? getRetryAfter(error) : undefined
      if (retryAfter !== undefined) response.setHeader('Retry-After', retryAfter)
      if (!request.complete && !request.destroyed) endAfterAnswer(request, response)
      send(() => answerProblem(response, error, { log, path: webhook.path }))
    }
  }
  const kept: { last?: readonly [IncomingMessage, ServerResponse] } = {}
  return (request, response) => {
    const setup = current()
    const webhook = setup.byPath.get(parseUrlPath(request.url ?? ''))
    if (!webhook) return false
    // V8 throws away the code that it has made for objects of a sort once it finds none of them left, as when
    // it is quiet: without this one the first second of a burst is half as quick. No body hangs on it.
    kept.last = [request, response]
    void serve(request, response, webhook, setup)
    return true
  }
}

const parseUrlPath = (url: string): string => {
  const query = url.indexOf('?')
  return query === -1 ? url : url.slice(0, query)
}

/** A plain 200 with this text and nothing else; id and status are in a header. */
const answerText = (
  response: ServerResponse,
  text: string,
  { id, status }: Omit<Accepted, 'text'>,
): void => {
  response.writeHead(200, {
    'Content-Type': 'text/plain; charset=utf-8',
    'Content-Length': Buffer.byteLength(text),
    'X-Content-Type-Options': 'nosniff',
    [eventHeader]: `${id} ${status}`,
  })
  response.end(text)
}

const temporary = ['unavailable', 'queue-full', 'stopping']

const getRetryAfter = ({ code, retryAfterMs }: DoorwardError): string | undefined => {
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
