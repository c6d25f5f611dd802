import { Router } from '@koa/router'

/** A router whose paths match exactly, case and trailing slash included, as those of webhooks do. */
export const exactRouter = (): Router => new Router({ sensitive: true, strict: true })
