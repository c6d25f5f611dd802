import type { Router, RouterContext } from '@koa/router'
import { createBotSchema, rotateBotSchema } from '../../shared/api/bots.ts'
import { exactRouter, readJsonBody } from '../http/body.ts'
import type { Bots } from './bots.ts'

const maxWaitS = 60

/** The bots of the local API. The guard has let in only the owner's own programs. */
export const botRoutes = (bots: Bots): Router => {
  const router = exactRouter()
  const answer = (ctx: RouterContext, status: number, document: object): void => {
    ctx.set('cache-control', 'no-store')
    ctx.status = status
    ctx.body = document
  }
  const name = (ctx: RouterContext): string => ctx.params['name'] ?? ''

  router.get('/bots', async (ctx) => answer(ctx, 200, { bots: await bots.list() }))

  router.post('/bots', async (ctx) => {
    answer(ctx, 201, await bots.creations.start(await readJsonBody(ctx, createBotSchema)))
  })

  router.get('/bots/creations/:id', async (ctx) => {
    const id = ctx.params['id'] ?? ''
    const waitS = Math.min(Number(ctx.query['wait'] ?? 0) || 0, maxWaitS)
    const control = new AbortController()
    ctx.res.once('close', () => control.abort())
    if (waitS > 0) await bots.creations.waitForEnd(id, waitS * 1000, control.signal)
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
