import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
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
