import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type Server, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Router } from '@koa/router'
import { createApp } from '../../daemon/app.ts'
import { createGuard } from '../../daemon/http/guard.ts'
import { sendJson } from '../../daemon/http/respond.ts'
import { Succession } from '../../daemon/restart/succession.ts'
import { problemSchema } from '../../shared/api/api.ts'
import { send } from '../support/servers/http.ts'

const apiToken = 'the token of this test, long enough'
const silent = () => undefined
const log = { debug: silent, info: silent, warn: silent, error: silent }

describe('the app, asked by another machine', () => {
  let server: Server
  let url: string

  before(async () => {
    const routes = new Router().get('/status', (ctx) => {
      ctx.body = {}
    })
    const app = createApp({
      succession: new Succession(),
      apiToken,
      guard: createGuard(apiToken, () => (server.address() as AddressInfo).port),
      log,
      serveWebhook: (request, response) => {
        if (request.url !== '/hook') return false
        sendJson(response, 202, { status: 'accepted' })
        return true
      },
      page: (_, next) => next(),
      routers: [routes],
    })
    server = createServer(app)
    // The connection stays on loopback; only the name of its other end is another machine's.
    server.on('connection', (socket) =>
      Object.defineProperty(socket, 'remoteAddress', { value: '192.0.2.7' }),
    )
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  after(() => {
    server.close()
    server.closeAllConnections()
  })

  const ask = async (path: string): Promise<[number, string]> => {
    const headers = { authorization: `Bearer ${apiToken}` }
    const reply = await send(`${url}${path}`, { method: 'GET', headers })
    return [reply.status, problemSchema.parse(reply.json()).code]
  }

  it('refuses every route of the local API, even with the right token', async () => {
    for (const path of [
      '/status',
      '/events',
      '/oauth/tokens',
      '/daemon/shutdown',
      '/metrics',
      '/checks',
    ])
      assert.deepEqual(await ask(path), [403, 'peer-forbidden'])
  })

  it('does not identify itself', async () => {
    assert.deepEqual(await ask('/health'), [404, 'webhook-not-found'])
  })

  it('serves webhooks', async () => {
    assert.equal((await send(`${url}/hook`)).json()['status'], 'accepted')
  })
})
