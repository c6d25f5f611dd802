import { EventEmitter, once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Home } from '../../../shared/home/home.ts'
import {
  challengeHeader,
  toEndpoint,
  proofHeader,
  computeProof,
} from '../../../shared/client/identity.ts'
import { version } from '../../../shared/version.ts'
import { temporaryHome } from '../../support/temporary.ts'

export type Call = {
  readonly method: string
  readonly path: string
  readonly body: unknown
  readonly userAgent: string | undefined
  readonly lastEventId: string | undefined
}

export type ContractServer = {
  readonly home: Home
  readonly calls: readonly Call[]
  /** Waits for a call that fits, which may have come already. */
  readonly called: (fits: (call: Call) => boolean) => Promise<Call>
  readonly close: () => Promise<void>
}

/** Answers one call: a status and a document, or undefined to leave the request open. */
export type Answer = (
  call: Call,
  response: ServerResponse,
) => readonly [number, unknown] | undefined

const apiToken = 'a'.repeat(64)

/**
 * A server that speaks the daemon's side of the contract as a test tells it, for what a real daemon
 * does only with a provider on the internet, or never: late answers, text full of escape sequences.
 */
export const startContractServer = async (answer: Answer): Promise<ContractServer> => {
  const home = await temporaryHome()
  const calls: Call[] = []
  const came = new EventEmitter()
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const challenge = request.headers[challengeHeader]
    if (request.url === '/health' && typeof challenge === 'string') {
      const { localAddress, localPort } = request.socket
      const place = toEndpoint(localAddress, localPort)
      response.setHeader(proofHeader, computeProof(apiToken, challenge, place))
      response.end(JSON.stringify({ status: 'ok', name: 'doorward', version }))
      return
    }
    const body = await text(request)
    const call = {
      method: request.method ?? '',
      path: request.url ?? '',
      body: body === '' ? undefined : (JSON.parse(body) as unknown),
      userAgent: request.headers['user-agent'],
      lastEventId: request.headers['last-event-id']?.toString(),
    }
    calls.push(call)
    const given = answer(call, response)
    came.emit('call')
    if (!given) return
    const answered = given[1] === undefined ? '' : JSON.stringify(given[1])
    response.writeHead(given[0], {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(answered),
    })
    response.end(answered)
  }
  const server = createServer((request, response) => void handle(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await mkdir(home.run, { mode: 0o700 })
  await writeFile(home.apiToken, apiToken, { mode: 0o600 })
  const file = { pid: process.pid, url: `http://127.0.0.1:${port}`, version }
  await writeFile(home.daemonJson, JSON.stringify({ ...file, startedAt: new Date().toISOString() }))
  return {
    home,
    calls,
    called: async (fits) =>
      new Promise((resolve) => {
        const look = () => {
          const found = calls.find(fits)
          if (found) resolve(found)
          else came.once('call', look)
        }
        look()
      }),
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
