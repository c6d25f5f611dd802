import { DoorwardError } from '../../shared/errors.ts'
import {
  challengeHeader,
  toEndpoint,
  proofHeader,
  computeProof,
} from '../../shared/client/identity.ts'
import { version } from '../../shared/version.ts'
import { isLoopbackPeer } from './guard.ts'
import type { Log } from '../log/log.ts'
import { answerJson, answerProblem, type ServeFirst } from './respond.ts'

/**
 * `/health` says who we are; with a challenge it proves it (see `shared/identity.ts`). In front of the app:
 * every command asks it first.
 */
export const serveHealth =
  (apiToken: string, log: Log): ServeFirst =>
  (request, response) => {
    const { url = '', method, headers, socket } = request
    if (url !== '/health' && !url.startsWith('/health?')) return false
    try {
      if (!isLoopbackPeer(socket.remoteAddress))
        throw new DoorwardError('webhook-not-found', 'there is no webhook at this path')
      if (method !== 'GET' && method !== 'HEAD') {
        response.setHeader('Allow', 'GET, HEAD')
        throw new DoorwardError('method-not-allowed', '/health takes GET only')
      }
      const challenge = headers[challengeHeader.toLowerCase()]
      if (typeof challenge === 'string' && /^[0-9a-f]{32,128}$/.test(challenge)) {
        const place = toEndpoint(socket.localAddress, socket.localPort)
        response.setHeader(proofHeader, computeProof(apiToken, challenge, place))
      }
      const who = { status: 'ok', name: 'doorward', version }
      answerJson(response, 200, who, { 'Cache-Control': 'no-store' })
    } catch (error) {
      answerProblem(response, error, { log, path: '/health' })
    }
    return true
  }
