import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { DoorwardError, systemCode } from '../../shared/errors.ts'
import { answerJson } from './plain-answer.ts'
import { problemMediaType, problemOf } from './problem.ts'

/*
 * What never becomes a request of the app is answered by Node itself, with a bare line. Here it is a problem
 * document like every other refusal; what is answered when, and that the connection ends, is as in Node.
 */

/** Answers what cannot be read as a request, or does not come in time, on the connections of this server. */
export const answerUnreadable = (server: Server): void => {
  server.on('clientError', (error, socket: UnderWay) => {
    // In the middle of another answer it would be read as a part of that.
    // oxlint-disable-next-line no-underscore-dangle -- Node's own, and nothing else tells
    if (socket.writable && !socket._httpMessage?.headersSent) socket.write(answerTo(error))
    socket.destroy()
  })
}

/** Answers a request without `Host`, which HTTP/1.1 has to have (RFC 9112 section 3.2); true when it is one. */
export const refusesWithoutHost = (request: IncomingMessage, response: ServerResponse): boolean => {
  if (request.headers.host !== undefined || request.httpVersion === '1.0') return false
  const problem = problemOf(new DoorwardError('request-invalid', 'the request names no host'))
  const headers = { 'Content-Type': problemMediaType, Connection: 'close' }
  answerJson(response, problem.status, problem, headers)
  return true
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
