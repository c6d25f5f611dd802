import type { Status } from '../../../../shared/api.ts'
import type { Config } from '../../../../shared/config/load.ts'
import { toPlainLine } from '../../../../shared/text.ts'
import { ask, type Answer, parseJsonAnswer } from '../ask.ts'
import { type Check, checksFor } from '../check.ts'

const { ok, warning, error, skipped } = checksFor('tunnel')

/** Checks what the internet can reach of the daemon; `answers` only with --online. */
export const checkTunnel = (
  { server }: Config['gateway'],
  answers: readonly TunnelAnswer[] | undefined,
  isRunning: boolean,
): Check[] => {
  const remote = server.allow_remote && !['127.0.0.1', '::1', 'localhost'].includes(server.host)
  const address = remote
    ? [ok('address', `${server.host}: others on the network reach webhooks and nothing else`)]
    : []
  if (server.public_url === undefined)
    return [...address, skipped('tunnel', 'no server.public_url is configured')]
  if (!answers)
    return [
      ...address,
      skipped(
        'tunnel',
        isRunning ? 'only --online asks what answers there' : 'the daemon does not run',
      ),
    ]
  const silent = answers.find(({ is }) => is === 'nothing')
  if (silent && answers.every(({ is }) => is === 'nothing'))
    return [
      ...address,
      error('tunnel', `server.public_url cannot be reached: ${silent.why}`, 'doorward tunnel'),
    ]
  const webhook = answers.find(({ path }) => !closedPaths.includes(path))
  return [
    ...address,
    ...answers.filter(({ path }) => closedPaths.includes(path)).map(checkClosed),
    ...(webhook ? [checkWebhook(webhook)] : []),
  ]
}

/** The tunnel that the daemon keeps open, by its own pings. */
export const checkTunnelProgram = (status: Status | undefined): Check[] => {
  const { tunnel, problems = [] } = status ?? {}
  const found = problems.filter(({ code }) => code.startsWith('tunnel-'))
  return [
    ...found.map(({ detail, hint }) => error('program', toPlainLine(detail), hint)),
    ...(tunnel?.state === 'up'
      ? [ok('program', `${toPlainLine(tunnel.program)} brings requests to this daemon`)]
      : []),
  ]
}

const toPublicPort = 'set server.public_port in gateway.yaml, and point the tunnel at it'

const checkClosed = ({ path, status, is, code, why }: TunnelAnswer): Check => {
  if (is === 'route')
    return error(path, `it answers to the whole internet (${status})`, toPublicPort)
  // The guard accepted the request as local: only the bearer token protects the API.
  if (code === 'unauthorized' || code === 'origin-forbidden')
    return error(
      path,
      'the tunnel makes requests look as if they came from this machine: only the token protects it',
      toPublicPort,
    )
  if (is === 'refusal') return ok(path, `refused (${status} ${code})`)
  if (is === 'nothing') return skipped(path, why ?? 'no answer')
  return status >= 200 && status < 300
    ? warning(path, `something that is not doorward answers (${status})`)
    : ok(path, `nothing of doorward answers (${status})`)
}

const checkWebhook = ({ path, status, is, code }: TunnelAnswer): Check => {
  if (code === 'method-not-allowed') return ok(path, 'the webhook answers there')
  if (is === 'refusal')
    return error(path, `the webhook does not answer there (${status} ${code})`, toHome)
  return error(path, `what answers there is not doorward (${status})`, toHome)
}

const toHome = 'point the tunnel at the port of this daemon, and check server.public_url'

/** What answered at one path behind the public address. */
export type TunnelAnswer = {
  readonly path: string
  readonly status: number
  /** Our route, our refusal (with its code), another program, or no answer. */
  readonly is: 'route' | 'refusal' | 'other' | 'nothing'
  readonly code?: string
  readonly why?: string
}

/** Routes that must not be reachable from outside. */
const closedPaths = ['/status', '/events', '/oauth/tokens', '/health']

/**
 * Requests the routes that must not answer at the public address, and a webhook (by GET, which webhooks
 * refuse). Sends no bearer token and follows no redirect.
 */
export const askTunnel = async (
  publicUrl: string,
  webhookPath: string | undefined,
): Promise<TunnelAnswer[]> => {
  const base = publicUrl.replace(/\/+$/, '')
  const paths = [...closedPaths, ...(webhookPath === undefined ? [] : [webhookPath])]
  return Promise.all(
    paths.map(async (path) => toAnswer(path, await ask(new URL(`${base}${path}`)))),
  )
}

const toAnswer = (path: string, asked: Answer): TunnelAnswer => {
  if (asked.is === 'failed') return { path, status: 0, is: 'nothing', why: asked.why }
  const { status } = asked
  const json = parseJsonAnswer(asked)
  const { code } = json
  const isProblem = /problem\+json/.test(asked.headers['content-type'] ?? '')
  if (isProblem && typeof code === 'string' && /^[a-z-]{1,40}$/.test(code))
    return { path, status, is: 'refusal', code }
  const isRoute = status >= 200 && status < 300 && looksLikeOurs(path, json)
  return { path, status, is: isRoute ? 'route' : 'other' }
}

const looksLikeOurs = (path: string, json: Readonly<Record<string, unknown>>): boolean => {
  if (path === '/health') return json['name'] === 'doorward'
  if (path === '/status') return Array.isArray(json['webhooks'])
  return Array.isArray(json[path === '/events' ? 'events' : 'tokens'])
}
