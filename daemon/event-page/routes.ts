import { createHash } from 'node:crypto'
import type { Router } from '@koa/router'
import type { Context, Middleware } from 'koa'
import type { EventDetail, EventLink, EventRecord } from '../../shared/api.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { EventStore } from '../events/event-store.ts'
import { exactRouter, type RenderedPage } from '../http/body.ts'
import { refuseForeign } from '../http/guard.ts'
import type { Log } from '../log/log.ts'
import { loadCallbackPage } from '../oauth/login/callback-page.ts'
import { eventNotFound } from '../webhook/retry-event.ts'
import { forgotten, notAPerson, notOpened, otherUser, type Refusal, usedUp } from './error-pages.ts'
import { type EventLinks, keySeconds } from './links.ts'
import { loadEventPage, offersRetry } from './page.ts'
import { userOfPeer } from './peer-user.ts'

/*
 * The page of one event, as a browser asks for it, without the bearer token:
 *
 *   this machine -> a person's browser -> a code that is alive -> this user -> the page
 *
 * Nothing is used up before the last of these checks. A page of an event that goes on asks again, is
 * answered once something has changed, and so shows the answer by itself.
 */

type EventPageParts = {
  readonly port: () => number
  readonly events: EventStore
  readonly links: EventLinks
  /** Runs an event again, or throws why not. */
  readonly retry: (id: string) => EventRecord
  readonly log: Log
}

/** Browsers give up after some five minutes without an answer. */
const longestWaitMs = 120_000
const warnEveryMs = 60_000
const cookieName = 'doorward-page'

/** Answers the links to pages of events, and nothing else. */
export const serveEventPage = (parts: EventPageParts): Middleware => {
  const renderEvent = loadEventPage()
  const renderRefusal = loadCallbackPage()
  const { port, events, links, retry, log } = parts

  const refuse = (ctx: Context, { status, page }: Refusal) =>
    answer(ctx, status, 'no-referrer', renderRefusal(page))

  const show = async (ctx: Context, code: string) => {
    const opened = links.open(code, getKey(ctx))
    if (!opened) return refuse(ctx, usedUp)
    const { eventId, notice, key } = opened
    const seen = ctx.query['seen']
    if (typeof seen === 'string')
      await untilChanged(events, eventId, seen, toAbortSignal(ctx, longestWaitMs))
    const event = events.get(eventId)
    if (!event) return refuse(ctx, forgotten)
    const path = pagePath(code)
    const retryPath = offersRetry(event) ? pagePath(links.issueRetry(eventId)) : undefined
    // Sent to this path alone, which nobody else knows: a cookie is not kept from other ports.
    ctx.cookies.set(cookieName, key, { path, maxAge: keySeconds * 1000, sameSite: 'strict' })
    // With any stricter referrer policy browsers keep the origin of the form to themselves.
    const page = renderEvent({ event, notice, retryPath }, `${path}?seen=${getMark(event)}`)
    return answer(ctx, 200, 'same-origin', page)
  }

  const runAgain = (ctx: Context, code: string) => {
    const taken = links.takeRetry(code)
    if (!taken) return refuse(ctx, usedUp)
    const { eventId, isFirst } = taken
    const notice = isFirst ? toNotice(() => retry(eventId)) : undefined
    const issued = links.issue({ eventId, ...(notice !== undefined && { notice }) })
    ctx.set('Location', pagePath(issued.code))
    return answer(ctx, 303, 'no-referrer')
  }

  let lastWarning = -warnEveryMs
  /** Who has seen a link could fill the log. */
  const warn = (user: number | 'unlisted' | undefined) => {
    if (performance.now() - lastWarning < warnEveryMs) return
    lastWarning = performance.now()
    log.warn({ user }, 'another user of this machine asked for the page of an event')
  }

  return async (ctx, next) => {
    const code = codeIn(ctx.path)
    if (code === undefined) return next()
    refuseForeign(ctx.req, port())
    if (!['GET', 'HEAD', 'POST'].includes(ctx.method)) {
      ctx.set('Allow', 'GET, HEAD, POST')
      throw new DoorwardError('method-not-allowed', 'a page of an event takes GET and POST only')
    }
    const why = notAPerson(ctx.method, ctx.req.headers, `http://${ctx.req.headers.host}`)
    if (why) return refuse(ctx, notOpened(why))
    if (!links.isKnown(code)) return refuse(ctx, usedUp)
    const user = await userOfPeer(ctx.req.socket)
    if (isAnother(user)) {
      warn(user)
      return refuse(ctx, otherUser)
    }
    if (ctx.method === 'HEAD') return answer(ctx, links.isUnused(code) ? 200 : 410, 'no-referrer')
    return ctx.method === 'POST' ? runAgain(ctx, code) : show(ctx, code)
  }
}

const answer = (ctx: Context, status: number, referrer: string, page?: RenderedPage): void => {
  ctx.status = status
  ctx.set({
    'Cache-Control': 'no-store',
    'Referrer-Policy': referrer,
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'DENY',
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Content-Security-Policy': page?.contentSecurityPolicy ?? `default-src 'none'`,
  })
  ctx.type = 'text/html; charset=utf-8'
  ctx.body = page?.html ?? ''
}

const getKey = (ctx: Context): string | undefined => ctx.cookies.get(cookieName)

/** Root may see everything anyway; it is also who passes connections on for Windows into WSL. */
const isAnother = (user: number | 'unlisted' | undefined): boolean =>
  user !== undefined && user !== 0 && user !== process.getuid?.()

/** Ends when the browser has gone, or after so long. */
const toAbortSignal = (ctx: Context, limitMs: number): AbortSignal => {
  const over = new AbortController()
  const timer = setTimeout(() => over.abort(), limitMs).unref()
  ctx.res.once('close', () => {
    clearTimeout(timer)
    over.abort()
  })
  return over.signal
}

const toNotice = (run: () => void): string => {
  try {
    run()
    return 'It runs again.'
  } catch (error) {
    if (!(error instanceof DoorwardError)) throw error
    const { message, hint } = error
    return hint === undefined ? message : `${message} (${hint})`
  }
}

/** The part of the local API that makes links to pages of events. */
export const linkRoutes = (events: EventStore, links: EventLinks, url: () => string): Router => {
  const router = exactRouter()
  router.post('/events/:id/link', (ctx) => {
    const eventId = String(ctx.params['id'])
    if (!events.record(eventId)) throw eventNotFound()
    const { code, expiresAt } = links.issue({ eventId })
    const link: EventLink = {
      url: new URL(pagePath(code), url()).href,
      expiresAt: expiresAt.toISOString(),
    }
    ctx.status = 201
    ctx.body = link
  })
  return router
}

/** A short text that is another one after each change of an event. */
const getMark = ({ prompt: _prompt, result: _result, ...record }: EventDetail): string =>
  createHash('sha256').update(JSON.stringify(record)).digest('base64url').slice(0, 16)

/** Resolves once an event is no longer as it was with this mark, has gone, or `signal` ends the wait. */
const untilChanged = async (
  events: EventStore,
  id: string,
  mark: string,
  signal: AbortSignal,
): Promise<void> => {
  const isSame = () => {
    const event = events.get(id)
    return event !== undefined && getMark(event) === mark
  }
  await new Promise<void>((resolve) => {
    const look = () => {
      if (isSame() && !signal.aborted) return
      unfollow()
      signal.removeEventListener('abort', look)
      resolve()
    }
    const unfollow = events.follow(({ record }) => {
      if (record.id === id) look()
    })
    signal.addEventListener('abort', look)
    look()
  })
}

const prefix = '/events/view/'

/** Where a one-time code leads. */
export const pagePath = (code: string): string => `${prefix}${code}`

/** The code in a path that is one of ours, else undefined. */
export const codeIn = (path: string): string | undefined =>
  /^\/events\/view\/([\w-]{43})$/.exec(path)?.[1]

/** The path as it may be logged: without a code. */
export const loggedPath = (path: string): string => (path.startsWith(prefix) ? `${prefix}…` : path)
