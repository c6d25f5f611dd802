import type { Router } from '@koa/router'
import type { EventLink } from '../../shared/api.ts'
import { exactRouter } from '../http/exact-router.ts'
import type { EventStore } from '../events/event-store.ts'
import { eventNotFound } from '../webhook/retry-event.ts'
import type { EventLinks } from './links.ts'
import { pagePath } from './page-path.ts'

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
