import type { Router } from '@koa/router'
import { z } from 'zod'
import { tunnelPrograms } from '../../shared/api-tunnel.ts'
import { exactRouter, readJsonBody } from '../http/body.ts'
import type { Tunnel } from './tunnel.ts'

const startSchema = z.strictObject({ with: z.enum(tunnelPrograms).optional() })

/** The tunnel, as part of the local API. */
export const tunnelRoutes = (tunnel: Pick<Tunnel, 'start' | 'stop' | 'status'>): Router => {
  const router = exactRouter()
  router.get('/daemon/tunnel', (ctx) => {
    ctx.body = tunnel.status()
  })
  router.post('/daemon/tunnel', async (ctx) => {
    await tunnel.start((await readJsonBody(ctx, startSchema)).with)
    ctx.body = tunnel.status()
  })
  router.delete('/daemon/tunnel', async (ctx) => {
    await tunnel.stop()
    ctx.body = tunnel.status()
  })
  return router
}
