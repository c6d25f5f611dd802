import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { whoAnswers } from '../shared/client.ts'
import { DoorwardError, systemCode } from '../shared/errors.ts'
import type { Log } from './log.ts'

/** Starts to listen. Throws `port-in-use` with who holds the port, as far as it says so itself. */
export const listen = async (
  server: Server,
  host: string,
  port: number,
  apiToken: string,
  log: Log,
): Promise<void> => {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen({ host, port, exclusive: true }, () => {
        server.removeListener('error', reject)
        resolve()
      })
    })
    // Too many open files refuse one connection; they must not end the daemon.
    server.on('error', (error) => log.error({ code: systemCode(error) }, 'cannot accept'))
  } catch (error) {
    const code = systemCode(error)
    if (code === 'EADDRINUSE') throw await portInUse(host, port, apiToken)
    if (code !== 'EACCES')
      throw new DoorwardError('config-invalid', `cannot listen on ${host}: ${code}`, {
        cause: error,
        hint: 'this machine has no such address: choose another with server.host',
      })
    throw new DoorwardError('port-in-use', `this user may not listen on port ${port}`, {
      cause: error,
      hint: 'choose one over 1023 with server.port or DOORWARD_PORT',
    })
  }
}

const portInUse = async (host: string, port: number, apiToken: string): Promise<DoorwardError> => {
  const occupant = await whoAnswers(`http://${bracketed(localOf(host))}:${port}`, apiToken)
  const isDefault = port === 18_789
  const who =
    // This home is locked by us: one that holds its token is the daemon of a copy of it.
    occupant === 'other-doorward' || occupant === 'ours'
      ? 'the doorward daemon of another home'
      : `another program${isDefault ? ' (port 18789 is the default of other gateways too)' : ''}`
  const free = port < 65_535 ? port + 1 : port - 1
  return new DoorwardError('port-in-use', `port ${port} is taken by ${who}`, {
    hint: `stop it, or choose another port: server.port in gateway.yaml, or DOORWARD_PORT=${free}`,
  })
}

/** Stops listening and ends every connection, those under way after half a second. */
export const closeServer = async (server: Server): Promise<void> => {
  if (!server.listening) return
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  server.closeIdleConnections()
  // Answers under way get a moment; a client that keeps its connection open does not keep us.
  const timer = setTimeout(() => server.closeAllConnections(), 500)
  await closed
  clearTimeout(timer)
}

/** The port that a server listens on, 0 while it does not. */
export const portOf = (server: Server): number =>
  (server.address() as AddressInfo | null)?.port ?? 0

/**
 * The address local clients reach a server at: of the family that it listens on, as of `localhost` another
 * program could hold the other one, and a browser may go there.
 */
export const urlOf = (host: string, server: Server): string => {
  const address = (server.address() as AddressInfo | null)?.address ?? host
  return `http://${bracketed(localOf(address))}:${portOf(server)}`
}

/** A listener on all addresses is reached over loopback by local clients. */
const localOf = (host: string): string =>
  host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host

const bracketed = (host: string): string => (host.includes(':') ? `[${host}]` : host)
