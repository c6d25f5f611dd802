import assert from 'node:assert/strict'
import { createExamine } from '../../../daemon/webhook/signature-diagnosis.ts'
import { webhooksByPath } from '../../../daemon/webhook/compiled-webhook.ts'
import { verify } from '../../../daemon/webhook/verify.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { checkConfig } from '../../../shared/config/load.ts'
import { readYaml } from '../../../shared/config/yaml.ts'

const env = { A_SECRET: 'secret of a', B_SECRET: 'secret of b' }
const config = checkConfig(
  readYaml('gateway.yaml', ''),
  readYaml('agents.yaml', 'agents:\n  echo: { kind: echo }\n'),
  readYaml(
    'webhooks.yaml',
    ['a', 'b']
      .map(
        (name) =>
          `  - path: /webhook/${name}\n    agent: echo\n    prompt_template: x\n    secret_env: ${name.toUpperCase()}_SECRET\n`,
      )
      .reduce((all, one) => all + one, 'webhooks:\n'),
  ),
  env,
)
const webhooks = webhooksByPath(config, env)
const body = Buffer.from('{}')

describe('the examination of refused signatures', () => {
  /** Refuses a delivery to a webhook and has it examined; the detail for the owner. */
  const refuse = (examine: ReturnType<typeof createExamine>, path: string): string => {
    const webhook = webhooks.get(path)
    assert.ok(webhook)
    try {
      verify(body, {}, webhook.verifier, 0)
    } catch (error) {
      const examined = examine(error, body, {}, webhook, 0)
      assert.ok(error instanceof DoorwardError && examined instanceof DoorwardError)
      // The sender sees code, message and hint.
      assert.deepEqual(
        [examined.code, examined.message, examined.hint],
        [error.code, error.message, error.hint],
      )
      return examined.localDetail ?? ''
    }
    return assert.fail('it was accepted')
  }

  it('adds what it finds to what the verifier says', () => {
    assert.match(
      refuse(createExamine(), '/webhook/a'),
      /^there is no x-hub-signature-256 header; no secret is set at the sender/,
    )
  })

  it('gives any other error back as it is', () => {
    const webhook = webhooks.get('/webhook/a')
    assert.ok(webhook)
    for (const error of [new DoorwardError('unavailable', 'x'), new Error('y'), 'z'])
      assert.equal(createExamine()(error, body, {}, webhook, 0), error)
  })

  it('spends 20 ms of a second on one webhook, and what is left on the others', () => {
    // Each reading of this clock is 3 ms later, so that an examination seems to take 3 ms.
    let time = 0
    const examine = createExamine(() => (time += 3))
    const examined = (path: string) => !refuse(examine, path).includes('not examined')
    const results = Array.from({ length: 20 }, () => examined('/webhook/a'))
    assert.deepEqual(results, [...Array(7).fill(true), ...Array(13).fill(false)])
    assert.equal(examined('/webhook/b'), true)
    time += 1000
    assert.equal(examined('/webhook/a'), true)
  })

  it('spends 60 ms of a second on all of them', () => {
    let time = 0
    const examine = createExamine(() => (time += 61))
    assert.ok(!refuse(examine, '/webhook/a').includes('not examined'))
    assert.ok(refuse(examine, '/webhook/b').includes('not examined'))
  })

  it('makes up in the seconds that follow for one that took longer', () => {
    let time = 0
    const examine = createExamine(() => (time += 70))
    const examined = () => !refuse(examine, '/webhook/a').includes('not examined')
    assert.equal(examined(), true)
    time += 1000
    assert.equal(examined(), false)
    time += 2000
    assert.equal(examined(), true)
  })
})
