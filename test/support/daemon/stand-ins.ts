import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo, Server, Socket } from 'node:net'
import { DoorwardError, type ErrorCode } from '../../../shared/errors.ts'
import type { Home } from '../../../shared/home/home.ts'
import {
  challengeHeader,
  toEndpoint,
  proofHeader,
  computeProof,
} from '../../../shared/client/identity.ts'
import { temporaryHome } from '../temporary.ts'

/** The token of the homes of `homeWith`. */
export const apiToken = 'the-token-of-this-home-0123456789abcdef'

/** A home whose `daemon.json` names this address, this process, and this version. */
export const homeWith = async (url: string, pid = 1, version = '1'): Promise<Home> => {
  const home = await temporaryHome()
  await mkdir(home.run, { mode: 0o700 })
  await writeFile(home.daemonJson, JSON.stringify({ pid, url, version, startedAt: '' }))
  await writeFile(home.apiToken, `${apiToken}\n`, { mode: 0o600 })
  return home
}

/** Answers the challenge of a request, as the daemon with this token does. */
export const prove = (
  request: IncomingMessage,
  response: ServerResponse,
  token = apiToken,
): void => {
  const { localAddress, localPort } = request.socket
  const challenge = String(request.headers[challengeHeader])
  response.setHeader(
    proofHeader,
    computeProof(token, challenge, toEndpoint(localAddress, localPort)),
  )
}

/** Holds that this is refused with this code, and that the token is told to nobody. */
export const refused = async (tried: Promise<unknown>, code: ErrorCode): Promise<void> =>
  assert.rejects(tried, (error: unknown) => {
    assert.ok(error instanceof DoorwardError, String(error))
    assert.equal(error.code, code, error.message)
    assert.doesNotMatch(`${error.message} ${error.hint}`, new RegExp(apiToken))
    return true
  })

/**
 * Listens on a port, on a free one unless told, for the tests of a `describe`, in which it is called; their
 * end ends the servers and all connections. Gives back the address.
 */
export const listensUntilTheEnd = (): ((server: Server, port?: number) => Promise<string>) => {
  const servers: Server[] = []
  const sockets = new Set<Socket>()
  after(() => {
    for (const socket of sockets) socket.destroy()
    for (const server of servers) server.close()
  })
  return async (server, port = 0) => {
    servers.push(server)
    server.on('connection', (socket: Socket) => {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.once('close', () => sockets.delete(socket))
    })
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }
}
