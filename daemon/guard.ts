import type { IncomingMessage } from 'node:http'
import { isIPv4 } from 'node:net'
import type { Middleware } from 'koa'
import { DoorwardError } from '../shared/errors.ts'
import { isSameText } from '../shared/identity.ts'

/**
 * Lets only local clients of this user through: a loopback peer, a loopback `Host` with our port (DNS
 * rebinding), nothing that a proxy has passed on, no web page (`Origin`, `Sec-Fetch-Site`), the bearer
 * token of `run/api.token`. In this order: 403 for all but the last, which is 401.
 */
export const guard =
  (apiToken: string, port: () => number): Middleware =>
  async (ctx, next) => {
    refuseForeign(ctx.req, port())
    if (isFromWebPage(ctx.req.headers['origin'], ctx.req.headers['sec-fetch-site']))
      throw new DoorwardError('origin-forbidden', 'web pages may not ask for this')
    if (!hasToken(ctx.req.headersDistinct['authorization'], apiToken)) {
      ctx.set('WWW-Authenticate', 'Bearer')
      throw new DoorwardError('unauthorized', 'the bearer token is missing or wrong', {
        hint: 'it is in run/api.token of the home folder',
      })
    }
    await next()
  }

/** Throws for what does not come straight from this machine to a name of it: the first three checks. */
export const refuseForeign = (request: IncomingMessage, port: number): void => {
  if (!isLoopbackPeer(request.socket.remoteAddress))
    throw new DoorwardError('peer-forbidden', 'only this machine may ask for this')
  if (!isOurHost(request.headersDistinct['host'], port))
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
 * 7.2). Any address of 127.0.0.0/8 counts, as `server.host` may be one; no DNS name can look so.
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

/** True when one of these header names, in lower case, says that a proxy passed the request on. */
export const isForwarded = (headerNames: readonly string[]): boolean =>
  headerNames.some((name) => forwarding.test(name))

/** True when a browser sent it for a page: pages send `Origin`, or say that they are another site. */
export const isFromWebPage = (origin: string | undefined, fetchSite: string | undefined): boolean =>
  origin !== undefined ||
  (fetchSite !== undefined && fetchSite !== 'none' && fetchSite !== 'same-origin')

const hasToken = (values: readonly string[] | undefined, apiToken: string): boolean => {
  const [value] = values ?? []
  if (value === undefined || values?.length !== 1) return false
  const match = /^Bearer ([\x21-\x7e]+)$/i.exec(value)
  return match?.[1] !== undefined && isSameText(match[1], apiToken)
}
