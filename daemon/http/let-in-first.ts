import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import { hasAnswers } from './turn-batching.ts'
import { createFifo } from '../util/fifo.ts'

/*
 * Node (libuv 1.46) accepts one new connection in each turn of its loop. Of many who come at once, the last
 * would wait for as many turns as there are others, each of them as long as all who are in already take
 * with all that they ask: seconds, for some hundreds who ask again and again.
 */

/** For so long, in milliseconds, connections alone come in. */
const usualAloneMs = 50

/** And for no greater part of the time than this, however many rushes follow each other. */
const aloneShare = 1 / 20

/** How many requests are answered in a turn while they go on coming in. */
const atATime = 4

/** More requests do not wait: one connection may bring any number at once, and each is held in memory. */
const mostWaiting = 512

/**
 * Has requests answered by `serve`: at once, but while new connections come in, in turn after turn, none for
 * 50 ms and then a few in each, in the order they came, and all that wait as soon as a turn brings no new
 * connection. So turns are short meanwhile, whoever comes is soon in, and who goes on coming, or comes in rush
 * after rush, keeps nobody from being answered. No more than 512 wait: the next one has the first of them answered.
 */
export const letInFirst = (
  server: Server,
  serve: RequestListener,
  aloneMs = usualAloneMs,
): void => {
  const waiting = createFifo<readonly [IncomingMessage, ServerResponse]>()
  let areComing = false
  let hasOneCome = false
  let isRush = false
  let beganAt = 0
  let endedAt = 0
  let aloneLeftMs = aloneMs

  // Node's own, though its documentation does not have it: whether somebody who says that he sends no more is
  // still answered. Usually not, which tells us soon that a client has gone; whoever waits for an answer is.
  Object.defineProperty(server, 'httpAllowHalfOpen', {
    get: () => waiting.size() > 0 || hasAnswers(),
  })
  const serveNext = (): void => {
    const next = waiting.shift()
    if (!next) return
    const [request, response] = next
    // Who is gone by now would be waited for.
    if (!request.socket.destroyed) serve(request, response)
  }
  const mayBeServed = (): number => {
    if (!areComing) return waiting.size()
    return performance.now() - beganAt < aloneLeftMs ? 0 : atATime
  }
  const turn = (): void => {
    areComing = hasOneCome
    hasOneCome = false
    if (!areComing) end()
    for (let left = mayBeServed(); left > 0; left -= 1) serveNext()
    if (areComing) setImmediate(turn)
  }
  const begin = (): void => {
    areComing = true
    isRush = false
    beganAt = performance.now()
    aloneLeftMs = Math.min(aloneMs, aloneLeftMs + (beganAt - endedAt) * aloneShare)
    setImmediate(turn)
  }
  const end = (): void => {
    endedAt = performance.now()
    // Nobody has waited for one who comes alone.
    if (isRush) aloneLeftMs = Math.max(0, aloneLeftMs - (endedAt - beganAt))
  }
  server.on('connection', () => {
    hasOneCome = true
    if (areComing) isRush = true
    else begin()
  })
  server.on('request', (request, response) => {
    if (!areComing) return serve(request, response)
    waiting.add([request, response])
    if (waiting.size() > mostWaiting) serveNext()
  })
}
