import { once } from 'node:events'
import {
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
  createServer,
} from 'node:http'
import type { AddressInfo } from 'node:net'

export type Recorded = {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The body as JSON or as a form, by its content type. */
  readonly fields: Readonly<Record<string, unknown>>
}

export type Answer = (
  response: ServerResponse,
  recorded: Recorded,
  request: IncomingMessage,
) => void | Promise<void>

/** A server that plays the API of a target: it writes down what comes, and answers as it is told. */
export type TargetServer = {
  readonly origin: string
  readonly requests: Recorded[]
  /** How to answer the next requests, in turn; then as by default. */
  readonly next: (...answers: Answer[]) => void
  readonly close: () => void
}

export const startTargetServer = async (usual: Answer = json(200, {})): Promise<TargetServer> => {
  const requests: Recorded[] = []
  const answers: Answer[] = []
  const server = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = []
      for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
      const text = Buffer.concat(chunks).toString()
      const { method = '', url = '', headers } = request
      const recorded = { method, path: url, headers, text, fields: fieldsOf(text, headers) }
      requests.push(recorded)
      await (answers.shift() ?? usual)(response, recorded, request)
    })().catch(() => undefined)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    next: (...more) => answers.push(...more),
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

const fieldsOf = (text: string, headers: IncomingHttpHeaders): Record<string, unknown> => {
  const type = headers['content-type'] ?? ''
  if (type.startsWith('application/json')) return JSON.parse(text) as Record<string, unknown>
  if (type.startsWith('application/x-www-form-urlencoded'))
    return Object.fromEntries(new URLSearchParams(text))
  return {}
}

/** A JSON answer. */
export const json =
  (status: number, document: unknown, headers: Readonly<Record<string, string>> = {}): Answer =>
  (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    response.end(JSON.stringify(document))
  }

/** Takes the request and breaks the connection off without an answer. */
export const reset: Answer = (_response, _recorded, request) => {
  request.socket.resetAndDestroy()
}

/** Takes the request and never answers. */
export const hang: Answer = () => undefined
