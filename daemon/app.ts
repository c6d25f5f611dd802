import type { RequestListener } from 'node:http'
import type { Router } from '@koa/router'
import Koa, { type Middleware } from 'koa'
import { DoorwardError } from '../shared/errors.ts'
import { isOnPage, loggedPath } from './page/page.ts'
import { type Guard, serveHealth } from './http/guard.ts'
import { problemMediaType, toProblem, logInternal } from './http/respond.ts'
import { batchResponse } from './http/turn-batching.ts'
import type { Log } from './log/log.ts'
import type { Succession } from './restart/succession.ts'
import type { ServeWebhook } from './webhook/routes.ts'

/** First parts of paths that belong to the local API; no webhook can have them. */
const apiSegments = new Set([
  'bots',
  'oauth',
  'events',
  'webhooks',
  'status',
  'metrics',
  'daemon',
  'workspaces',
  'sessions',
  'usage',
  'schedules',
  'checks',
  'ui',
])

export type AppParts = {
  readonly apiToken: string
  readonly guard: Guard
  readonly log: Log
  readonly serveWebhook: ServeWebhook
  /** Answers the browser of the owner. */
  readonly page: Middleware
  readonly succession: Pick<Succession, 'successor' | 'awaitSuccessor'>
  readonly routers: readonly Router[]
}

/**
 * Handles all requests of the main port: webhooks first, and the local API with Koa. The order of the
 * middleware is the order of the checks.
 */
export const createApp = ({
  apiToken,
  guard,
  log,
  serveWebhook,
  page,
  succession,
  routers,
}: AppParts): RequestListener => {
  const app = createKoa(log)
  app.use(serveHealth(apiToken))
  app.use(onlyApiPaths)
  app.use(onlyOnPage(onlyWhileServing(succession)))
  app.use(page)
  app.use(guarded(guard))
  app.use(neverStored)
  app.use(onlyWhileServing(succession))
  for (const router of routers) app.use(router.routes())
  app.use(refuse(routers))
  return afterWebhooks(serveWebhook, app)
}

/** Handles all requests of the public port: webhooks, and nothing that shows what else there is. */
export const createPublicApp = (log: Log, serveWebhook: ServeWebhook): RequestListener => {
  const app = createKoa(log)
  app.use(() => {
    throw noWebhook()
  })
  return afterWebhooks(serveWebhook, app)
}

const createKoa = (log: Log): Koa => {
  const app = new Koa()
  app.silent = true
  app.use(batched)
  app.use(answerErrors(log))
  app.use(onlyPaths)
  return app
}

/** Webhooks bypass Koa, which would add 9 µs, some 8 %, to a delivery of 24 KB. */
const afterWebhooks = (serveWebhook: ServeWebhook, app: Koa): RequestListener => {
  const handle = app.callback()
  return (request, response) => {
    if (!serveWebhook(request, response)) void handle(request, response)
  }
}

/** A browser that holds a connection to the daemon before a restart is to open another. */
const onlyOnPage =
  (check: Middleware): Middleware =>
  (ctx, next) =>
    isOnPage(ctx.path) ? check(ctx, next) : next()

const guarded =
  (guard: Guard): Middleware =>
  (ctx, next) => {
    try {
      guard(ctx.req)
    } catch (error) {
      // RFC 9110 section 11.6.1.
      if (error instanceof DoorwardError && error.code === 'unauthorized')
        ctx.set('WWW-Authenticate', 'Bearer')
      throw error
    }
    return next()
  }

/** Lets Koa respond at the end of the turn, together with the other responses. */
const batched: Middleware = async (_, next) => {
  await next()
  await new Promise<void>((resolve) => batchResponse(resolve))
}

const answerErrors =
  (log: Log): Middleware =>
  async (ctx, next) => {
    try {
      await next()
    } catch (error) {
      const problem = toProblem(error)
      ctx.status = problem.status
      ctx.body = problem
      ctx.type = problemMediaType
      if (problem.code === 'internal') logInternal(log, loggedPath(ctx.path), error)
    }
  }

/**
 * Refuses a request target that is not a path (RFC 9112 section 3.2): the forms for proxies contain a host
 * that would override `Host`, and Koa cannot parse all of them.
 */
const onlyPaths: Middleware = (ctx, next) => {
  if (!ctx.req.url?.startsWith('/'))
    throw new DoorwardError('request-invalid', 'the request target is not a path')
  return next()
}

const onlyApiPaths: Middleware = (ctx, next) => {
  if (ctx.path !== '/' && !apiSegments.has(ctx.path.split('/', 2)[1] ?? '')) throw noWebhook()
  return next()
}

const noWebhook = () => new DoorwardError('webhook-not-found', 'there is no webhook at this path')

const neverStored: Middleware = (ctx, next) => {
  ctx.set('Cache-Control', 'no-store')
  ctx.set('X-Content-Type-Options', 'nosniff')
  return next()
}

/**
 * Closes connections from before a restart: the other process has the data. Tokens are still returned, as
 * a program may have one request only; `Leadership` gets them from the other process.
 */
const onlyWhileServing =
  ({ successor, awaitSuccessor }: AppParts['succession']): Middleware =>
  async (ctx, next) => {
    // While it is being decided, only requests that change nothing are answered.
    const isReplaced = (ctx.method === 'GET' ? successor() : await awaitSuccessor()) !== undefined
    if (!isReplaced || tokenPath.test(ctx.path)) return next()
    if (ctx.method !== 'GET') {
      ctx.set('Connection', 'close')
      throw new DoorwardError('stopping', 'the daemon was restarted: send the request again')
    }
    // Clients send it again on a new connection (RFC 9110 section 9.2.2).
    ctx.respond = false
    ctx.req.destroy()
    return undefined
  }

const tokenPath = /^\/oauth\/tokens\/[^/]+\/access$/

/** Answers what no route handled: 405 for another method of a known path, else 404. */
const refuse =
  (routers: readonly Router[]): Middleware =>
  (ctx) => {
    const methods = routers.flatMap((router) =>
      router.match(ctx.path, ctx.method).path.flatMap((layer) => layer.methods),
    )
    if (methods.length === 0) throw new DoorwardError('not-found', 'there is no such route')
    ctx.set('Allow', [...new Set(methods)].join(', '))
    throw new DoorwardError('method-not-allowed', 'this route does not allow this method')
  }
