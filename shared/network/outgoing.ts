import { type IncomingMessage, request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isIP, type Socket } from 'node:net'
import { connect as connectTls, type SecureContext } from 'node:tls'
import { bareHost } from '../net.ts'
import { version } from '../version.ts'
import { createTrust } from './variables.ts'
import {
  failedBehindProxy,
  proxyFailed,
  refusedByProxy,
  silentProxy,
  unusableProxy,
} from './faults.ts'
import { findProxy, getPort, type Proxy } from './proxy.ts'

/*
 * The one way out of this machine: every request to a provider, a target, a model or a mail server uses the
 * proxy and the certificates of the environment. Both may be set in `.env`, so Node's own support for these
 * variables, which reads them at its start, does not suffice.
 */

let networkEnv: NodeJS.ProcessEnv = process.env
let trust: { readonly context: SecureContext | undefined } | undefined

/** Uses these variables from now on; reads the file in `NODE_EXTRA_CA_CERTS` again. */
export const configureNetwork = (env: NodeJS.ProcessEnv): void => {
  networkEnv = env
  trust = undefined
}

/** Options of TLS that make it trust the configured certificates. */
export const trustOptions = (): { readonly secureContext?: SecureContext } => {
  trust ??= { context: createTrust(networkEnv) }
  return trust.context ? { secureContext: trust.context } : {}
}

export type OutgoingRequest = {
  readonly method: string
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly body?: string | Uint8Array | undefined
  readonly signal: AbortSignal
  /** Called before anything is sent to the server: a request that fails earlier has not reached it. */
  readonly onConnected?: () => void
}

/**
 * Sends a request on a new connection and returns the response, whatever its status. Follows no redirect
 * and has no time limit but the signal. Throws `ProxyError`, also where the signal ends the wait for a proxy, or
 * the error of Node.
 */
export const openRequest = async (
  url: URL,
  { method, headers, body, signal, onConnected }: OutgoingRequest,
): Promise<IncomingMessage> => {
  const isTls = url.protocol === 'https:'
  const proxy = getProxy(url)
  const tunnel = proxy && (await connectThrough(proxy, url, signal))
  return new Promise((resolve, reject) => {
    let isConnected = false
    const request = (isTls ? httpsRequest : httpRequest)(url, {
      method,
      signal,
      // No keep-alive: a reused connection that dies leaves open what arrived.
      ...(tunnel
        ? {
            createConnection: () => (isTls ? startTls(url, tunnel) : tunnel),
            // Without an agent Node takes 80 for the default, and names it in `Host`.
            defaultPort: isTls ? 443 : 80,
          }
        : { agent: false, ...(isTls && trustOptions()) }),
      headers: {
        'user-agent': `doorward/${version}`,
        accept: 'application/json',
        ...headers,
        ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
      },
    })
    request.once('socket', (socket) => {
      const connected = (): void => {
        isConnected = true
        onConnected?.()
      }
      if (isTls) socket.once('secureConnect', connected)
      else if (socket.connecting) socket.once('connect', connected)
      else connected()
    })
    request.once('error', (error) =>
      reject(proxy && !isConnected ? failedBehindProxy(proxy, error, url.host) : error),
    )
    // A response such as 101 emits nothing else.
    request.once('close', () => reject(new Error('no response')))
    request.once('response', resolve)
    request.end(body)
  })
}

/**
 * Opens a connection to the host and port of a URL through the proxy for it, in at most `limitMs`. Undefined
 * without a proxy: the caller connects directly. `env` names another's proxies. Throws `ProxyError`.
 */
export const openTunnel = async (
  url: URL,
  limitMs: number,
  signal?: AbortSignal,
  env = networkEnv,
): Promise<Socket | undefined> => {
  const proxy = getProxy(url, env)
  if (!proxy) return undefined
  const control = new AbortController()
  const abort = () => control.abort()
  const timer = setTimeout(abort, limitMs)
  signal?.addEventListener('abort', abort, { once: true })
  try {
    signal?.throwIfAborted()
    return await connectThrough(proxy, url, control.signal)
  } catch (error) {
    signal?.throwIfAborted()
    throw error
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
}

/** TLS with the server of a URL, over a tunnel or a new connection. */
export const startTls = (url: URL, tunnel?: Socket): Socket => {
  const host = bareHost(url.hostname)
  return connectTls({
    host,
    ...(tunnel ? { socket: tunnel } : { port: Number(getPort(url)) }),
    // TLS takes names only, no addresses (RFC 6066 section 3).
    ...(isIP(host) === 0 && { servername: host }),
    ...trustOptions(),
  })
}

const getProxy = (url: URL, env = networkEnv): Proxy | undefined => {
  const proxy = findProxy(url, env)
  if (proxy && 'isUnusable' in proxy) throw unusableProxy(proxy)
  return proxy
}

/** Asks a proxy for a connection to the server of a URL: CONNECT, RFC 9110 section 9.3.6. */
const connectThrough = async (proxy: Proxy, target: URL, signal: AbortSignal): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const { protocol, hostname, port, username, password } = proxy.url
    const isTls = protocol === 'https:'
    const path = `${target.hostname}:${getPort(target)}`
    const login = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
    const request = (isTls ? httpsRequest : httpRequest)({
      host: bareHost(hostname),
      port: port || (isTls ? 443 : 80),
      method: 'CONNECT',
      path,
      agent: false,
      signal,
      ...(isTls && trustOptions()),
      headers: {
        host: path,
        'user-agent': `doorward/${version}`,
        ...(username !== '' && {
          'proxy-authorization': `Basic ${Buffer.from(login).toString('base64')}`,
        }),
      },
    })
    // Node emits this for every status.
    request.once('connect', ({ statusCode: status = 0 }, socket: Socket, head) => {
      if (status >= 200 && status < 300) {
        if (head.length > 0) socket.unshift(head)
        resolve(socket)
        return
      }
      socket.destroy()
      reject(refusedByProxy(proxy, status, path))
    })
    request.once('error', (error) =>
      reject(signal.aborted ? silentProxy(proxy) : proxyFailed(proxy, error)),
    )
    request.once('close', () => reject(proxyFailed(proxy, undefined)))
    request.end()
  })
