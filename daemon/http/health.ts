import type { Middleware } from 'koa'
import {
  challengeHeader,
  computeProof,
  proofHeader,
  toEndpoint,
} from '../../shared/client/identity.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { version } from '../../shared/version.ts'
import { isLoopbackPeer } from './guard.ts'

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
