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
import { problemMediaType, toProblem, sendJson } from './respond.ts'
import { withDeadline } from '../../shared/deadline.ts'

/** `host port`, as configured; for port 0 with what it is for. */
export type Place = string

/** The handlers of the main port, and of the port for webhooks alone. */
export type Apps = { readonly app: RequestListener; readonly publicApp: RequestListener }

type Listener = {
  readonly place: Place
  readonly host: string
  readonly port: number
  readonly server: Server
}

/** The main port, and the port that serves webhooks alone if one is configured. */
export class Listeners {
  readonly #host: string
  readonly #addresses = new Map<keyof Apps, AddressInfo>()
  readonly #all: readonly Listener[]
  readonly #hasPublicPort: boolean
  readonly #taking: Promise<void>[] = []
  /** Requests wait for the first handlers. */
  readonly #firstHandlers: Promise<void>
  #begin = (): void => undefined
  #handlers: Apps | undefined
  #isLeaving = false

  constructor({ host, port, public_port: publicPort }: Gateway['server']) {
    this.#host = host
    this.#firstHandlers = new Promise((resolve) => (this.#begin = resolve))
    this.#hasPublicPort = publicPort !== undefined
    const main = this.#create(port, 'app')
    this.#all = publicPort === undefined ? [main] : [main, this.#create(publicPort, 'publicApp')]
    // Clients of one port cannot use up the connections of the other.
    const connections = ownConnectionLimit()
    if (connections !== undefined)
      for (const { server } of this.#all)
        server.maxConnections = Math.floor(connections / this.#all.length)
  }

  readonly url = (): string => this.#urlOf('app')

  /** The URL of the port for webhooks. */
  readonly publicUrl = (): string | undefined =>
    this.#hasPublicPort ? this.#urlOf('publicApp') : undefined

  readonly port = (): number => this.#addresses.get('app')?.port ?? 0

  /** The configured addresses. */
  get places(): readonly Place[] {
    return this.#all.map(({ place }) => place)
  }

  /**
   * Listens at these places, unless it already does. Throws `port-in-use` or `config-invalid`, and may
   * listen at some of them then.
   */
  async bind(places: readonly Place[], apiToken: string, log: Log): Promise<void> {
    await Promise.all(this.#taking)
    for (const place of places) {
      const { server, host, port } = this.#at(place)
      if (!server.listening) await listen(server, host, port, apiToken, log)
    }
  }

  /** Uses a socket of another process that already listens at a place. */
  take(place: Place, socket: NetServer, log: Log): void {
    this.#taking.push(takeSocket(this.#at(place).server, socket, log))
  }

  /** Handles requests with these from now on. */
  answer(apps: Apps): void {
    this.#handlers = apps
    this.#begin()
  }

  /** The listening sockets, for another process. */
  sockets(): ReadonlyMap<Place, Server> {
    return new Map(this.#all.map(({ place, server }) => [place, server]))
  }

  /**
   * Closes the listening sockets, which another process has by now. Open connections get one more
   * response each. Resolves when all are closed, after `limitMs` milliseconds at most.
   */
  async leave(limitMs: number): Promise<void> {
    this.#isLeaving = true
    const closed = this.#all.map(
      ({ server }) =>
        new Promise<void>((resolve) => {
          // The `close` of HTTP would also close idle connections, on which a request may be arriving.
          NetServer.prototype.close.call(server, () => resolve())
        }),
    )
    const done = Promise.all(closed)
    await withDeadline(limitMs, done, async () => {
      this.#closeAllConnections()
      await done
    })
  }

  /** Closes the connections that are left after `leave`, those with a request in progress after 500 ms. */
  cut(): void {
    for (const { server } of this.#all) server.closeIdleConnections()
    setTimeout(() => this.#closeAllConnections(), closeDelayMs).unref()
  }

  async close(): Promise<void> {
    await Promise.all(this.#all.map(async ({ server }) => closeServer(server)))
  }

  #create(port: number, app: keyof Apps): Listener {
    const server = createServer(limits)
    answerUnreadable(server)
    // The address is needed after the socket is closed, too.
    server.on('listening', () => {
      const address = getAddress(server)
      if (address) this.#addresses.set(app, address)
    })
    server.on('request', (request, response) => {
      if (refusesMalformed(request, response)) return
      // The client's next connection is to reach the other process.
      if (this.#isLeaving) response.setHeader('connection', 'close')
      if (this.#handlers) this.#handlers[app](request, response)
      else void this.#firstHandlers.then(() => this.#handlers?.[app](request, response))
    })
    const place = port === 0 ? `${this.#host} 0 ${app}` : `${this.#host} ${port}`
    return { place, host: this.#host, port, server }
  }

  #at(wanted: Place): Listener {
    const found = this.#all.find(({ place }) => place === wanted)
    if (!found) throw new Error(`no listener is configured for ${wanted}`)
    return found
  }

  #urlOf(app: keyof Apps): string {
    return getUrl(this.#addresses.get(app) ?? { address: this.#host, port: 0 })
  }

  #closeAllConnections(): void {
    for (const { server } of this.#all) server.closeAllConnections()
  }
}

/** How long requests in progress may take when connections are closed, in milliseconds. */
const closeDelayMs = 500

const limits = {
  headersTimeout: 10_000,
  // The whole request; the body alone has 15 s (see receive.ts).
  requestTimeout: 30_000,
  connectionsCheckingInterval: 1000,
  // Answered by `refusesMalformed`.
  requireHostHeader: false,
}

/** Starts to listen. Throws `port-in-use` and names the program that has the port, where that is known. */
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
    logErrors(server, log)
  } catch (error) {
    const code = systemCode(error)
    if (code === 'EADDRINUSE') throw await portInUse(host, port, apiToken)
    if (code !== 'EACCES')
      throw new DoorwardError('config-invalid', `cannot listen on ${host}: ${code}`, {
        cause: error,
        hint: 'this machine does not have this address: choose another with server.host',
      })
    throw new DoorwardError('port-in-use', `this user may not listen on port ${port}`, {
      cause: error,
      hint: 'choose one over 1023 with server.port or DOORWARD_PORT',
    })
  }
}

/** Uses a socket that already listens. The error handlers are in place before it can accept anything. */
const takeSocket = async (server: Server, socket: NetServer, log: Log): Promise<void> => {
  const listening = once(server, 'listening')
  server.listen(socket)
  logErrors(server, log)
  await listening
}

/** Too many open files or connections make one connection fail, and must not stop the daemon. */
const logErrors = (server: Server, log: Log): void => {
  server.on('error', (error) => log.error({ code: systemCode(error) }, 'cannot accept'))
  let warnedAt = Number.NEGATIVE_INFINITY
  server.on('drop', () => {
    if (performance.now() - warnedAt < warnAgainMs) return
    warnedAt = performance.now()
    log.warn({ connections: server.maxConnections }, 'too many connections, new ones are closed')
  })
}

/** A flood must not fill the log. */
const warnAgainMs = 60_000

const portInUse = async (host: string, port: number, apiToken: string): Promise<DoorwardError> => {
  const [occupant, holder] = await Promise.all([
    identifyListener(`http://${bracketed(toLocalHost(host))}:${port}`, apiToken),
    findListeningProcess(port),
  ])
  // We have the lock of this home: a daemon with the same token runs in a copy of it.
  const isDoorward = occupant === 'other-doorward' || occupant === 'ours'
  const name = isDoorward ? 'the doorward daemon of another home' : holder?.name
  const who = `${name ?? 'another program'}${holder ? ` (pid ${holder.pid})` : ''}`
  const free = port < 65_535 ? port + 1 : port - 1
  const note = !isDoorward && port === 18_789 ? '18789 is the default port of OpenClaw too; ' : ''
  return new DoorwardError('port-in-use', `port ${port} is taken by ${who}`, {
    hint: `${note}stop it, or choose another port: server.port in gateway.yaml, or DOORWARD_PORT=${free}`,
    about: { port },
  })
}

/** Stops listening and closes all connections, those with a request in progress after 500 ms. */
const closeServer = async (server: Server): Promise<void> => {
  if (!server.listening) return
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  server.closeIdleConnections()
  await withDeadline(closeDelayMs, closed, async () => {
    server.closeAllConnections()
    await closed
  })
}

/** The address of a server; undefined while it does not listen. */
const getAddress = (server: Server): AddressInfo | undefined =>
  (server.address() as AddressInfo | null) ?? undefined

/**
 * The URL for local clients, with the address and not `localhost`: another program could have the port in
 * the other address family, and a browser may connect there.
 */
const getUrl = ({ address, port }: Pick<AddressInfo, 'address' | 'port'>): string =>
  `http://${bracketed(toLocalHost(address))}:${port}`

/** Local clients use loopback to reach a listener on all addresses. */
const toLocalHost = (host: string): string =>
  host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host

const bracketed = (host: string): string => (host.includes(':') ? `[${host}]` : host)

/*
 * Connections are open files, and their number is limited. At the limit libuv (1.46) uses whole cores while a
 * connection waits, and no token file, configuration or agent can be opened: any client could cause that. So
 * connections get a part of the files, and the rest is reserved.
 */

/**
 * How many connections may be open, from the text of Linux' `/proc/self/limits`: three quarters of the files,
 * and 128 files less than all at most. Undefined where the text has no number.
 */
export const connectionLimit = (limits: string): number | undefined => {
  const files = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Number.NaN)
  if (!Number.isFinite(files)) return undefined
  return Math.max(16, Math.min(Math.floor(files * 0.75), files - 128))
}

/** The same for this process; undefined, and then without a limit, on other systems. */
const ownConnectionLimit = (): number | undefined => {
  try {
    return connectionLimit(readFileSync('/proc/self/limits', 'utf8'))
  } catch {
    return undefined
  }
}

/*
 * Node answers what it cannot parse as a request with a bare line. Here the response is a problem document
 * like every other refusal; when it is sent, and that the connection closes, is as in Node.
 */

/**
 * Answers what cannot be parsed as a request, or does not arrive in time, and ignores an `Expect` that Node
 * does not know.
 */
const answerUnreadable = (server: Server): void => {
  server.on('clientError', (error, socket: ConnectionSocket) => {
    // In the middle of another response the client would read it as a part of that.
    // oxlint-disable-next-line no-underscore-dangle -- Node's own, and the only way to know
    if (socket.writable && !socket._httpMessage?.headersSent) socket.write(responseTo(error))
    socket.destroy()
  })
  // An expectation need not be met (RFC 9110 section 10.1.1).
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
}

/**
 * Refuses requests that Node accepts against RFC 9112: HTTP/1.1 without `Host` (section 3.2), and a body
 * with another transfer coding than chunked, of which Node decodes the chunks and ignores the rest (section
 * 6.1). True when it refused the request.
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

/** A connection with the response in progress, if any. */
type ConnectionSocket = Socket & { readonly _httpMessage?: ServerResponse | null }

const responseTo = (error: Error): string => {
  const code = systemCode(error)
  if (code === 'HPE_HEADER_OVERFLOW')
    return toText(new DoorwardError('headers-too-large', 'the headers are too large'))
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return toText(new DoorwardError('request-timeout', 'the request did not arrive in time'))
  return toText(new DoorwardError('request-invalid', 'this is not valid HTTP'))
}

/** A whole response, as text. */
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
