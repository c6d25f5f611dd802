import assert from 'node:assert/strict'
import { CaughtUp } from '../../support/daemon/caught-up.ts'
import { type StripeServer, startStripeServer } from '../../support/servers/stripe-api.ts'
import { json } from '../../support/servers/target-server.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs

describe('events of Stripe', () => {
  let server: StripeServer
  let own: CaughtUp

  beforeEach(async () => {
    server = await startStripeServer('rk_test_never_shown')
  })
  afterEach(() => {
    own.stop.abort()
    server.close()
  })

  const start = async (more: string): Promise<CaughtUp> => {
    const webhooks = `webhooks:
  - path: /stripe
    agent: echo
    prompt_template: x
    signature_scheme: stripe
    secret_env: SECRET
    on: invoice.*
    source: { provider: stripe, key_env: KEY, api_url: "${server.origin}", ${more} }
`
    own = await CaughtUp.start(webhooks, '')
    return own
  }
  const amounts = () =>
    own.accepted.map(({ bytes }) => {
      const { data } = JSON.parse(bytes.toString()) as StripeServer['events'][number]
      return data.object['amount']
    })

  it('are all read where there is no endpoint, each once', async () => {
    server.add({ amount: 1, secondsAgo: 100 })
    await start('mode: poll, every: 30s')
    server.add({ amount: 2, pending: 0 })
    server.add({ amount: 3, pending: 0, type: 'charge.refunded' })
    const id = server.add({ amount: 4, pending: 0 })
    await own.pass(5 * minuteMs)
    assert.deepEqual(amounts(), [2, 4])
    assert.deepEqual(own.problems(), [])
    const [webhook] = own.webhooks()
    assert.ok(webhook)
    // Known to the daemon, whose own memory of deliveries counts.
    assert.equal(own.catchUp.isCaughtUp(webhook, id), false)
    const next = await CaughtUp.start(own.definitions, '', own.folder)
    assert.equal(next.catchUp.isCaughtUp(webhook, id), true)
    await next.pass(5 * minuteMs)
    assert.deepEqual(next.accepted, [])
    next.stop.abort()
  })

  it('are missed where the endpoint did not get them, by page', async () => {
    await start('catch_up: all, at_most: 2')
    for (let amount = 0; amount < 250; amount += 1) server.add({ amount })
    // Delivered, and on its way.
    server.add({ amount: 1000, pending: 0 })
    server.aheadMs += 2 * minuteMs
    server.add({ amount: 1001 })
    await own.pass(hourMs)
    assert.deepEqual(amounts(), [0, 1])
    const [left] = await own.catchUp.list(true)
    assert.equal(left?.waiting.length, 248)
    assert.match(own.problems().join(), /^248 missed deliveries of Stripe at \/stripe/)
    assert.match(own.told().join(), /: 2 run, 248 waiting/)
    server.events.splice(0)
    const { refused } = await own.catchUp.decide({ do: 'run' })
    assert.equal(refused, 2)
    assert.match(own.told().join(), /Stripe no longer has the details/)
  })

  it('are read later where Stripe fails, and the key says what it lacks, and never itself', async () => {
    await start('mode: poll')
    server.mayRead = false
    await own.pass(2 * minuteMs)
    const [problem] = own.catchUp.problems()
    assert.match(
      problem?.detail ?? '',
      /at \/stripe cannot be read: the key in KEY may not read events/,
    )
    assert.match(problem?.hint ?? '', /Events: Read/)
    server.mayRead = true
    server.next(json(429, {}), json(500, {}), json(401, {}))
    const before = server.requests.length
    await own.pass(hourMs)
    assert.ok(server.requests.length > before + 3)
    server.add({ amount: 5 })
    await own.pass(6 * minuteMs)
    assert.deepEqual([amounts(), own.problems()], [[5], []])
    assert.ok(!own.told().join().includes('rk_test'))
    own.definitions = own.definitions.replace('KEY', 'OTHER')
    await own.catchUp.list(true)
    assert.match(own.problems().join(), /Stripe has no token: OTHER is unset/)
  })
})
