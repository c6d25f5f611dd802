import { constantTimeEqual } from '../../shared/constant-time.ts'
import type { Context, Middleware } from 'koa'
import type { Status } from '../../shared/api/api.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { isOtherUser, userOfPeer } from '../../shared/network/tcp-table.ts'
import { exactRouter } from '../http/body.ts'
import { refuseForeign } from '../http/guard.ts'
import type { EventStream } from '../http/sse.ts'
import type { Log } from '../log/log.ts'
import { knownError } from '../util/assets.ts'
import { loadPageAssets } from './assets.ts'
import type { Browser, Browsers } from './browsers.ts'
import { linkPrefix, linkRoute } from './link.ts'
import { renderDocument, renderMessage } from './layout.ts'
import { markup } from './markup.ts'
import { createOwnApi } from './own-api.ts'
import {
  type Refusal,
  linkExpired,
  noSession,
  notAPerson,
  otherUser,
  whyNoPerson,
} from './person.ts'
import { timesIn } from './times.ts'
import { type Action, type PageRequest, readForm, type View } from './view.ts'
import { views } from './views.ts'

/*
 * The page of doorward, as a browser asks for it, without the bearer token:
 *
 *   this machine -> a person's browser -> of this user -> with a link, or its key -> a view, or an action
 *
 * Nothing is used up, and nothing is done, before the last check. A view is HTML made from what the local API says;
 * an action is one of the API's, and leads back to its view.
 */

type PageParts = {
  readonly apiToken: string
  readonly port: () => number
  readonly url: () => string
  readonly browsers: Browsers
  readonly stream: EventStream
  readonly log: Log
}

/** Answers `/` and everything below `/ui/` but the route of the API there. */
export const servePage = (parts: PageParts): Middleware => {
  const page = new Page(parts)
  return (ctx, next) => (isOnPage(ctx.path) ? page.answer(ctx) : next())
}

/** True for a path of the page, which a browser asks for without the bearer token. */
export const isOnPage = (path: string): boolean =>
  path === '/' || (path.startsWith('/ui') && path !== linkRoute)

const warnEveryMs = 60_000

class Page {
  readonly #parts: PageParts
  readonly #assets = loadPageAssets()
  readonly #api: PageRequest['api']
  readonly #views: Middleware
  /** Connections whose program is known to be the owner's. */
  readonly #own = new WeakSet<object>()
  #lastWarning = -warnEveryMs

  constructor(parts: PageParts) {
    this.#parts = parts
    this.#api = createOwnApi(parts.apiToken, parts.url)
    this.#views = this.#route()
  }

  async answer(ctx: Context): Promise<void> {
    refuseForeign(ctx.req, this.#parts.port())
    if (!['GET', 'HEAD', 'POST'].includes(ctx.method)) {
      ctx.set('Allow', 'GET, HEAD, POST')
      throw new DoorwardError('method-not-allowed', 'the page accepts only GET and POST')
    }
    setHeaders(ctx)
    const reason = whyNoPerson(ctx.method, ctx.req.headers, `http://${ctx.req.headers.host}`)
    if (reason) return refuse(ctx, notAPerson(reason))
    if (ctx.path.startsWith('/ui/assets/')) return this.#sendAsset(ctx)
    if (await this.#isOfOtherUser(ctx)) return refuse(ctx, otherUser)
    if (ctx.path.startsWith(linkPrefix)) return this.#openLink(ctx)
    const browser = this.#parts.browsers.find(ctx.cookies.get(this.#cookieName()))
    if (!browser) return refuse(ctx, noSession)
    if (ctx.path === '/ui/stream') return this.#openStream(ctx)
    ctx.state['browser'] = browser
    return this.#views(ctx, async () => this.#showNothing(ctx))
  }

  /** Browsers send cookies to all ports of a host, so the name says whose it is. */
  #cookieName(): string {
    return `doorward-${this.#parts.port()}`
  }

  #openLink(ctx: Context): void {
    const { browsers } = this.#parts
    const code = ctx.path.slice(linkPrefix.length)
    if (!browsers.isUnused(code)) return refuse(ctx, linkExpired)
    // A script that another program left at this address must not use it up.
    if (!['document', ''].includes(ctx.get('sec-fetch-dest')))
      return refuse(ctx, notAPerson('embedded'))
    ctx.status = 200
    if (ctx.method !== 'GET') return
    const opened = browsers.open(code)
    if (!opened) return refuse(ctx, linkExpired)
    // Another program may have had this port since the daemon stopped, and have left scripts in this browser.
    if (!browsers.find(ctx.cookies.get(this.#cookieName())))
      ctx.set('Clear-Site-Data', '"cache", "storage"')
    // Without an end: a daemon that has stopped knows no key any more.
    ctx.cookies.set(this.#cookieName(), opened.key, { path: '/', sameSite: 'strict' })
    redirect(ctx, opened.to)
  }

  async #openStream(ctx: Context): Promise<void> {
    if (ctx.method !== 'GET') return
    ctx.respond = false
    await this.#parts.stream.open(ctx.req, ctx.res, 'event')
  }

  #sendAsset(ctx: Context): void {
    const asset = this.#assets.get(ctx.path.split('/')[4] ?? '')
    if (!asset) throw new DoorwardError('not-found', 'there is no such file')
    ctx.set('Cache-Control', 'private, max-age=86400')
    ctx.type = `${asset.type}; charset=utf-8`
    ctx.body = asset.text
  }

  /** Each view with its actions. */
  #route(): Middleware {
    const router = exactRouter()
    for (const view of views) {
      router.get(view.path, async (ctx) => this.#show(ctx, view))
      for (const [name, action] of Object.entries(view.actions ?? {}))
        router.post(`${view.path}/${name}`, async (ctx) => this.#act(ctx, action))
    }
    const first = async (ctx: Context) =>
      redirect(ctx, await firstView(await this.#api.get<Status>('/status'), this.#api))
    router.get(['/', '/ui', '/ui/'], first)
    return router.routes() as Middleware
  }

  async #toRequest(ctx: Context, path: string): Promise<PageRequest> {
    const { formKey } = ctx.state['browser'] as Browser
    return {
      api: this.#api,
      status: await this.#api.get<Status>('/status'),
      params: ctx['params'] as Record<string, string>,
      query: new URLSearchParams(ctx.querystring),
      path,
      times: timesIn(ctx.cookies.get('doorward-zone')),
      formKey,
    }
  }

  async #show(ctx: Context, view: View): Promise<void> {
    const request = await this.#toRequest(ctx, ctx.path)
    const shown = await view.show(request).catch(showError)
    // A page that asks again keeps the notice that it shows.
    const isAgain = ctx.get('doorward-live') !== ''
    const notice = isAgain
      ? undefined
      : this.#parts.browsers.takeNotice(ctx.state['browser'] as Browser)
    const { path, status, times } = request
    ctx.status = shown.status ?? 200
    sendHtml(ctx, renderDocument(shown, { path, status, notice, zone: times.zone }))
  }

  async #act(ctx: Context, action: Action): Promise<void> {
    const browser = ctx.state['browser'] as Browser
    const form = await readForm(ctx)
    if (!constantTimeEqual(form.get('form-key') ?? '', browser.formKey))
      return refuse(ctx, notAPerson('other-site'))
    const path = ctx.path.slice(0, ctx.path.lastIndexOf('/'))
    const press = form.get('press')
    // The second request of a double click; the first one says what it has done.
    if (press !== null && !this.#parts.browsers.takePress(press)) return redirect(ctx, path)
    const request = await this.#toRequest(ctx, path)
    const done = await action(request, form).catch((error: unknown) => ({
      notice: describeError(error),
      to: undefined,
    }))
    this.#parts.browsers.leaveNotice(browser, done.notice)
    const query = form.get('back') ?? ''
    return redirect(ctx, done.to ?? (query.startsWith('?') ? `${path}${encodeQuery(query)}` : path))
  }

  #showNothing(ctx: Context): void {
    ctx.status = 404
    const content = markup`<p>There is no such view. <a href="/ui/events">To the events</a></p>`
    sendHtml(ctx, renderMessage('Nothing here', content))
  }

  /** A stolen key is of no use to another user of this machine. */
  async #isOfOtherUser(ctx: Context): Promise<boolean> {
    const { socket } = ctx.req
    if (this.#own.has(socket)) return false
    const user = await userOfPeer(socket)
    if (!isOtherUser(user)) {
      this.#own.add(socket)
      return false
    }
    // At most once a minute: the other user could fill the log.
    if (performance.now() - this.#lastWarning >= warnEveryMs) {
      this.#lastWarning = performance.now()
      this.#parts.log.warn({ user }, 'another user of this machine requested the page')
    }
    return true
  }
}

/** The agent of the sample configuration, which answers the samples of `npm start`. */
const sampleAgent = 'echo'

/** Where `/` leads: to the start of somebody who has nothing yet, else to the events. */
const firstView = async (status: Status, api: PageRequest['api']): Promise<string> => {
  const { bots } = await api.get<{ bots: readonly unknown[] }>('/bots')
  const isNew =
    status.tokens.length === 0 &&
    bots.length === 0 &&
    !status.webhooks.some(({ agent, lastEventAt }) => lastEventAt !== null && agent !== sampleAgent)
  return isNew ? '/ui/start' : '/ui/events'
}

const showError = (error: unknown) => {
  const { code } = knownError(error)
  return {
    title: code === 'event-not-found' ? 'Not in memory' : 'This cannot be shown',
    status: code === 'event-not-found' ? 404 : 500,
    content: markup`<h1>This cannot be shown</h1><p role="alert">${describeError(error)}</p>`,
  }
}

/** What went wrong, and the way out. */
const describeError = (error: unknown): string => {
  const { message, hint } = knownError(error)
  return hint === undefined ? message : `${message} (${hint})`
}

const refuse = (ctx: Context, { status, title, content }: Refusal): void => {
  ctx.status = status
  sendHtml(ctx, renderMessage(title, content))
}

const redirect = (ctx: Context, to: string): void => {
  ctx.status = 303
  ctx.set('Location', to)
  ctx.body = ''
}

/** A header takes no line break, and no letter beyond Latin-1. */
const encodeQuery = (query: string): string => new URL(query, 'http://127.0.0.1').search

const sendHtml = (ctx: Context, html: string): void => {
  ctx.type = 'text/html; charset=utf-8'
  ctx.body = html
}

const setHeaders = (ctx: Context): void => {
  ctx.set({
    'Cache-Control': 'no-store',
    // Browsers send no origin with a form under a stricter one.
    'Referrer-Policy': 'same-origin',
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'DENY',
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Content-Security-Policy': contentSecurityPolicy,
  })
}

const contentSecurityPolicy = [
  `default-src 'none'`,
  `style-src 'self'`,
  `script-src 'self'`,
  `connect-src 'self'`,
  'img-src data:',
  `base-uri 'none'`,
  `form-action 'self'`,
  `frame-ancestors 'none'`,
].join('; ')

/** The path without the code, for the log. */
export const loggedPath = (path: string): string =>
  path.startsWith(linkPrefix) ? `${linkPrefix}…` : path
