import assert from 'node:assert/strict'
import type { EventRecord } from '../../../shared/api/api.ts'
import { type RunningDaemon, startDaemon } from '../../support/daemon/daemon.ts'
import { send } from '../../support/servers/http.ts'

describe('a request that is no delivery', () => {
  let daemon: RunningDaemon
  const rejected = async (): Promise<EventRecord[]> => {
    const path = '/events?state=rejected'
    return (await daemon.client.get<{ events: EventRecord[] }>(path)).events
  }

  beforeEach(async () => {
    daemon = await startDaemon({
      webhooks: 'webhooks:\n  - { path: /Hook/a, agent: echo, prompt_template: "{{event.a}}" }\n',
    })
  })
  afterEach(async () => assert.equal(await daemon.stop(), 0))

  it('leaves one event for many requests by another method', async () => {
    for (const method of ['GET', 'GET', 'HEAD', 'PUT']) {
      const reply = await send(`${daemon.url}/Hook/a`, { method })
      assert.deepEqual([reply.status, reply.headers['allow']], [405, 'POST'])
    }
    const [event, ...more] = await rejected()
    assert.deepEqual(more, [])
    assert.deepEqual(
      [event?.webhook, event?.code, event?.stage],
      ['/Hook/a', 'method-not-allowed', 'receive'],
    )
    assert.equal(event?.detail, 'a GET request came, and deliveries come by POST')
  })

  it('names the sender that tests an address so, and no part of the query', async () => {
    const query = '?hub.mode=subscribe&hub.challenge=1&hub.verify_token=canary-token'
    assert.equal((await send(`${daemon.url}/Hook/a${query}`, { method: 'GET' })).status, 405)
    const [event] = await rejected()
    assert.match(event?.detail ?? '', /signature_scheme: meta$/)
    assert.doesNotMatch(JSON.stringify(event), /canary/)
  })

  for (const path of [
    '/Hook/a/',
    '/hook/a',
    '/WEBHOOK/Hook/A',
    '//Hook//a',
    '/Hook/a/?token=canary',
  ])
    it(`leaves an event that names the right address for ${path}`, async () => {
      const reply = await send(`${daemon.url}${path}`, { method: 'POST', body: '{}' })
      assert.equal(reply.status, 404)
      assert.equal((await send(`${daemon.url}${path}`, { method: 'GET' })).text, reply.text)
      const [event, ...more] = await rejected()
      assert.deepEqual(more, [])
      assert.deepEqual([event?.webhook, event?.code], ['/Hook/a', 'webhook-not-found'])
      assert.match(event?.detail ?? '', /the address of this webhook is \/webhook\/Hook\/a, letter/)
      assert.doesNotMatch(JSON.stringify(event), /canary/)
    })

  it('leaves none for another address, or for the local API', async () => {
    for (const path of ['/Hook/b', '/Hook', '/', '/Events/', '/events/'])
      assert.ok((await send(`${daemon.url}${path}`, { method: 'GET' })).status >= 400)
    assert.deepEqual(await rejected(), [])
  })
})
