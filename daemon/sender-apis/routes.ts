import type { Router, RouterContext } from '@koa/router'
import { z } from 'zod'
import { connectHookSchema } from '../../shared/api-hooks.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { exactRouter, readJsonBody } from '../http/body.ts'
import type { Hooks } from './hooks.ts'

const pingSchema = z.strictObject({ path: z.string().min(1).max(1000) })

/** The hooks at the senders, as part of the local API. */
export const hookRoutes = (
  hooks: Pick<Hooks, 'list' | 'connect' | 'ping' | 'disconnect'>,
): Router => {
  const router = exactRouter()
  router.get('/webhooks/hooks', async (ctx) => {
    ctx.body = { hooks: await hooks.list(abortOnClose(ctx)) }
  })
  router.post('/webhooks/hooks', async (ctx) => {
    const request = await readJsonBody(ctx, connectHookSchema)
    // Goes on when the client leaves: a hook whose number is lost could not be deleted.
    ctx.body = await hooks.connect(request, new AbortController().signal)
  })
  router.post('/webhooks/hooks/ping', async (ctx) => {
    const { path } = await readJsonBody(ctx, pingSchema)
    ctx.body = await hooks.ping(path, abortOnClose(ctx))
  })
  router.delete('/webhooks/hooks', async (ctx) => {
    const { path } = ctx.query
    if (typeof path !== 'string') throw new DoorwardError('request-invalid', 'path: required, once')
    ctx.body = await hooks.disconnect(path, new AbortController().signal)
  })
  return router
}

const abortOnClose = (ctx: RouterContext): AbortSignal => {
  const control = new AbortController()
  ctx.res.once('close', () => control.abort())
  return control.signal
}
