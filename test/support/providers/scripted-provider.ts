import { once } from 'node:events'
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Script = Readonly<
  Record<string, (response: ServerResponse, request: IncomingMessage, body: string) => void>
>

/** A provider that misbehaves as told: one handler per path, 404 for all others. */
export const startScriptedProvider = async (script: (origin: string) => Script) => {
  const requests: { readonly path: string; readonly body: string }[] = []
  let paths: Script = {}
  const server = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = []
      for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
      const body = Buffer.concat(chunks).toString()
      const path = request.url ?? ''
      requests.push({ path, body })
      const handler = paths[path]
      if (handler) handler(response, request, body)
      else response.writeHead(404).end()
    })()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  paths = script(origin)
  return {
    origin,
    requests,
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** Answers with a JSON document. */
export const sendJson = (response: ServerResponse, status: number, document: unknown): void => {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(document))
}
