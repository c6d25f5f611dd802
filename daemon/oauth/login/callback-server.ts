import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { findListeningProcess } from '../../../shared/client/discovery.ts'
import { DoorwardError, systemCode } from '../../../shared/errors.ts'
import type { RenderedPage } from '../../http/body.ts'
import { createKeyedMutex } from '../../util/concurrency.ts'
import type { RedirectHost } from '../providers/providers.ts'
import type { Page } from './callback-page.ts'

/** What to answer to a request, decided by `answer-callback.ts`. */
type CallbackAnswer = {
  readonly status: number
  readonly page: RenderedPage | undefined
  readonly headers?: Readonly<Record<string, string>>
  /** Called once the answer is sent, or cannot be any more. */
  readonly onSent?: () => void
}

/** Keeps the listener open for one login. */
export type Lease = { readonly redirectUri: string; readonly release: () => void }

type CallbackListener = {
  /** Listens where this redirect host and port lead. Throws `callback-port-in-use`. */
  readonly open: (redirectHost: RedirectHost, port: number) => Promise<Lease>
  /** Keeps what is open from closing, for so long at most; returns what ends that. */
  readonly hold: (limitMs: number) => () => void
  readonly close: () => void
}

type CallbackSocket = {
  readonly server: Server
  readonly port: number
  readonly holders: Set<object>
}

/**
 * The HTTP listener of the redirect URI: open only while a login waits, on loopback alone. With the
 * redirect host `localhost` on IPv4 and IPv6, or another program could take one of them and with it
 * the code. RFC 8252 sections 7.3 and 8.3.
 */
export const createCallbackListener = (
  answer: (request: IncomingMessage) => Promise<CallbackAnswer>,
): CallbackListener => {
  const sockets = new Map<string, CallbackSocket>()
  const inTurn = createKeyedMutex()

  const release = (holder: object): void => {
    for (const [key, { server, holders }] of sockets) {
      holders.delete(holder)
      if (holders.size > 0) continue
      sockets.delete(key)
      server.close()
      server.closeAllConnections()
    }
  }

  const openAddress = async (address: string, port: number, holder: object): Promise<number> => {
    const key = `${address} ${port}`
    const opened = sockets.get(key)
    if (opened) {
      opened.holders.add(holder)
      return opened.port
    }
    const server = createCallbackServer(answer)
    const bound = await listen(server, address, port)
    sockets.set(key, { server, port: bound, holders: new Set([holder]) })
    return bound
  }

  const openAll = async (redirectHost: RedirectHost, wanted: number): Promise<Lease> => {
    for (let tries = 1; ; tries += 1) {
      try {
        return await openPort(redirectHost, wanted)
      } catch (error) {
        // Of any free port, the system knows that it is free on IPv4; on IPv6 another program may have it.
        const another = wanted === 0 && tries < maxTries && isPortInUse(error)
        if (!another) throw error
      }
    }
  }

  const openPort = async (redirectHost: RedirectHost, wanted: number): Promise<Lease> => {
    const holder = {}
    try {
      const port = await openAddress('127.0.0.1', wanted, holder)
      if (redirectHost === 'localhost') await openIfThere('::1', port, holder)
      // Made by URL, so that it is written as a browser will repeat it in Host.
      const { origin } = new URL(`http://${redirectHost}:${port}`)
      return { redirectUri: `${origin}/callback`, release: () => release(holder) }
    } catch (error) {
      release(holder)
      throw error
    }
  }

  const openIfThere = async (address: string, port: number, holder: object): Promise<void> => {
    try {
      await openAddress(address, port, holder)
    } catch (error) {
      const code = error instanceof DoorwardError ? undefined : systemCode(error)
      // A machine without IPv6 has no ::1 that anybody could take.
      if (code !== 'EADDRNOTAVAIL' && code !== 'EAFNOSUPPORT') throw error
    }
  }

  return {
    open: (redirectHost, port) => inTurn('open', () => openAll(redirectHost, port)),
    hold(limitMs) {
      const holder = {}
      for (const { holders } of sockets.values()) holders.add(holder)
      const timer = setTimeout(() => release(holder), limitMs).unref()
      return () => {
        clearTimeout(timer)
        release(holder)
      }
    },
    close() {
      for (const { holders } of sockets.values()) holders.clear()
      release({})
    },
  }
}

/** How often any free port is asked for, until one is free on IPv4 and IPv6. */
const maxTries = 20

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
  limitConnections(server, 64)
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
      code === 'EACCES' ? 'is not open to you' : `is in use by ${await describeHolder(port)}`
    throw new DoorwardError('callback-port-in-use', `port ${port} for the login callback ${why}`, {
      cause: error,
      hint: 'end that program, or set oauth.callback_port in gateway.yaml and the redirect URI at the provider',
    })
  }
}

const describeHolder = async (port: number): Promise<string> => {
  const holder = await findListeningProcess(port)
  return holder ? `${holder.name}, pid ${holder.pid}` : 'another program'
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

const exchangeLimitMs = 90_000
const showLimitMs = 10_000

type Parts = {
  readonly listener: () => CallbackListener
  readonly render: (page: Page) => RenderedPage
  /**
   * Finishes the login that waits for these parameters at this host, and says what to show. Throws
   * when they are not the answer of any: then nothing has changed.
   */
  readonly finish: (parameters: URLSearchParams, host: string) => Promise<Page>
}

/**
 * Answers the requests that reach the callback port. Only a navigation of a browser to exactly the
 * redirect URI is looked at. The result is shown at an address of its own, reached by a redirect, so
 * that no code stays in the address bar or the history.
 */
export const createAnswerCallback = ({ listener, render, finish }: Parts) => {
  const results = new Map<string, { readonly answer: CallbackAnswer }>()

  const finishAndRedirect = async (parameters: URLSearchParams, host: string) => {
    const letGo = listener().hold(exchangeLimitMs)
    try {
      const page = await finish(parameters, host)
      const address = `/done/${randomBytes(16).toString('base64url')}`
      const letGoOfPage = listener().hold(showLimitMs)
      const onSent = (): void => {
        results.delete(address)
        letGoOfPage()
      }
      const status = page.kind === 'done' ? 200 : 400
      results.set(address, { answer: { status, page: render(page), onSent } })
      // The page itself holds no secret, so one that is never fetched may stay until it is replaced.
      if (results.size > 20) results.delete([...results.keys()][0] ?? '')
      return { status: 303, page: undefined, headers: { location: address } }
    } finally {
      letGo()
    }
  }

  return async (request: IncomingMessage): Promise<CallbackAnswer> => {
    try {
      const host = checkHost(request)
      const [path, query = ''] = splitOnce(request.url ?? '', '?')
      const result = results.get(path)
      if (path !== '/callback' && !result) return { status: 404, page: undefined }
      if (request.method !== 'GET') return { status: 400, page: undefined }
      checkNavigation(request)
      return result?.answer ?? (await finishAndRedirect(new URLSearchParams(query), host))
    } catch (error) {
      return { status: 400, page: render(ignoredPage(error)) }
    }
  }
}

const checkHost = (request: IncomingMessage): string => {
  const [host, ...more] = request.headersDistinct['host'] ?? []
  const names = ['127.0.0.1', 'localhost']
  const ours = names.map((name) => new URL(`http://${name}:${request.socket.localPort}`).host)
  if (host !== undefined && more.length === 0 && ours.includes(host)) return host
  throw new DoorwardError('host-forbidden', 'this address is not served here')
}

/** A browser says what it fetches for: an image, a frame or a guess ahead is never a login. */
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
 * Keeps a server to so many open connections. One too many ends the oldest of which no whole request has
 * come, and is refused itself only where all the others are being answered: whoever connects and says
 * nothing, as another user of the machine may, keeps nobody out.
 */
export const limitConnections = (server: Server, limit: number): void => {
  const open = new Set<Socket>()
  /** In the order in which they came. */
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
