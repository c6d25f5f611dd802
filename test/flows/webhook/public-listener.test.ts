import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import type { DaemonFile, Status, WebhookSummary } from '../../../shared/api/api.ts'
import { isForwarded } from '../../../daemon/http/guard.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { send } from '../../support/servers/http.ts'

const json = { 'content-type': 'application/json' }

describe('the public port', () => {
  let daemon: RunningDaemon
  let publicUrl: string

  before(async () => {
    daemon = await startDaemon({
      gateway: 'server: { public_port: 0 }\noauth: { callback_port: 0 }\n',
      webhooks: 'webhooks:\n  - { path: /hook, agent: echo, prompt_template: "{{event.a}}" }\n',
    })
    publicUrl = (await daemon.client.get<Status>('/status')).publicUrl ?? ''
  })
  after(async () => assert.equal(await daemon.stop(), 0))

  it('serves webhooks, under any name and with forwarding headers', async () => {
    const headers = { ...json, host: 'hooks.example', 'x-forwarded-for': '192.0.2.1' }
    for (const path of ['/hook', '/webhook/hook']) {
      const reply = await send(`${publicUrl}${path}`, { headers, body: '{"a":"b"}' })
      assert.equal(reply.status, 202)
      assert.equal((await untilFinished(daemon, String(reply.json()['id']))).result, 'b')
    }
    const get = await send(`${publicUrl}/hook`, { method: 'GET' })
    assert.deepEqual([get.status, get.headers['allow']], [405, 'POST'])
  })

  it('serves nothing else: all of it is the 404 of an unknown webhook, with the token too', async () => {
    const unknown = await send(`${publicUrl}/unknown`, { headers: json, body: '{}' })
    assert.deepEqual([unknown.status, unknown.json()['code']], [404, 'webhook-not-found'])
    const headers = { authorization: `Bearer ${daemon.apiToken}` }
    for (const path of ['/health', '/status', '/events', '/webhooks', '/oauth/tokens', '/'])
      for (const method of ['GET', 'POST']) {
        const reply = await send(`${publicUrl}${path}`, { method, headers })
        assert.deepEqual([path, reply.status, reply.text], [path, 404, unknown.text])
      }
  })

  it('is in the addresses that a sender is given', async () => {
    assert.notEqual(new URL(publicUrl).port, new URL(daemon.url).port)
    const { webhooks } = await daemon.client.get<{ webhooks: WebhookSummary[] }>('/webhooks')
    assert.equal(webhooks[0]?.url, `${publicUrl}/webhook/hook`)
    const file = JSON.parse(await readFile(daemon.home.daemonJson, 'utf8')) as DaemonFile
    assert.deepEqual([file.url, file.publicUrl], [daemon.url, publicUrl])
  })
})

describe('a request that a proxy has passed on', () => {
  let daemon: RunningDaemon
  const headersOfProxies = {
    forwarded: 'for=192.0.2.1',
    via: '1.1 proxy',
    'x-forwarded-for': '127.0.0.1',
    'x-forwarded-host': 'localhost',
    'x-real-ip': '127.0.0.1',
    'cf-connecting-ip': '192.0.2.1',
    'cf-ray': '1',
    'tailscale-user-login': 'a@example.com',
    'ngrok-trace-id': '1',
  }

  before(async () => {
    daemon = await startDaemon({
      webhooks: 'webhooks:\n  - { path: /hook, agent: echo, prompt_template: x }\n',
    })
  })
  after(async () => assert.equal(await daemon.stop(), 0))

  for (const [name, value] of Object.entries(headersOfProxies))
    it(`is refused on every route but webhooks and /health (${name})`, async () => {
      const headers = { [name]: value, authorization: `Bearer ${daemon.apiToken}` }
      for (const [method, path] of [
        ['GET', '/status'],
        ['POST', '/events/evt_1/retry'],
        ['GET', '/oauth/tokens/github/access'],
      ] as const) {
        const reply = await send(`${daemon.url}${path}`, { method, headers })
        assert.deepEqual([reply.status, reply.json()['code']], [403, 'forwarded-forbidden'])
      }
      const health = await send(`${daemon.url}/health`, { method: 'GET', headers })
      assert.equal(health.status, 200)
      const hook = await send(`${daemon.url}/hook`, {
        headers: { ...json, [name]: value },
        body: '{}',
      })
      assert.equal(hook.status, 202)
    })

  it('is told by its headers, of which no usual one is taken for such', () => {
    const usual = ['host', 'accept', 'authorization', 'user-agent', 'connection', 'last-event-id']
    assert.equal(isForwarded([...usual, 'content-type', 'content-length', 'cache-control']), false)
    assert.equal(isForwarded([...usual, 'x-forwarded-proto']), true)
  })
})
