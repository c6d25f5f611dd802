import type { Router } from '@koa/router'
import { catchUpSchema } from '../../shared/api-missed.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { exactRouter, readJsonBody } from '../http/body.ts'
import type { CatchUp } from './catch-up.ts'

/** Deliveries that did not arrive, as part of the local API. */
export const missedRoutes = (catchUp: Pick<CatchUp, 'list' | 'decide'>): Router => {
  const router = exactRouter()
  router.get('/events/missed', async (ctx) => {
    const { fresh } = ctx.query
    if (fresh !== undefined && fresh !== 'true')
      throw new DoorwardError('request-invalid', 'fresh is not true')
    ctx.body = { hooks: await catchUp.list(fresh === 'true') }
  })
  router.post('/events/missed', async (ctx) => {
    ctx.body = await catchUp.decide(await readJsonBody(ctx, catchUpSchema))
  })
  return router
}
