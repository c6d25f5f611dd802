import { type IncomingMessage, request as httpRequest } from 'node:http'
import type { Middleware } from 'koa'
import { DoorwardError } from '../../shared/errors.ts'
import type { HandOver } from '../restart/old-process.ts'

/** Headers that hold for one connection only (RFC 9110 section 7.6.1). */
const ofConnection = new Set(['connection', 'keep-alive', 'transfer-encoding', 'upgrade'])

/**
 * Hands requests of the local API, which the guard has let in, to the daemon that has taken over: only a
 * connection from before the restart still brings any.
 */
export const passOn =
  ({ heir, decided }: Pick<HandOver, 'heir' | 'decided'>): Middleware =>
  async (ctx, next) => {
    // While it is being decided, only what changes nothing is answered here.
    const to = ctx.method === 'GET' ? heir() : await decided()
    if (!to) return next()
    const answer = await ask(to.url, ctx.req)
    ctx.status = answer.statusCode ?? 502
    for (const [name, value] of Object.entries(answer.headers))
      if (value !== undefined && !ofConnection.has(name)) ctx.set(name, value)
    ctx.body = answer
    return undefined
  }

const ask = async (url: string, incoming: IncomingMessage): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const { host } = new URL(url)
    const { method, url: path, headers } = incoming
    // The path as it came: read as a URL, `//name/` would be another machine.
    const options = { method, path, headers: { ...headers, host }, agent: false } as const
    const request = httpRequest(url, options, resolve)
    request.once('error', () =>
      reject(new DoorwardError('stopping', 'the daemon was restarted: ask again')),
    )
    incoming.pipe(request)
    incoming.once('close', () => {
      if (!incoming.complete) request.destroy()
    })
  })
