import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net'
import { identifyListener } from '../../shared/client/client.ts'
import { findListeningProcess } from '../../shared/client/discovery.ts'
import type { Gateway } from '../../shared/config/schema.ts'
import { DoorwardError, systemCode } from '../../shared/errors.ts'
import type { Log } from '../log/log.ts'
import { headerValues } from './guard.ts'
import { problemMediaType, toProblem } from './problem.ts'
import { sendJson } from './respond.ts'

/** Where the daemon is reached: the main port, and the one that serves webhooks alone if there is one. */
export type Listeners = {
  readonly url: () => string
  /** Of the port for webhooks. */
  readonly publicUrl: () => string | undefined
  readonly port: () => number
  /** The addresses it is configured for. */
  readonly places: readonly Place[]
  /**
   * Listens where it does not yet. Throws `port-in-use` or `config-invalid`, and may listen on some of
   * them then.
   */
  readonly bind: (places: readonly Place[], apiToken: string, log: Log) => Promise<void>
  /** Goes on with a socket that listens at a place already. */
  readonly take: (place: Place, socket: NetServer, log: Log) => void
  /** Requests wait until they are answered by these. */
  readonly answer: (apps: Apps) => void
  /** The sockets that listen, for another process. */
  readonly sockets: () => ReadonlyMap<Place, Server>
  /**
   * Lets go of the sockets, which another process has by now. Connections that are there are served on,
   * each for one more answer. Resolves when all have ended, at the latest after so many milliseconds.
   */
  readonly leave: (limitMs: number) => Promise<void>
  /** Ends the connections that are left then, those under way after half a second. */
  readonly cut: () => void
  readonly close: () => Promise<void>
}

/** `host port`, as configured; where any port will do, with what it is for. */
export type Place = string

/** What answers at each of the two. */
export type Apps = { readonly app: RequestListener; readonly publicApp: RequestListener }

type Listener = {
  readonly place: Place
  readonly host: string
  readonly port: number
  readonly server: Server
}

/** None listens yet. */
export const createListeners = ({
  host,
  port,
  public_port: publicPort,
}: Gateway['server']): Listeners => {
  const addresses = new Map<keyof Apps, AddressInfo>()
  const urlAt = (app: keyof Apps): string =>
    getUrl(addresses.get(app) ?? { address: host, port: 0 })
  const taking: Promise<void>[] = []
  let isLeaving = false
  let handlers: Apps | undefined
  let begin = (): void => undefined
  const begun = new Promise<void>((resolve) => (begin = resolve))

  const listenerOn = (onPort: number, app: keyof Apps): Listener => {
    const server = createServer(limits)
    answerUnreadable(server)
    // It is asked for after the socket has been let go too.
    server.on('listening', () => {
      const address = getAddress(server)
      if (address) addresses.set(app, address)
    })
    server.on('request', (request, response) => {
      if (refusesMalformed(request, response)) return
      // Who comes again is to come to the other process.
      if (isLeaving) response.setHeader('connection', 'close')
      if (handlers) handlers[app](request, response)
      else void begun.then(() => handlers?.[app](request, response))
    })
    const place = onPort === 0 ? `${host} 0 ${app}` : `${host} ${onPort}`
    return { place, host, port: onPort, server }
  }
  const main = listenerOn(port, 'app')
  const forWebhooks = publicPort === undefined ? undefined : listenerOn(publicPort, 'publicApp')
  const all = forWebhooks ? [main, forWebhooks] : [main]
  const connections = ownConnectionLimit()
  // Whoever comes to the one cannot use up the connections of the other.
  if (connections !== undefined)
    for (const { server } of all) server.maxConnections = Math.floor(connections / all.length)
  const at = (wanted: Place): Listener => {
    const found = all.find(({ place }) => place === wanted)
    if (!found) throw new Error(`nothing is to listen at ${wanted}`)
    return found
  }

  return {
    url: () => urlAt('app'),
    publicUrl: () => forWebhooks && urlAt('publicApp'),
    port: () => addresses.get('app')?.port ?? 0,
    places: all.map(({ place }) => place),
    bind: async (places, apiToken, log) => {
      await Promise.all(taking)
      for (const place of places) {
        const { server, host, port } = at(place)
        if (server.listening) continue
        await listen(server, host, port, apiToken, log)
      }
    },
    take: (place, socket, log) => void taking.push(takeSocket(at(place).server, socket, log)),
    answer: (apps) => {
      handlers = apps
      begin()
    },
    sockets: () => new Map(all.map(({ place, server }) => [place, server])),
    leave: async (limitMs) => {
      isLeaving = true
      const ended = all.map(
        ({ server }) =>
          new Promise<void>((resolve) => {
            // Not that of HTTP, which ends connections on which a request may just be coming.
            NetServer.prototype.close.call(server, () => resolve())
          }),
      )
      const timer = setTimeout(() => {
        for (const { server } of all) server.closeAllConnections()
      }, limitMs)
      await Promise.all(ended)
      clearTimeout(timer)
    },
    cut: () => {
      for (const { server } of all) server.closeIdleConnections()
      setTimeout(() => {
        for (const { server } of all) server.closeAllConnections()
      }, 500).unref()
    },
    close: async () => {
      await Promise.all(all.map(({ server }) => closeServer(server)))
    },
  }
}

const limits = {
  headersTimeout: 10_000,
  // The whole request; the body alone has 15 s (see receive.ts).
  requestTimeout: 30_000,
  connectionsCheckingInterval: 1000,
  // Answered by `refusesMalformed`.
  requireHostHeader: false,
}

/** Starts to listen. Throws `port-in-use` with who holds the port, as far as it says so itself. */
const listen = async (
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
const takeSocket = async (server: Server, socket: NetServer, log: Log): Promise<void> => {
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
    identifyListener(`http://${bracketed(toLocalHost(host))}:${port}`, apiToken),
    findListeningProcess(port),
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
const closeServer = async (server: Server): Promise<void> => {
  if (!server.listening) return
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  server.closeIdleConnections()
  // Answers under way get a moment; a client that keeps its connection open does not keep us.
  const timer = setTimeout(() => server.closeAllConnections(), 500)
  await closed
  clearTimeout(timer)
}

/** Where a server listens; undefined while it does not. */
const getAddress = (server: Server): AddressInfo | undefined =>
  (server.address() as AddressInfo | null) ?? undefined

/**
 * The address local clients reach a listener at, by where it listens: as of `localhost` another program
 * could hold the other family, and a browser may go there.
 */
const getUrl = ({ address, port }: Pick<AddressInfo, 'address' | 'port'>): string =>
  `http://${bracketed(toLocalHost(address))}:${port}`

/** A listener on all addresses is reached over loopback by local clients. */
const toLocalHost = (host: string): string =>
  host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host

const bracketed = (host: string): string => (host.includes(':') ? `[${host}]` : host)

/*
 * Connections are open files, and a process may open only so many. Once none is left, libuv (1.46) turns
 * over whole cores while a connection waits, and no token file, configuration or agent can be opened any
 * more: whoever may connect could bring that about. So connections get a part of them, the rest is ours.
 */

/**
 * How many connections may be open at once, by the text of Linux' `/proc/self/limits`: three quarters of
 * what may be opened, but for 128. Undefined where the text says no number.
 */
export const connectionLimit = (limits: string): number | undefined => {
  const files = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Number.NaN)
  if (!Number.isFinite(files)) return undefined
  return Math.max(16, Math.min(Math.floor(files * 0.75), files - 128))
}

/** The same for this process; undefined where the system does not say, and then there is no limit. */
const ownConnectionLimit = (): number | undefined => {
  try {
    return connectionLimit(readFileSync('/proc/self/limits', 'utf8'))
  } catch {
    return undefined
  }
}

/*
 * What never becomes a request of the app is answered by Node itself, with a bare line. Here it is a problem
 * document like every other refusal; what is answered when, and that the connection ends, is as in Node.
 */

/**
 * Answers what cannot be read as a request, or does not come in time, on the connections of this server, and
 * has an `Expect` that Node does not know passed over.
 */
const answerUnreadable = (server: Server): void => {
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
const refusesMalformed = (request: IncomingMessage, response: ServerResponse): boolean => {
  const fault = findFault(request)
  if (fault === undefined) return false
  const problem = toProblem(new DoorwardError('request-invalid', fault))
  const headers = { 'Content-Type': problemMediaType, Connection: 'close' }
  sendJson(response, problem.status, problem, headers)
  return true
}

const findFault = (request: IncomingMessage): string | undefined => {
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
    return toText(new DoorwardError('headers-too-large', 'the headers are too large'))
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return toText(new DoorwardError('request-timeout', 'the request did not arrive in time'))
  return toText(new DoorwardError('request-invalid', 'this cannot be read as HTTP'))
}

/** A whole answer, as it goes over the connection. */
const toText = (error: DoorwardError): string => {
  const problem = toProblem(error)
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
