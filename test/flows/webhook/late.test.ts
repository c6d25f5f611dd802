import assert from 'node:assert/strict'
import type { EventRecord } from '../../../shared/api/api.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { send } from '../../support/servers/http.ts'
import { type Sender, senders } from '../../support/servers/senders.ts'

const named = (name: string): Sender => {
  const found = senders.find(({ scheme }) => scheme === name)
  assert.ok(found)
  return found
}
const [linear, stripe] = [named('linear'), named('stripe')]
const minute = 60_000
const hour = 60 * minute

describe('a delivery with an old time', () => {
  let daemon: RunningDaemon

  before(async () => {
    const entry = (path: string, more: string) =>
      `  - { path: ${path}, agent: echo, prompt_template: x, ${more} }\n`
    const ofLinear = 'signature_scheme: linear, secret_env: LINEAR_SECRET'
    const ofStripe = 'signature_scheme: stripe, secret_env: STRIPE_SECRET'
    daemon = await startDaemon({
      variables: { LINEAR_SECRET: linear.secret, STRIPE_SECRET: stripe.secret },
      webhooks: `webhooks:
${entry('/linear', ofLinear)}${entry('/prompt', `${ofLinear}, late: 0s`)}${entry('/any', `${ofLinear}, dedupe: 'off'`)}${entry('/bytes', `${ofLinear}, dedupe: body`)}${entry('/stripe', ofStripe)}${entry('/relayed', `${ofStripe}, timestamp_tolerance: 1h`)}`,
    })
  })
  after(async () => assert.equal(await daemon.stop(), 0))

  let count = 0
  /** What Linear signed so long ago; each is another delivery. */
  const ofAge = async (ageMs: number) => {
    count += 1
    const sentMs = Date.now() - ageMs
    const body = JSON.stringify({ type: 'Issue', n: count, webhookTimestamp: sentMs })
    return { body, headers: await linear.sign(body, sentMs) }
  }
  type Delivery = Awaited<ReturnType<typeof ofAge>>
  const post = async (path: string, delivery: Delivery) => {
    const reply = await send(`${daemon.url}${path}`, delivery)
    // Linear gets an empty answer, whatever becomes of the delivery.
    if (![200, 202].includes(reply.status)) return reply.status
    const { events } = await daemon.client.get<{ events: EventRecord[] }>(
      `/events?webhook=${path}&limit=1`,
    )
    const [event] = events
    assert.ok(event)
    if (event.state === 'duplicate') return 'duplicate'
    assert.equal((await untilFinished(daemon, event.id)).state, 'done')
    return 'accepted'
  }

  it('is taken from Linear for a day, if it was never seen', async () => {
    for (const age of [0, 59_000, 2 * minute, hour, 6 * hour, 24 * hour - minute])
      assert.equal(await post('/linear', await ofAge(age)), 'accepted', String(age))
    for (const age of [24 * hour + minute, -2 * minute])
      assert.equal(await post('/linear', await ofAge(age)), 401, String(age))
    const { events } = await daemon.client.get<{ events: EventRecord[] }>('/events?state=rejected')
    assert.match(events[1]?.detail ?? '', /8646\d s in the past, 86400 s are allowed/)
    assert.match(events[0]?.detail ?? '', /1\d\d s in the future, 60 s are allowed/)
  })

  it('is a duplicate for Linear when it was seen, also under another id', async () => {
    const first = await ofAge(0)
    assert.equal(await post('/linear', first), 'accepted')
    assert.equal(await post('/linear', first), 'duplicate')
    const captured = { ...first, headers: { ...first.headers, 'linear-delivery': 'another' } }
    assert.equal(await post('/linear', captured), 'duplicate')
    const late = await ofAge(hour)
    assert.equal(await post('/linear', late), 'accepted')
    assert.equal(
      await post('/linear', { ...late, headers: { ...late.headers, 'linear-delivery': 'b' } }),
      'duplicate',
    )
    assert.equal(await post('/bytes', late), 'accepted')
    assert.equal(await post('/bytes', late), 'duplicate')
  })

  it('is refused where one that was seen would not be recognised, and where late is 0s', async () => {
    const late = await ofAge(hour)
    assert.equal(await post('/any', late), 401)
    assert.equal(await post('/prompt', late), 401)
    const { 'linear-delivery': _id, ...headers } = late.headers
    assert.equal(await post('/linear', { ...late, headers }), 401)
    for (const path of ['/any', '/prompt'])
      assert.equal(await post(path, await ofAge(30_000)), 'accepted')
  })

  it('is taken within the timestamp_tolerance of the webhook', async () => {
    const at = async (ageMs: number) => {
      count += 1
      const body = JSON.stringify({ id: `evt_${count}`, type: 'invoice.paid' })
      return { body, headers: await stripe.sign(body, Date.now() - ageMs) }
    }
    assert.equal(await post('/stripe', await at(4 * minute)), 'accepted')
    assert.equal(await post('/stripe', await at(6 * minute)), 401)
    const { events } = await daemon.client.get<{ events: EventRecord[] }>('/events?state=rejected')
    assert.match(events[0]?.detail ?? '', /or the delivery is that old .*timestamp_tolerance/)
    assert.equal(await post('/relayed', await at(59 * minute)), 'accepted')
    for (const age of [61 * minute, -61 * minute])
      assert.equal(await post('/relayed', await at(age)), 401)
  })
})
