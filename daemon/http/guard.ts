import { constantTimeEqual } from '../../shared/constant-time.ts'
import type { IncomingMessage } from 'node:http'
import { isIPv4 } from 'node:net'
import type { Middleware } from 'koa'
import {
  challengeHeader,
  computeProof,
  proofHeader,
  toEndpoint,
} from '../../shared/client/identity.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { version } from '../../shared/version.ts'

/** Throws why a request is refused; see `createGuard`. */
export type Guard = (request: IncomingMessage) => void

/**
 * Accepts only local clients of this user: a loopback peer, a loopback `Host` with our port (DNS
 * rebinding), no headers of a proxy, no web page (`Origin`, `Sec-Fetch-Site`), the bearer token of
 * `run/api.token`. In this order: 403 for all but the last, which is 401.
 */
export const createGuard = (apiToken: string, port: () => number): Guard => {
  const token = Buffer.from(apiToken)
  return (request) => {
    refuseForeign(request, port())
    if (isFromWebPage(request.headers['origin'], request.headers['sec-fetch-site']))
      throw new DoorwardError('origin-forbidden', 'web pages may not ask for this')
    if (!hasToken(headerValues(request, 'authorization'), token))
      throw new DoorwardError('unauthorized', 'the bearer token is missing or wrong', {
        hint: 'it is in run/api.token of the home folder',
      })
  }
}

/** The first three checks: the request comes directly from this machine, and to a name of it. */
export const refuseForeign = (request: IncomingMessage, port: number): void => {
  if (!isLoopbackPeer(request.socket.remoteAddress))
    throw new DoorwardError('peer-forbidden', 'only this machine may ask for this')
  if (!isOurHost(headerValues(request, 'host'), port))
    throw new DoorwardError('host-forbidden', 'the Host header names no address of this daemon', {
      hint: 'only webhooks answer under another name, as behind a tunnel',
    })
  if (isForwarded(Object.keys(request.headers)))
    throw new DoorwardError('forwarded-forbidden', 'a proxy has passed this request on', {
      hint: 'only webhooks and /health answer through a tunnel: point it at server.public_port',
    })
}

/** True for an address of the loopback network: 127.0.0.0/8, ::1, and the first mapped into IPv6. */
export const isLoopbackPeer = (address: string | undefined): boolean => {
  if (address === undefined) return false
  if (address === '::1') return true
  const v4 = address.startsWith('::ffff:') ? address.slice('::ffff:'.length) : address
  return isIPv4(v4) && v4.startsWith('127.')
}

/**
 * True for exactly one `Host` that is a loopback name or address with this port (RFC 9110 section
 * 7.2). Any address of 127.0.0.0/8 counts, as `server.host` may be one; no DNS name has this form.
 */
export const isOurHost = (values: readonly string[] | undefined, port: number): boolean => {
  const [host] = values ?? []
  if (host === undefined || values?.length !== 1 || !host.endsWith(`:${port}`)) return false
  const name = host.slice(0, -`:${port}`.length).toLowerCase()
  return name === 'localhost' || name === '[::1]' || (isIPv4(name) && name.startsWith('127.'))
}

/**
 * Headers that proxies and tunnels add (RFC 7239, RFC 9110 section 7.6.3; Cloudflare, Tailscale, ngrok,
 * and the usual names without a standard). No local client sends one.
 */
const forwarding =
  /^(forwarded|via|cdn-loop|x-forwarded(-.*)?|x-original-.*|x-real-ip|x-client-ip|x-cluster-client-ip|true-client-ip|fastly-client-ip|cf-.*|tailscale-.*|(x-)?ngrok-.*)$/

/** True when one of these header names, in lower case, is one that proxies add. */
export const isForwarded = (headerNames: readonly string[]): boolean =>
  headerNames.some((name) => forwarding.test(name))

/** True when a browser sent the request for a page: with `Origin`, or from another site. */
export const isFromWebPage = (origin: string | undefined, fetchSite: string | undefined): boolean =>
  origin !== undefined ||
  (fetchSite !== undefined && fetchSite !== 'none' && fetchSite !== 'same-origin')

/** True for the token of the API, once. */
const hasToken = (values: readonly string[], apiToken: Buffer): boolean => {
  const [value, second] = values
  if (value === undefined || second !== undefined) return false
  if (!/^Bearer [\x21-\x7e]+$/i.test(value)) return false
  const given = Buffer.from(value.slice('Bearer '.length), 'latin1')
  return constantTimeEqual(given, apiToken)
}

/** All values of one header, by its name in lower case. `headersDistinct` would make an object of all headers. */
export const headerValues = ({ rawHeaders }: IncomingMessage, name: string): string[] => {
  const values: string[] = []
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const value = rawHeaders[index + 1]
    const given = rawHeaders[index]
    if (given?.length === name.length && given.toLowerCase() === name && value !== undefined)
      values.push(value)
  }
  return values
}

/**
 * `/health` says which program answers, and proves it to a client that sends a challenge
 * (`shared/client/identity.ts`). It is before the guard: clients ask it before they send their token.
 */
export const serveHealth =
  (apiToken: string): Middleware =>
  (ctx, next) => {
    const { url = '', method, headers, socket } = ctx.req
    if (url !== '/health' && !url.startsWith('/health?')) return next()
    if (!isLoopbackPeer(socket.remoteAddress))
      throw new DoorwardError('webhook-not-found', 'there is no webhook at this path')
    if (method !== 'GET' && method !== 'HEAD') {
      ctx.set('Allow', 'GET, HEAD')
      throw new DoorwardError('method-not-allowed', '/health allows GET only')
    }
    const challenge = headers[challengeHeader.toLowerCase()]
    if (typeof challenge === 'string' && /^[0-9a-f]{32,128}$/.test(challenge)) {
      const endpoint = toEndpoint(socket.localAddress, socket.localPort)
      ctx.set(proofHeader, computeProof(apiToken, challenge, endpoint))
    }
    ctx.set('Cache-Control', 'no-store')
    ctx.body = { status: 'ok', name: 'doorward', version }
    return undefined
  }
