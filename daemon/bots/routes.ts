import type { Router, RouterContext } from '@koa/router'
import { createBotSchema, rotateBotSchema } from '../../shared/api/bots.ts'
import { exactRouter, readJsonBody } from '../http/body.ts'
import { abortOnClose, answer, readSeconds } from '../http/query.ts'
import type { Bots } from './bots.ts'

const maxWaitMs = 60_000

/** The bots of the local API. The guard has let in only the owner's own programs. */
export const botRoutes = (bots: Bots): Router => {
  const router = exactRouter()
  const name = (ctx: RouterContext): string => ctx.params['name'] ?? ''

  router.get('/bots', async (ctx) => answer(ctx, 200, { bots: await bots.list() }))

  router.post('/bots', async (ctx) => {
    answer(ctx, 201, await bots.creations.start(await readJsonBody(ctx, createBotSchema)))
  })

  router.get('/bots/creations/:id', async (ctx) => {
    const id = ctx.params['id'] ?? ''
    const waitMs = Math.min(readSeconds(ctx, 'wait') ?? 0, maxWaitMs)
    if (waitMs > 0) await bots.creations.waitForEnd(id, waitMs, abortOnClose(ctx))
    answer(ctx, 200, bots.creations.view(id))
  })

  router.delete('/bots/creations/:id', (ctx) => {
    bots.creations.cancel(ctx.params['id'] ?? '')
    ctx.status = 204
  })

  router.get('/bots/:name', async (ctx) => answer(ctx, 200, await bots.show(name(ctx))))

  router.post('/bots/:name/rotate', async (ctx) => {
    answer(ctx, 200, await bots.rotate(name(ctx), await readJsonBody(ctx, rotateBotSchema)))
  })

  router.delete('/bots/:name', async (ctx) => answer(ctx, 200, await bots.remove(name(ctx))))

  return router
}
