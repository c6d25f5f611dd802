import { type Asked, ask, jsonOf } from './ask.ts'

/** What answered at one path behind the public address. */
export type TunnelAnswer = {
  readonly path: string
  readonly status: number
  /** A route of ours; ours but refused, with the code; another program; or no answer at all. */
  readonly is: 'route' | 'refusal' | 'other' | 'nothing'
  readonly code?: string
  readonly why?: string
}

/** The routes that nobody may reach from outside. */
export const closedPaths = ['/status', '/events', '/oauth/tokens', '/health']

/**
 * Asks the public address for what must not answer there, and for a webhook (by GET, which none takes).
 * Without the bearer token, and following no redirect.
 */
export const askTunnel = async (
  publicUrl: string,
  webhookPath: string | undefined,
): Promise<TunnelAnswer[]> => {
  const base = publicUrl.replace(/\/+$/, '')
  const paths = [...closedPaths, ...(webhookPath === undefined ? [] : [webhookPath])]
  return Promise.all(
    paths.map(async (path) => answerOf(path, await ask(new URL(`${base}${path}`)))),
  )
}

const answerOf = (path: string, asked: Asked): TunnelAnswer => {
  if (asked.is === 'failed') return { path, status: 0, is: 'nothing', why: asked.why }
  const { status } = asked
  const json = jsonOf(asked)
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
