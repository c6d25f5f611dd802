import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { DoorwardError, systemCode } from '../../shared/errors.ts'
import { headerValues } from './header-values.ts'
import { answerJson } from './plain-answer.ts'
import { problemMediaType, problemOf } from './problem.ts'

/*
 * What never becomes a request of the app is answered by Node itself, with a bare line. Here it is a problem
 * document like every other refusal; what is answered when, and that the connection ends, is as in Node.
 */

/**
 * Answers what cannot be read as a request, or does not come in time, on the connections of this server, and
 * has an `Expect` that Node does not know passed over.
 */
export const answerUnreadable = (server: Server): void => {
  server.on('clientError', (error, socket: UnderWay) => {
    // In the middle of another answer it would be read as a part of that.
    // oxlint-disable-next-line no-underscore-dangle -- Node's own, and nothing else tells
    if (socket.writable && !socket._httpMessage?.headersSent) socket.write(answerTo(error))
    socket.destroy()
  })
  // Nobody has to be refused for what he hopes of the answer (RFC 9110 section 10.1.1).
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
}

/**
 * Answers a request that Node lets through though HTTP does not: one of HTTP/1.1 without `Host` (RFC 9112
 * section 3.2), and one whose body is coded in another way than in chunks, of which Node takes the chunks away
 * alone and says nothing of the rest (section 6.1). True when it was one of these.
 */
export const refusesMalformed = (request: IncomingMessage, response: ServerResponse): boolean => {
  const fault = faultOf(request)
  if (fault === undefined) return false
  const problem = problemOf(new DoorwardError('request-invalid', fault))
  const headers = { 'Content-Type': problemMediaType, Connection: 'close' }
  answerJson(response, problem.status, problem, headers)
  return true
}

const faultOf = (request: IncomingMessage): string | undefined => {
  if (headerValues(request, 'host').length === 0 && request.httpVersion !== '1.0')
    return 'the request names no host'
  const codings = headerValues(request, 'transfer-encoding')
  if (codings.length === 0 || codings.join(', ').toLowerCase() === 'chunked') return undefined
  return 'the body has a transfer coding other than chunked'
}

/** With the answer that is under way, if any. */
type UnderWay = Socket & { readonly _httpMessage?: ServerResponse | null }

const answerTo = (error: Error): string => {
  const code = systemCode(error)
  if (code === 'HPE_HEADER_OVERFLOW')
    return textOf(new DoorwardError('headers-too-large', 'the headers are too large'))
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return textOf(new DoorwardError('request-timeout', 'the request did not arrive in time'))
  return textOf(new DoorwardError('request-invalid', 'this cannot be read as HTTP'))
}

/** A whole answer, as it goes over the connection. */
const textOf = (error: DoorwardError): string => {
  const problem = problemOf(error)
  const body = JSON.stringify(problem)
  return [
    `HTTP/1.1 ${problem.status} ${problem.title}`,
    'Connection: close',
    `Content-Type: ${problemMediaType}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    '',
    body,
  ].join('\r\n')
}
