import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { findListeningProcess } from '../../../shared/client/discovery.ts'
import { DoorwardError, systemCode } from '../../../shared/errors.ts'
import { isOtherUser, userOfPeer } from '../../../shared/network/tcp-table.ts'
import type { RenderedPage } from '../../http/body.ts'
import { createKeyedMutex } from '../../util/concurrency.ts'
import type { RedirectHost, RedirectTarget } from '../providers/providers.ts'
import { loadCallbackPage, type Page } from './callback-page.ts'
import { BoundedMap } from '../../util/collections.ts'

type CallbackAnswer = {
  readonly status: number
  readonly page: RenderedPage | undefined
  readonly headers?: Readonly<Record<string, string>>
  /** Shown to programs of this user only. */
  readonly isPrivate?: true
  /** Called when the answer is sent or the connection is closed. */
  readonly onSent?: () => void
}

/** Keeps the listener open for one login. */
export type Lease = { readonly redirectUri: string; readonly release: () => void }

type CallbackSocket = {
  readonly server: Server
  readonly port: number
  readonly holders: Set<object>
}

/**
 * Finishes the login that these parameters answer at this address, and says what to show. Throws when they
 * are not the answer to any login: then nothing has changed.
 */
type FinishLogin = (parameters: URLSearchParams, address: string) => Promise<Page>

/** How long the listener stays open for an exchange, and for a page that is not fetched. */
const exchangeLimitMs = 90_000
const showLimitMs = 10_000
const maxResults = 20
/** Another user can open hundreds of connections at a time; each costs a file descriptor for at most 5 s. */
const maxConnections = 1024
/** How many free ports are tried, until one is free on both IPv4 and IPv6. */
const maxTries = 20

/**
 * The HTTP listener of the redirect URI: open only while a login waits, on loopback only. The redirect host
 * `localhost` needs IPv4 and IPv6, or another program could take one of them and with it the code. RFC
 * 8252 sections 7.3 and 8.3.
 *
 * Only a navigation of a browser to exactly the redirect URI can be a callback. The result is shown at its
 * own address, reached by a redirect, so that no code stays in the address bar or the history.
 */
export class CallbackServer {
  readonly #finish: FinishLogin
  readonly #render = loadCallbackPage()
  readonly #sockets = new Map<string, CallbackSocket>()
  readonly #results = new BoundedMap<string, CallbackAnswer>(maxResults)
  /** The paths of all redirect URIs so far. */
  readonly #paths = new Set<string>()
  readonly #withLock = createKeyedMutex()

  constructor(finish: FinishLogin) {
    this.#finish = finish
  }

  /** Listens for this redirect URI; port 0 is any free port. Throws `callback-port-in-use`. */
  open({ redirectHost, redirectPath }: RedirectTarget, port: number): Promise<Lease> {
    return this.#withLock('open', async () => {
      for (let tries = 1; ; tries += 1) {
        try {
          const { origin, release } = await this.#openPort(redirectHost, port)
          this.#paths.add(redirectPath)
          return { redirectUri: `${origin}${redirectPath}`, release }
        } catch (error) {
          // The system picks a port that is free on IPv4; another program may have it on IPv6.
          if (port !== 0 || tries >= maxTries || !isPortInUse(error)) throw error
        }
      }
    })
  }

  /** Shows a page to this user at a path once; then `used`. Only while the listener is open. */
  showOnce(path: string, page: RenderedPage, used: RenderedPage): void {
    const onSent = (): void => void this.#results.set(path, { status: 410, page: used })
    this.#results.set(path, { status: 200, page, onSent, isPrivate: true })
  }

  /** Shows nothing there any more. */
  hide(path: string): void {
    this.#results.delete(path)
  }

  close(): void {
    for (const { holders } of this.#sockets.values()) holders.clear()
    this.#release({})
  }

  async #openPort(redirectHost: RedirectHost, wanted: number) {
    const holder = {}
    try {
      const port = await this.#openAddress('127.0.0.1', wanted, holder)
      if (redirectHost === 'localhost') await this.#openIfSupported('::1', port, holder)
      // Written as a browser repeats it in `Host`.
      const { origin } = new URL(`http://${redirectHost}:${port}`)
      return { origin, release: () => this.#release(holder) }
    } catch (error) {
      this.#release(holder)
      throw error
    }
  }

  async #openIfSupported(address: string, port: number, holder: object): Promise<void> {
    try {
      await this.#openAddress(address, port, holder)
    } catch (error) {
      const code = error instanceof DoorwardError ? undefined : systemCode(error)
      // On a machine without IPv6 no other program can take ::1 either.
      if (code !== 'EADDRNOTAVAIL' && code !== 'EAFNOSUPPORT') throw error
    }
  }

  async #openAddress(address: string, port: number, holder: object): Promise<number> {
    const key = `${address} ${port}`
    const opened = this.#sockets.get(key)
    if (opened) {
      opened.holders.add(holder)
      return opened.port
    }
    const server = createCallbackServer((request) => this.#answer(request))
    const bound = await listen(server, address, port)
    this.#sockets.set(key, { server, port: bound, holders: new Set([holder]) })
    return bound
  }

  #release(holder: object): void {
    for (const [key, { server, holders }] of this.#sockets) {
      holders.delete(holder)
      if (holders.size > 0) continue
      this.#sockets.delete(key)
      server.close()
      server.closeAllConnections()
    }
  }

  /** Keeps all open sockets open until the returned function is called, for at most this time. */
  #keepOpen(limitMs: number): () => void {
    const holder = {}
    for (const { holders } of this.#sockets.values()) holders.add(holder)
    const timer = setTimeout(() => this.#release(holder), limitMs).unref()
    return () => {
      clearTimeout(timer)
      this.#release(holder)
    }
  }

  async #answer(request: IncomingMessage): Promise<CallbackAnswer> {
    try {
      const host = checkHost(request)
      const [path, query = ''] = splitOnce(request.url ?? '', '?')
      const result = this.#results.get(path)
      // The address of a page to press stands on the command line of the browser for a moment.
      if (result?.isPrivate && isOtherUser(await userOfPeer(request.socket)))
        return { status: 404, page: undefined }
      if (!this.#paths.has(path) && !result) return { status: 404, page: undefined }
      if (request.method !== 'GET') return { status: 400, page: undefined }
      checkNavigation(request)
      const address = `http://${host}${path}`
      return result ?? (await this.#finishAndRedirect(new URLSearchParams(query), address))
    } catch (error) {
      return { status: 400, page: this.#render(ignoredPage(error)) }
    }
  }

  async #finishAndRedirect(
    parameters: URLSearchParams,
    redirectUri: string,
  ): Promise<CallbackAnswer> {
    const release = this.#keepOpen(exchangeLimitMs)
    try {
      const page = await this.#finish(parameters, redirectUri)
      const address = `/done/${randomBytes(16).toString('base64url')}`
      const releasePage = this.#keepOpen(showLimitMs)
      const onSent = (): void => {
        this.#results.delete(address)
        releasePage()
      }
      const status = page.kind === 'done' ? 200 : 400
      // A page holds no secret, so one that is never fetched can stay until newer ones replace it.
      this.#results.set(address, { status, page: this.#render(page), onSent })
      return { status: 303, page: undefined, headers: { location: address } }
    } finally {
      release()
    }
  }
}

const isPortInUse = (error: unknown): boolean =>
  error instanceof DoorwardError && error.code === 'callback-port-in-use'

const createCallbackServer = (
  answer: (request: IncomingMessage) => Promise<CallbackAnswer>,
): Server => {
  const server = createServer(
    {
      headersTimeout: 5000,
      requestTimeout: 5000,
      connectionsCheckingInterval: 1000,
      maxHeaderSize: 16 * 1024,
      keepAlive: false,
    },
    (request, response) => {
      void sendAnswer(answer(request), response)
    },
  )
  limitConnections(server, maxConnections)
  return server
}

const listen = async (server: Server, host: string, port: number): Promise<number> => {
  try {
    server.listen({ host, port, exclusive: true, ipv6Only: host === '::1' })
    await once(server, 'listening')
    return (server.address() as AddressInfo).port
  } catch (error) {
    const code = systemCode(error)
    if (code !== 'EADDRINUSE' && code !== 'EACCES') throw error
    const why =
      code === 'EACCES'
        ? 'needs more rights than you have'
        : `is in use by ${await describeProgram(port)}`
    throw new DoorwardError('callback-port-in-use', `port ${port} for the login callback ${why}`, {
      cause: error,
      hint: 'stop that program, or set oauth.callback_port in gateway.yaml and the redirect URI at the provider',
    })
  }
}

const describeProgram = async (port: number): Promise<string> => {
  const program = await findListeningProcess(port)
  return program ? `${program.name}, pid ${program.pid}` : 'another program'
}

const sendAnswer = async (answer: Promise<CallbackAnswer>, response: ServerResponse) => {
  const { status, page, headers, onSent } = await answer
  if (onSent) response.once('close', onSent)
  response.writeHead(status, {
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'cross-origin-opener-policy': 'same-origin',
    connection: 'close',
    ...(page && {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': page.contentSecurityPolicy,
    }),
    ...headers,
  })
  response.end(page?.html)
}

const checkHost = (request: IncomingMessage): string => {
  const [host, ...more] = request.headersDistinct['host'] ?? []
  const names = ['127.0.0.1', 'localhost']
  const ours = names.map((name) => new URL(`http://${name}:${request.socket.localPort}`).host)
  if (host !== undefined && more.length === 0 && ours.includes(host)) return host
  throw new DoorwardError('host-forbidden', 'this address is not served here')
}

/** A browser says what it fetches a page for: an image, a frame or a prefetch is never a login. */
const checkNavigation = ({ headers }: IncomingMessage): void => {
  const destination = headers['sec-fetch-dest']
  const isPrefetch = [headers['sec-purpose'], headers['purpose']].some((purpose) =>
    String(purpose ?? '').includes('prefetch'),
  )
  if ((destination === undefined || destination === 'document') && !isPrefetch) return
  throw new DoorwardError('callback-invalid', 'only a page that you open yourself can be a login')
}

const ignoredPage = (error: unknown): Page => ({
  kind: 'ignored',
  title: 'Not a login we are waiting for',
  message:
    error instanceof DoorwardError
      ? `Nothing has changed: ${error.message}.`
      : 'Nothing has changed: something went wrong inside the daemon.',
  advice: 'If you were logging in, go back to the window where you approved it, or start again.',
})

const splitOnce = (text: string, separator: string): [string, string?] => {
  const at = text.indexOf(separator)
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)]
}

/**
 * Limits the open connections of a server. One too many closes the oldest that has sent no whole request,
 * and is refused only when all others are being answered: a program that connects and sends nothing, of
 * another user for example, cannot keep the browser out.
 */
export const limitConnections = (server: Server, limit: number): void => {
  const open = new Set<Socket>()
  const silent = new Set<Socket>()
  const forget = (socket: Socket): void => {
    open.delete(socket)
    silent.delete(socket)
  }

  server.on('connection', (socket: Socket) => {
    open.add(socket)
    silent.add(socket)
    socket.once('close', () => forget(socket))
    const [oldest] = silent
    if (open.size <= limit || !oldest) return
    forget(oldest)
    oldest.destroy()
  })
  server.on('request', ({ socket }) => void silent.delete(socket))
}
