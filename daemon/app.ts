import type { Router } from '@koa/router'
import Koa, { type Middleware } from 'koa'
import { DoorwardError } from '../shared/errors.ts'
import { challengeHeader, placeOf, proofHeader, proofOf } from '../shared/identity.ts'
import { version } from '../shared/version.ts'
import { guard, isLoopbackPeer } from './guard.ts'
import type { Log } from './log.ts'
import { problemMediaType, problemOf } from './problem.ts'

/** First parts of paths that belong to the local API; no webhook can have them. */
const apiSegments = new Set(['oauth', 'events', 'webhooks', 'status', 'metrics', 'daemon'])

export type AppParts = {
  readonly apiToken: string
  readonly port: () => number
  readonly log: Log
  /** Answers the paths of webhooks. */
  readonly webhooks: Middleware
  /** Hands what belongs to another daemon by now to that. */
  readonly passOn: Middleware
  readonly routers: readonly Router[]
}

/** The whole daemon as a Koa app. The order of this list is the order of the checks. */
export const createApp = ({ apiToken, port, log, webhooks, passOn, routers }: AppParts): Koa => {
  const app = new Koa()
  app.silent = true
  app.use(answerErrors(log))
  app.use(onlyPaths)
  app.use(webhooks)
  app.use(health(apiToken))
  app.use(onlyApiPaths)
  app.use(guard(apiToken, port))
  app.use(neverStored)
  app.use(passOn)
  for (const router of routers) app.use(router.routes())
  app.use(refuse(routers))
  return app
}

/** What the public port serves: webhooks, and nothing that says what else there is. */
export const createPublicApp = ({ log, webhooks }: Pick<AppParts, 'log' | 'webhooks'>): Koa => {
  const app = new Koa()
  app.silent = true
  app.use(answerErrors(log))
  app.use(onlyPaths)
  app.use(webhooks)
  app.use(() => {
    throw noWebhook()
  })
  return app
}

const answerErrors =
  (log: Log): Middleware =>
  async (ctx, next) => {
    try {
      await next()
    } catch (error) {
      const problem = problemOf(error)
      ctx.status = problem.status
      ctx.body = problem
      ctx.type = problemMediaType
      if (problem.code === 'internal')
        log.error({ path: ctx.path, error: internalName(error) }, 'internal error')
    }
  }

/**
 * Refuses a request target that is no path (RFC 9112 section 3.2): the forms for proxies carry a host
 * of their own that would count for more than `Host`, and Koa cannot read all of them.
 */
const onlyPaths: Middleware = async (ctx, next) => {
  if (!ctx.req.url?.startsWith('/'))
    throw new DoorwardError('request-invalid', 'the request target is not a path')
  await next()
}

/** Class and own lines of the stack of an unexpected error; its message may hold anything. */
const internalName = (error: unknown): string =>
  error instanceof Error
    ? [error.name, ...(error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line))]
        .slice(0, 6)
        .join('\n')
    : typeof error

/** `/health` says who we are; with a challenge it proves it (see `shared/identity.ts`). */
const health =
  (apiToken: string): Middleware =>
  async (ctx, next) => {
    if (ctx.path !== '/health') return next()
    if (!isLoopbackPeer(ctx.req.socket.remoteAddress)) throw noWebhook()
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') {
      ctx.set('Allow', 'GET, HEAD')
      throw new DoorwardError('method-not-allowed', '/health takes GET only')
    }
    const challenge = ctx.get(challengeHeader)
    const { localAddress, localPort } = ctx.req.socket
    if (/^[0-9a-f]{32,128}$/.test(challenge))
      ctx.set(proofHeader, proofOf(apiToken, challenge, placeOf(localAddress, localPort)))
    ctx.set('Cache-Control', 'no-store')
    ctx.body = { status: 'ok', name: 'doorward', version }
    return undefined
  }

const onlyApiPaths: Middleware = async (ctx, next) => {
  if (!apiSegments.has(ctx.path.split('/', 2)[1] ?? '')) throw noWebhook()
  await next()
}

const noWebhook = () => new DoorwardError('webhook-not-found', 'there is no webhook at this path')

const neverStored: Middleware = async (ctx, next) => {
  ctx.set('Cache-Control', 'no-store')
  ctx.set('X-Content-Type-Options', 'nosniff')
  await next()
}

/** What no route took: another method of a path that is there, or a path that is not. */
const refuse =
  (routers: readonly Router[]): Middleware =>
  (ctx) => {
    const methods = routers.flatMap((router) =>
      router.match(ctx.path, ctx.method).path.flatMap((layer) => layer.methods),
    )
    if (methods.length === 0) throw new DoorwardError('not-found', 'there is no such route')
    ctx.set('Allow', [...new Set(methods)].join(', '))
    throw new DoorwardError('method-not-allowed', 'this route takes other methods')
  }
