import type { Router } from '@koa/router'
import { z } from 'zod'
import type { EventLink } from '../../shared/api/api.ts'
import type { EventStore } from '../events/event-store.ts'
import type { History } from '../history/history.ts'
import { exactRouter, readJsonBody } from '../http/body.ts'
import type { Browsers } from './browsers.ts'

export const linkRoute = '/ui/link'
/** The path of a link before its code. */
export const linkPrefix = `${linkRoute}/`

/** Body of `POST /ui/link`: the view that the link opens. Only a path of the page, never another address. */
const linkSchema = z.strictObject({
  to: z
    .string()
    .max(500)
    .regex(/^\/(ui\/[\w/.:-]*(\?[\w=&%.:+-]*)?)?$/, 'not a path of the page')
    .default('/'),
})

type LinkParts = {
  readonly browsers: Browsers
  readonly events: Pick<EventStore, 'record' | 'resolve'>
  readonly history: Pick<History, 'find'>
  readonly url: () => string
}

/** The routes of the local API that issue links to views. Each link works once. */
export const pageLinkRoutes = ({ browsers, events, history, url }: LinkParts): Router => {
  const router = exactRouter()
  router.post(linkRoute, async (ctx) => {
    const { to } = await readJsonBody(ctx, linkSchema)
    ctx.status = 201
    ctx.body = issueLink(browsers, url(), to)
  })
  router.post('/events/:id/link', async (ctx) => {
    const typed = String(ctx.params['id'])
    const past = events.record(typed) ? undefined : await history.find(typed)
    const id = past?.id ?? events.resolve(typed)
    ctx.status = 201
    ctx.body = issueLink(browsers, url(), `/ui/events/${id}`)
  })
  return router
}

/** A link to a view that works once. */
export const issueLink = (browsers: Browsers, url: string, to: string): EventLink => {
  const { code, expiresAt } = browsers.issueLink(to)
  return { url: new URL(`${linkPrefix}${code}`, url).href, expiresAt: expiresAt.toISOString() }
}
