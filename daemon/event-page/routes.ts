import { createHash } from 'node:crypto'
import type { Router } from '@koa/router'
import type { Context, Middleware } from 'koa'
import { z } from 'zod'
import {
  againSchema,
  type EventDetail,
  type EventLink,
  type EventRecord,
} from '../../shared/api/api.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { isOtherUser, userOfPeer } from '../../shared/network/tcp-table.ts'
import type { EventStore } from '../events/event-store.ts'
import { exactRouter, type RenderedPage } from '../http/body.ts'
import { refuseForeign } from '../http/guard.ts'
import type { Approvals } from '../webhook/approvals/approvals.ts'
import type { Log } from '../log/log.ts'
import { loadCallbackPage } from '../oauth/login/callback-page.ts'
import {
  type ErrorPage,
  eventForgotten,
  linkExpired,
  notAPerson,
  otherUser,
  whyNotAPerson,
} from './error-pages.ts'
import { type ButtonAction, type EventLinks, keySeconds } from './links.ts'
import { getButton, getForms, loadEventPage } from './page.ts'

/*
 * The page of one event, as a browser requests it, without the bearer token:
 *
 *   this machine -> a person's browser -> a valid code -> this user -> the page
 *
 * Nothing is used up before the last check. The page of an unfinished event reloads itself; that request
 * waits until something has changed.
 */

/** Actions of a person on an event. Each throws why it cannot be done. */
export type EventControls = {
  readonly retry: (id: string) => EventRecord
  /** Runs the payload of an event once more, as the webhook is now. */
  readonly runAgain: (id: string) => EventRecord
  readonly cancel: (id: string) => EventRecord
  readonly approvals: Approvals
  readonly forget: (id: string) => EventRecord
}

type EventPageParts = EventControls & {
  readonly port: () => number
  readonly events: EventStore
  readonly links: EventLinks
  readonly log: Log
}

/** Browsers stop waiting after some five minutes without a response. */
const maxWaitMs = 120_000
const warnEveryMs = 60_000
const cookieName = 'doorward-page'

/** Answers the links to pages of events, and nothing else. */
export const serveEventPage = (parts: EventPageParts): Middleware => new EventPage(parts).handle

class EventPage {
  readonly #parts: EventPageParts
  readonly #renderEvent = loadEventPage()
  readonly #renderError = loadCallbackPage()
  #lastWarning = -warnEveryMs

  constructor(parts: EventPageParts) {
    this.#parts = parts
  }

  readonly handle: Middleware = (ctx, next) => {
    const code = codeIn(ctx.path)
    return code === undefined ? next() : this.#answer(ctx, code)
  }

  async #answer(ctx: Context, code: string): Promise<void> {
    const { port, links } = this.#parts
    refuseForeign(ctx.req, port())
    if (!['GET', 'HEAD', 'POST'].includes(ctx.method)) {
      ctx.set('Allow', 'GET, HEAD, POST')
      throw new DoorwardError('method-not-allowed', 'a page of an event accepts only GET and POST')
    }
    const reason = whyNotAPerson(ctx.method, ctx.req.headers, `http://${ctx.req.headers.host}`)
    if (reason) return this.#refuse(ctx, notAPerson(reason))
    if (!links.isKnown(code)) return this.#refuse(ctx, linkExpired)
    const user = await userOfPeer(ctx.req.socket)
    if (isOtherUser(user)) {
      this.#warn(user)
      return this.#refuse(ctx, otherUser)
    }
    if (ctx.method === 'HEAD') return respond(ctx, links.isUnused(code) ? 200 : 410, 'no-referrer')
    return ctx.method === 'POST' ? this.#press(ctx, code) : this.#show(ctx, code)
  }

  async #show(ctx: Context, code: string): Promise<void> {
    const { events, links } = this.#parts
    const page = links.open(code, ctx.cookies.get(cookieName))
    if (!page) return this.#refuse(ctx, linkExpired)
    const { eventId, notice, key } = page
    const seen = ctx.query['seen']
    if (typeof seen === 'string')
      await waitForChange(events, eventId, seen, toAbortSignal(ctx, maxWaitMs))
    const event = events.get(eventId)
    if (!event) return this.#refuse(ctx, eventForgotten)
    const path = pagePath(code)
    const action = getButton(event)
    const buttonPath = action && pagePath(links.issueButton(eventId, action))
    // For this secret path only: browsers send cookies to all ports of a host.
    ctx.cookies.set(cookieName, key, { path, maxAge: keySeconds * 1000, sameSite: 'strict' })
    const formPaths = Object.fromEntries(
      getForms(event).map((form) => [
        form,
        pagePath(links.issueButton(eventId, form, event.approval?.digest)),
      ]),
    )
    const html = this.#renderEvent(
      { event, notice, buttonPath, formPaths },
      `${path}?seen=${toDigest(event)}`,
    )
    // Browsers send no origin with the form under a stricter referrer policy.
    return respond(ctx, 200, 'same-origin', html)
  }

  async #press(ctx: Context, code: string): Promise<void> {
    const { links } = this.#parts
    const button = links.takeButton(code)
    if (!button) return this.#refuse(ctx, linkExpired)
    const { eventId, action, shown, isFirst } = button
    const fields = new URLSearchParams(await readForm(ctx))
    const act = async () => this.#act(action, eventId, fields, shown)
    const notice = isFirst ? await toNotice(act, done[action]) : undefined
    const link = links.issue({ eventId, ...(notice !== undefined && { notice }) })
    ctx.set('Location', pagePath(link.code))
    return respond(ctx, 303, 'no-referrer')
  }

  async #act(
    action: ButtonAction,
    id: string,
    fields: URLSearchParams,
    shown: string | undefined,
  ): Promise<EventRecord> {
    const { approvals } = this.#parts
    const by = { by: 'owner', where: 'page' }
    switch (action) {
      case 'retry':
      case 'runAgain':
      case 'cancel':
        return this.#parts[action](id)
      case 'approve': {
        const kept = new Set(fields.getAll('with').map(Number))
        const count = Math.min(Number(fields.get('comments')) || 0, 1000)
        const without = [...Array(count).keys()].filter((place) => !kept.has(place))
        return approvals.approve(id, by, without, shown)
      }
      case 'reject':
        return approvals.reject(id, by, shown)
      case 'again': {
        const { remark } = againSchema
          .pick({ remark: true })
          .parse({ remark: fields.get('remark') })
        return approvals.again(id, by, remark, shown)
      }
      case 'deliver':
        return approvals.deliver(id)
    }
  }

  #refuse(ctx: Context, { status, page }: ErrorPage): void {
    respond(ctx, status, 'no-referrer', this.#renderError(page))
  }

  /** At most once a minute: the other user could fill the log. */
  #warn(user: number | 'unlisted' | undefined): void {
    if (performance.now() - this.#lastWarning < warnEveryMs) return
    this.#lastWarning = performance.now()
    this.#parts.log.warn({ user }, 'another user of this machine requested the page of an event')
  }
}

const respond = (ctx: Context, status: number, referrer: string, page?: RenderedPage): void => {
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

/** Aborts when the browser disconnects, or after this time. */
const toAbortSignal = (ctx: Context, limitMs: number): AbortSignal => {
  const controller = new AbortController()
  const timer = setTimeout(() => controller.abort(), limitMs).unref()
  ctx.res.once('close', () => {
    clearTimeout(timer)
    controller.abort()
  })
  return controller.signal
}

const maxFormBytes = 64 * 1024

/** The fields of a form; none of them is longer than a remark. */
const readForm = async (ctx: Context): Promise<string> => {
  let text = ''
  for await (const chunk of ctx.req) {
    text += String(chunk)
    if (text.length > maxFormBytes)
      throw new DoorwardError('body-too-large', `the form is larger than ${maxFormBytes} bytes`)
  }
  return text
}

const done = {
  retry: 'The event runs again.',
  runAgain: 'The event runs again.',
  cancel: 'The event is being cancelled.',
  approve: 'It is being sent.',
  reject: 'Nothing is sent.',
  again: 'The agent runs again, with your words.',
  deliver: 'It is being sent.',
} as const

const toNotice = async (run: () => Promise<unknown>, doneText: string): Promise<string> => {
  try {
    await run()
    return doneText
  } catch (error) {
    if (error instanceof z.ZodError) return 'a remark has 1 to 4000 characters'
    if (!(error instanceof DoorwardError)) throw error
    const { message, hint } = error
    return hint === undefined ? message : `${message} (${hint})`
  }
}

/** The route of the local API that issues links to pages of events. */
export const linkRoutes = (events: EventStore, links: EventLinks, url: () => string): Router => {
  const router = exactRouter()
  router.post('/events/:id/link', (ctx) => {
    const eventId = events.resolve(String(ctx.params['id']))
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

/** Changes with each change of the event. */
const toDigest = ({ prompt: _prompt, result: _result, ...record }: EventDetail): string =>
  createHash('sha256').update(JSON.stringify(record)).digest('base64url').slice(0, 16)

/** Resolves when the event no longer has this digest, is removed, or on abort. */
const waitForChange = async (
  events: EventStore,
  id: string,
  digest: string,
  signal: AbortSignal,
): Promise<void> => {
  const isSame = () => {
    const event = events.get(id)
    return event !== undefined && toDigest(event) === digest
  }
  await new Promise<void>((resolve) => {
    const check = () => {
      if (isSame() && !signal.aborted) return
      unfollow()
      signal.removeEventListener('abort', check)
      resolve()
    }
    const unfollow = events.follow(({ record }) => {
      if (record.id === id) check()
    })
    signal.addEventListener('abort', check)
    check()
  })
}

const prefix = '/events/view/'

/** The path for a one-time code. */
export const pagePath = (code: string): string => `${prefix}${code}`

/** The code in the path of a page, else undefined. */
export const codeIn = (path: string): string | undefined =>
  /^\/events\/view\/([\w-]{43})$/.exec(path)?.[1]

/** The path without the code, for the log. */
export const loggedPath = (path: string): string => (path.startsWith(prefix) ? `${prefix}…` : path)
