import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  createServer,
  type IncomingMessage,
  request as httpRequest,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo, Server, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { toHost } from '../../../shared/agents/network.ts'
import { constantTimeEqual } from '../../../shared/constant-time.ts'
import { toPlainLine } from '../../../shared/text.ts'
import { dial, type Reach, Refused } from './reach.ts'

/*
 * The proxy of one run: CONNECT (RFC 9110 section 9.3.6) and requests with a whole URL (section 7.1). It resolves
 * names and connects from outside of the sandbox, and names what it has refused.
 */

const maxConnections = 256
const maxRefused = 20
const maxNameLength = 100

/** Headers of one connection (RFC 9110 section 7.6.1), and those for a proxy. */
const hopByHop = /^(connection|proxy-.*|keep-alive|te|trailer|transfer-encoding|upgrade)$/i

export class AgentProxy {
  readonly #reach: Reach
  readonly #sockets = new Set<Duplex>()
  readonly #listeners = new Set<Server>()
  readonly #refused = new Set<string>()
  /** Connections that are being made: the client of one may have gone. */
  #dialing = 0
  #isClosed = false
  /** What a client on the machine's own loopback has to say; a sandbox with a network of its own needs none. */
  #password: string | undefined
  readonly #http = createServer({ maxHeaderSize: 32 * 1024 }, (request, response) => {
    void this.#forward(request, response)
  }).on('connect', (request, socket, head) => void this.#tunnel(request, socket, head))

  constructor(reach: Reach) {
    this.#reach = reach
  }

  /** Serves what connects to this listener; to the port of the same number on this machine where it has one. */
  accept(listener: Server, port?: number): void {
    this.#listeners.add(listener)
    listener.on('error', () => undefined)
    listener.on('connection', (socket: Socket) => {
      socket.on('error', () => undefined)
      if (this.#sockets.size + this.#dialing >= maxConnections) socket.destroy()
      else if (port === undefined) this.#http.emit('connection', this.#hold(socket))
      else void this.#pass(this.#hold(socket), port)
    })
  }

  /** Listens on this machine, for a sandbox that shares its network; returns the URL, with a password. */
  async listen(): Promise<URL> {
    const { createServer: createListener } = await import('node:net')
    const listener = createListener().listen(0, '127.0.0.1')
    await once(listener, 'listening')
    const password = randomBytes(24).toString('base64url')
    this.#password = password
    this.accept(listener)
    return new URL(`http://run:${password}@127.0.0.1:${(listener.address() as AddressInfo).port}`)
  }

  /** Hosts and ports that it has refused, the first of them, fit to print. */
  get refused(): readonly string[] {
    return [...this.#refused]
  }

  close(): void {
    this.#isClosed = true
    for (const listener of this.#listeners) listener.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  #hold<Held extends Duplex>(socket: Held): Held {
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    return socket
  }

  /** Connects for a client. Throws where the client has gone, or the run is over. */
  async #dial(host: string, port: number, client: Duplex): Promise<Socket> {
    this.#dialing += 1
    try {
      const server = this.#hold(await dial(this.#reach, host, port))
      if (!client.destroyed && !this.#isClosed) return server
      server.destroy()
      throw new Error('its client has gone')
    } catch (error) {
      if (error instanceof Refused && this.#refused.size < maxRefused)
        this.#refused.add(toPlainLine(`${host}:${port}`).slice(0, maxNameLength))
      throw error
    } finally {
      this.#dialing -= 1
    }
  }

  /** A port of this machine that the owner has named, whatever its protocol. */
  async #pass(socket: Socket, port: number): Promise<void> {
    try {
      join(socket, await this.#dial('localhost', port, socket))
    } catch {
      socket.destroy()
    }
  }

  async #tunnel(request: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    client.on('error', () => undefined)
    const address = `https://${request.url ?? ''}`
    const url = URL.canParse(address) ? new URL(address) : undefined
    if (!this.#isOurs(request)) return void client.end(toAnswer(407))
    if (!url || url.pathname !== '/' || url.username !== '') return void client.end(toAnswer(400))
    try {
      const server = await this.#dial(toHost(url), Number(url.port || 443), client)
      client.write('HTTP/1.1 200 Connection Established\r\n\r\n')
      if (head.length > 0) server.write(head)
      join(client, server)
    } catch (error) {
      client.end(toAnswer(error instanceof Refused ? 403 : 502))
    }
  }

  async #forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = URL.canParse(request.url ?? '') ? new URL(request.url ?? '') : undefined
    const fail = (status: number) => {
      if (response.headersSent) response.destroy()
      else response.writeHead(status, { connection: 'close' }).end()
    }
    if (!this.#isOurs(request)) return fail(407)
    if (url?.protocol !== 'http:') return fail(400)
    try {
      const server = await this.#dial(toHost(url), Number(url.port || 80), request.socket)
      const onward = httpRequest(url, {
        method: request.method ?? 'GET',
        headers: { ...withoutHops(request), host: url.host },
        createConnection: () => server,
      })
      onward.on('error', () => fail(502))
      onward.once('response', (answer) => {
        response.writeHead(answer.statusCode ?? 502, withoutHops(answer))
        answer.on('error', () => response.destroy()).pipe(response)
      })
      response.once('close', () => server.destroy())
      request.pipe(onward)
    } catch (error) {
      fail(error instanceof Refused ? 403 : 502)
    }
  }

  #isOurs({ headers }: IncomingMessage): boolean {
    if (this.#password === undefined) return true
    const expected = `Basic ${Buffer.from(`run:${this.#password}`).toString('base64')}`
    return constantTimeEqual(headers['proxy-authorization'] ?? '', expected)
  }
}

const withoutHops = ({ headers }: IncomingMessage) => {
  const named = (headers.connection ?? '').toLowerCase().split(/\s*,\s*/)
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => !hopByHop.test(name) && !named.includes(name)),
  )
}

const statusTexts = {
  400: 'Bad Request',
  403: 'Forbidden',
  407: 'Proxy Authentication Required',
  502: 'Bad Gateway',
} as const

const toAnswer = (status: keyof typeof statusTexts): string =>
  [
    `HTTP/1.1 ${status} ${statusTexts[status]}`,
    ...(status === 407 ? ['Proxy-Authenticate: Basic realm="doorward"'] : []),
    'Content-Length: 0\r\nConnection: close\r\n\r\n',
  ].join('\r\n')

/** Either end closes the other. */
const join = (one: Duplex, other: Duplex): void => {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on('error', () => undefined)
    from.once('close', () => to.destroy())
    from.pipe(to)
  }
}
