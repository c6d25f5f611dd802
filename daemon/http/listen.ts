import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo, Server as NetServer } from 'node:net'
import { whoAnswers } from '../../shared/client/client.ts'
import { DoorwardError, systemCode } from '../../shared/errors.ts'
import { portHolder } from '../../shared/client/discovery.ts'
import type { Log } from '../log/log.ts'

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
    goOn(server, log)
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

/** Listens on with a socket that does already, before it can accept anything in this process. */
export const takeSocket = async (server: Server, socket: NetServer, log: Log): Promise<void> => {
  const listening = once(server, 'listening')
  server.listen(socket)
  goOn(server, log)
  await listening
}

/** Too many open files or connections refuse one connection; they must not end the daemon. */
const goOn = (server: Server, log: Log): void => {
  server.on('error', (error) => log.error({ code: systemCode(error) }, 'cannot accept'))
  let saidAt = Number.NEGATIVE_INFINITY
  server.on('drop', () => {
    if (performance.now() - saidAt < sayAgainMs) return
    saidAt = performance.now()
    log.warn({ connections: server.maxConnections }, 'too many connections, new ones are closed')
  })
}

/** A flood must not fill the log. */
const sayAgainMs = 60_000

const portInUse = async (host: string, port: number, apiToken: string): Promise<DoorwardError> => {
  const [occupant, holder] = await Promise.all([
    whoAnswers(`http://${bracketed(localOf(host))}:${port}`, apiToken),
    portHolder(port),
  ])
  // This home is locked by us: one that holds its token is the daemon of a copy of it.
  const isDoorward = occupant === 'other-doorward' || occupant === 'ours'
  const named = holder && (isDoorward ? `pid ${holder.pid}` : `${holder.name}, pid ${holder.pid}`)
  const who = `${isDoorward ? 'the doorward daemon of another home' : 'another program'}${named ? ` (${named})` : ''}`
  const free = port < 65_535 ? port + 1 : port - 1
  const note = !isDoorward && port === 18_789 ? '18789 is the default port of OpenClaw too; ' : ''
  return new DoorwardError('port-in-use', `port ${port} is taken by ${who}`, {
    hint: `${note}stop it, or choose another port: server.port in gateway.yaml, or DOORWARD_PORT=${free}`,
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

/** Where a server listens; undefined while it does not. */
export const addressOf = (server: Server): AddressInfo | undefined =>
  (server.address() as AddressInfo | null) ?? undefined

/**
 * The address local clients reach a listener at, by where it listens: as of `localhost` another program
 * could hold the other family, and a browser may go there.
 */
export const urlOf = ({ address, port }: Pick<AddressInfo, 'address' | 'port'>): string =>
  `http://${bracketed(localOf(address))}:${port}`

/** A listener on all addresses is reached over loopback by local clients. */
const localOf = (host: string): string =>
  host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host

const bracketed = (host: string): string => (host.includes(':') ? `[${host}]` : host)
