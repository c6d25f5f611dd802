import { type Check, checksFor } from '../../shared/api/checks.ts'
import type { TunnelStatus } from '../../shared/api/tunnel.ts'
import type { Config } from '../../shared/config/load.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { toPlainLine } from '../../shared/text.ts'
import { requestTarget, type TargetResponse } from '../delivery/request.ts'
import type { Asking } from '../delivery/sender.ts'

const { ok, warning, error, skipped } = checksFor('tunnel')

/** Checks what the internet can reach of this daemon. With `asking` it asks at the public address. */
export const checkTunnel = async (
  config: Config,
  { program, state, problems }: TunnelStatus,
  asking: Asking | undefined,
): Promise<Check[]> => {
  const { server } = config.gateway
  const isOpen = server.allow_remote && !['127.0.0.1', '::1', 'localhost'].includes(server.host)
  return [
    ...problems.map(({ detail, hint }) => error('program', toPlainLine(detail), hint)),
    ...(program && state === 'up'
      ? [ok('program', `${toPlainLine(program)} brings requests to this daemon`)]
      : []),
    ...(isOpen
      ? [ok('address', `${server.host}: others on the network reach webhooks and nothing else`)]
      : []),
    ...(await checkAddress(config, asking)),
  ]
}

/** Routes that must not be reachable from outside. */
const closedPaths = ['/status', '/events', '/oauth/tokens', '/health']

/**
 * Requests the routes that must not answer at the public address, and a webhook (by GET, which webhooks
 * refuse). Sends no bearer token and follows no redirect.
 */
const checkAddress = async (
  { gateway, webhooks }: Config,
  asking: Asking | undefined,
): Promise<Check[]> => {
  const { public_url: publicUrl } = gateway.server
  if (publicUrl === undefined) return [skipped('tunnel', 'no server.public_url is configured')]
  if (!asking) return [skipped('tunnel', 'only --online asks what answers there')]
  const base = publicUrl.replace(/\/+$/, '')
  const webhook = webhooks.find(({ enabled }) => enabled)?.urlPaths[0]
  const ask = async (path: string) =>
    requestTarget(new URL(`${base}${path}`), { target: 'server.public_url', attempt: asking })
  try {
    const closed = await Promise.all(
      closedPaths.map(async (path) => checkClosed(path, await ask(path))),
    )
    return webhook === undefined ? closed : [...closed, checkWebhook(webhook, await ask(webhook))]
  } catch (thrown) {
    if (!(thrown instanceof DoorwardError)) throw thrown
    return [error('tunnel', thrown.message, thrown.hint ?? 'doorward tunnel')]
  }
}

const toPublicPort = 'set server.public_port in gateway.yaml, and point the tunnel at it'

const checkClosed = (path: string, answer: TargetResponse): Check => {
  const { status, json } = answer
  const code = toRefusal(answer)
  // The guard took the request for a local one: only the bearer token protects the API.
  if (code === 'unauthorized' || code === 'origin-forbidden')
    return error(
      path,
      'the tunnel makes requests look as if they came from this machine: only the token protects it',
      toPublicPort,
    )
  if (code !== undefined) return ok(path, `refused (${status} ${code})`)
  const isOk = status >= 200 && status < 300
  const isOurs =
    json['name'] === 'doorward' ||
    ['webhooks', 'events', 'tokens'].some((name) => Array.isArray(json[name]))
  if (isOk && isOurs)
    return error(path, `it answers to the whole internet (${status})`, toPublicPort)
  return isOk
    ? warning(path, `something that is not doorward answers (${status})`)
    : ok(path, `nothing of doorward answers (${status})`)
}

const toHome = 'point the tunnel at the port of this daemon, and check server.public_url'

const checkWebhook = (path: string, answer: TargetResponse): Check => {
  const { status } = answer
  const code = toRefusal(answer)
  if (code === 'method-not-allowed') return ok(path, 'the webhook answers there')
  if (code !== undefined)
    return error(path, `the webhook does not answer there (${status} ${code})`, toHome)
  return error(path, `what answers there is not doorward (${status})`, toHome)
}

/** The code of our own problem document. */
const toRefusal = ({ headers, json: { code } }: TargetResponse): string | undefined =>
  /problem\+json/.test(headers['content-type'] ?? '') &&
  typeof code === 'string' &&
  /^[a-z-]{1,40}$/.test(code)
    ? code
    : undefined
