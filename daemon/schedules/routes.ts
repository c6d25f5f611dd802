import type { Router } from '@koa/router'
import { exactRouter } from '../http/body.ts'
import { readText } from '../http/query.ts'
import type { Scheduler } from './scheduler.ts'

/** `GET /schedules`, and what the owner does with one. */
export const scheduleRoutes = (scheduler: Scheduler): Router => {
  const router = exactRouter()
  const nameOf = (params: Record<string, string | undefined>) => String(params['name'])
  router.get('/schedules', (ctx) => {
    ctx.body = { schedules: scheduler.list() }
  })
  router.post('/schedules/:name/run', async (ctx) => {
    ctx.body = await scheduler.run(nameOf(ctx.params))
    ctx.status = 202
  })
  router.post('/schedules/:name/pause', (ctx) => {
    ctx.body = scheduler.pause(nameOf(ctx.params))
  })
  router.post('/schedules/:name/resume', (ctx) => {
    ctx.body = scheduler.resume(nameOf(ctx.params))
  })
  router.delete('/schedules/missed', (ctx) => {
    ctx.body = { skipped: scheduler.skipMissed(readText(ctx, 'name')) }
  })
  return router
}
