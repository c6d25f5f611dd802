import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { EventRecord } from '../../../../shared/api.ts'
import { type RunningDaemon, startDaemon } from '../../../support/daemon/daemon.ts'
import { type StripeServer, startStripeServer } from '../../../support/servers/stripe-api.ts'
import { run } from '../../support/cli.ts'

const path = '/webhook/stripe'
const key = 'rk_test_never_shown'

describe('cli: webhook connect stripe', () => {
  let stripe: StripeServer
  let daemon: RunningDaemon

  before(async () => {
    stripe = await startStripeServer(key)
    const webhooks = `webhooks:
  - path: ${path}
    agent: echo
    prompt_template: x
    signature_scheme: stripe
    secret_env: WH
    source: { provider: stripe, key_env: KEY, api_url: "${stripe.origin}", catch_up: all }
`
    // No request leaves this machine.
    const env = `STRIPE_API_KEY=${key}\nWH=whsec_1\nHTTPS_PROXY=http://127.0.0.1:1\n`
    daemon = await startDaemon({ webhooks, env, gateway: 'oauth: { callback_port: 0 }\n' })
  })
  after(async () => {
    stripe.close()
    await daemon.stop()
  })

  const cli = async (...args: string[]) => {
    const result = await run(args, { home: daemon.home })
    assert.ok(!(result.stdout + result.stderr).includes(key))
    return result
  }
  const file = () => readFile(join(daemon.home.config, 'webhooks.yaml'), 'utf8')
  const push = async (id: string): Promise<unknown> => {
    const body = JSON.stringify(stripe.events.find((event) => event.id === id))
    const time = Math.floor(Date.now() / 1000)
    const signature = createHmac('sha256', 'whsec_1').update(`${time}.${body}`).digest('hex')
    const headers = {
      'content-type': 'application/json',
      'stripe-signature': `t=${time},v1=${signature}`,
    }
    const response = await fetch(`${daemon.url}${path}`, { method: 'POST', headers, body })
    const { status } = (await response.json()) as { status: unknown }
    return status
  }

  it('reads all events with --poll, and takes what Stripe sends again for the same', async () => {
    const { code, stdout, stderr } = await cli('webhook', 'connect', 'stripe', '--poll')
    assert.equal(code, 0, stderr)
    assert.match(stdout, /Stripe, with the key in STRIPE_API_KEY/)
    const written = `source: { provider: stripe, key_env: STRIPE_API_KEY, mode: poll, api_url: ${stripe.origin}, catch_up: all }`
    assert.ok((await file()).includes(written), await file())
    const id = stripe.add({})
    assert.match((await cli('events', 'missed')).stderr, /nothing was missed/)
    const { events } = JSON.parse((await cli('events', '--json', '--webhook', path)).stdout) as {
      events: EventRecord[]
    }
    assert.deepEqual(
      events.map(({ deliveryId, source }) => [deliveryId, source]),
      [[id, 'api']],
    )
    assert.equal(await push(id), 'duplicate')
    await daemon.stop()
    daemon = await startDaemon({ home: daemon.home })
    assert.equal(await push(id), 'duplicate')
    assert.equal(await push(stripe.add({})), 'accepted')
  })

  it('says what the key lacks, where it is not set, and what is not for Stripe', async () => {
    stripe.mayRead = false
    const refused = await cli('webhook', 'connect', 'stripe')
    stripe.mayRead = true
    assert.match(refused.stderr, /the key in STRIPE_API_KEY may not read events\n.*Events: Read/)
    const unset = await cli('webhook', 'connect', 'stripe', '--key-env', 'NONE')
    assert.match(unset.stderr, /NONE is not set\n.*restricted key with Events: Read/)
    const named = await cli('webhook', 'connect', 'stripe', 'acme/door')
    assert.match(named.stderr, /stripe has no repository/)
    const nameless = await cli('webhook', 'connect', 'github')
    assert.match(nameless.stderr, /which repository.*\n.*connect github OWNER\/REPOSITORY/)
    const other = await cli('webhook', 'connect', 'github', 'acme/door', '--key-env', 'KEY')
    assert.match(other.stderr, /--key-env is for stripe only/)
    const absent = await cli('webhook', 'connect', 'stripe', '--path', '/webhook/new')
    assert.match(absent.stderr, /no webhook is defined at \/webhook\/new\n.*webhook add stripe/)
  })

  it('makes a webhook that nobody else can post to, and disconnects it', async () => {
    const args = ['webhook', 'connect', 'stripe', '--poll', '--path', '/webhook/new']
    const { code, stderr } = await cli(...args)
    assert.equal(code, 1)
    assert.match(stderr, /Stripe cannot be reached/)
    assert.ok(
      (await file()).includes('source: { provider: stripe, key_env: STRIPE_API_KEY, mode: poll }'),
    )
    assert.match(await readFile(daemon.home.env, 'utf8'), /^NEW_WEBHOOK_SECRET=[0-9a-f]{64}$/m)
    const checked = await cli('config', 'check')
    assert.doesNotMatch(checked.stdout + checked.stderr, /NEW_WEBHOOK_SECRET/)
    assert.match((await cli('webhook', 'hooks')).stderr, /no webhook is connected/)
    const removed = await cli('webhook', 'disconnect', '/webhook/new')
    assert.equal(removed.code, 0, removed.stderr)
    assert.match(removed.stdout, /the events of Stripe are no longer read for \/webhook\/new/)
    assert.ok(!(await file()).includes('STRIPE_API_KEY, mode: poll }'))
  })
})
