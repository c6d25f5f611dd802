import type { RequestListener } from 'node:http'
import type { Router } from '@koa/router'
import Koa, { type Middleware } from 'koa'
import { DoorwardError } from '../shared/errors.ts'
import { loggedPath } from './event-page/routes.ts'
import type { Guard } from './http/guard.ts'
import type { Log } from './log/log.ts'
import { logInternal, sayHowToAsk, type ServeFirst } from './http/respond.ts'
import { problemMediaType, toProblem } from './http/problem.ts'
import { serveHealth } from './http/health.ts'

/** First parts of paths that belong to the local API; no webhook can have them. */
const apiSegments = new Set(['oauth', 'events', 'webhooks', 'status', 'metrics', 'daemon'])

export type AppParts = {
  readonly apiToken: string
  readonly guard: Guard
  readonly log: Log
  /** Answer the paths of webhooks, and what is asked for so often that it is answered at once. */
  readonly first: readonly ServeFirst[]
  /** Answers browsers that come by a link to an event. */
  readonly eventPage: Middleware
  /** Hands what belongs to another daemon by now to that. */
  readonly passOn: Middleware
  readonly routers: readonly Router[]
}

/**
 * The whole daemon as what answers requests: webhooks, else a Koa app. The order of this list is the
 * order of the checks.
 */
export const createApp = ({
  apiToken,
  guard,
  log,
  first,
  eventPage,
  passOn,
  routers,
}: AppParts): RequestListener => {
  const app = new Koa()
  app.silent = true
  app.use(answerErrors(log))
  app.use(onlyPaths)
  app.use(onlyApiPaths)
  app.use(eventPage)
  app.use(guarded(guard))
  app.use(neverStored)
  app.use(passOn)
  for (const router of routers) app.use(router.routes())
  app.use(refuse(routers))
  return inFront([...first, serveHealth(apiToken, log)], app)
}

/** What the public port serves: webhooks, and nothing that says what else there is. */
export const createPublicApp = ({
  log,
  webhooks,
}: {
  readonly log: Log
  readonly webhooks: ServeFirst
}): RequestListener => {
  const app = new Koa()
  app.silent = true
  app.use(answerErrors(log))
  app.use(onlyPaths)
  app.use(() => {
    throw noWebhook()
  })
  return inFront([webhooks], app)
}

const inFront = (first: readonly ServeFirst[], app: Koa): RequestListener => {
  const handle = app.callback()
  return (request, response) => {
    for (const serve of first) if (serve(request, response)) return
    void handle(request, response)
  }
}

const guarded =
  (guard: Guard): Middleware =>
  async (ctx, next) => {
    try {
      guard(ctx.req)
    } catch (error) {
      sayHowToAsk(ctx.res, error)
      throw error
    }
    await next()
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
 * Refuses a request target that is no path (RFC 9112 section 3.2): the forms for proxies carry a host
 * of their own that would count for more than `Host`, and Koa cannot read all of them.
 */
const onlyPaths: Middleware = async (ctx, next) => {
  if (!ctx.req.url?.startsWith('/'))
    throw new DoorwardError('request-invalid', 'the request target is not a path')
  await next()
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
