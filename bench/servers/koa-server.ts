import { createHmac, timingSafeEqual } from 'node:crypto'
import { Router } from '@koa/router'
import Koa from 'koa'

/* What the framework costs: Koa with its router, the same check and the same parse. */

const secret = process.env['BENCH_SECRET'] ?? ''
const router = new Router()
router.post('/webhook/github', async (ctx) => {
  const chunks: Buffer[] = []
  for await (const chunk of ctx.req as AsyncIterable<Buffer>) chunks.push(chunk)
  const body = Buffer.concat(chunks)
  const given = Buffer.from(ctx.get('x-hub-signature-256').slice(7), 'hex')
  const digest = createHmac('sha256', secret).update(body).digest()
  const fits = given.length === digest.length && timingSafeEqual(given, digest)
  if (fits) JSON.parse(body.toString('utf8'))
  ctx.status = fits ? 202 : 401
  ctx.body = { id: 'evt_000000000000000000', status: 'accepted' }
})
new Koa().use(router.routes()).listen(Number(process.argv[2]), '127.0.0.1')
