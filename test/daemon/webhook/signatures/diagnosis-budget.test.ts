import assert from 'node:assert/strict'
import { diagnoseWithBudget } from '../../../../daemon/webhook/signatures/diagnosis.ts'
import { webhooksByPath } from '../../../../daemon/webhook/compiled-webhook.ts'
import { verify } from '../../../../daemon/webhook/signatures/verify.ts'
import { DoorwardError } from '../../../../shared/errors.ts'
import { checkConfig } from '../../../../shared/config/load.ts'
import { readYaml } from '../../../../shared/config/yaml.ts'

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

describe('the time for diagnoses', () => {
  /** Refuses a delivery to a webhook; returns the detail for the owner. */
  const refuse = (diagnoseRefusal: ReturnType<typeof diagnoseWithBudget>, path: string): string => {
    const webhook = webhooks.get(path)
    assert.ok(webhook)
    try {
      verify(body, {}, webhook.verifier, 0)
    } catch (error) {
      const diagnosed = diagnoseRefusal(error, body, {}, webhook, 0)
      assert.ok(error instanceof DoorwardError && diagnosed instanceof DoorwardError)
      // The sender sees code, message and hint.
      assert.deepEqual(
        [diagnosed.code, diagnosed.message, diagnosed.hint],
        [error.code, error.message, error.hint],
      )
      return diagnosed.localDetail ?? ''
    }
    return assert.fail('it was accepted')
  }

  it('does not change what the sender sees', () => {
    assert.match(
      refuse(diagnoseWithBudget(), '/webhook/a'),
      /^there is no x-hub-signature-256 header; no secret is set at the sender/,
    )
  })

  it('does not change another error', () => {
    const webhook = webhooks.get('/webhook/a')
    assert.ok(webhook)
    for (const error of [new DoorwardError('unavailable', 'x'), new Error('y'), 'z'])
      assert.equal(diagnoseWithBudget()(error, body, {}, webhook, 0), error)
  })

  it('is 60 ms per second for all webhooks', () => {
    // Each reading of this clock is 10 ms later, so that a diagnosis seems to take 10 ms.
    let time = 0
    const diagnoseRefusal = diagnoseWithBudget(() => (time += 10))
    const diagnosed = (path: string) => !refuse(diagnoseRefusal, path).includes('not diagnosed')
    const paths = ['/webhook/a', '/webhook/b', '/webhook/a', '/webhook/b']
    const results = [...paths, ...paths, ...paths.slice(2)].map(diagnosed)
    assert.deepEqual(results, [...Array(7).fill(true), ...Array(3).fill(false)])
    time += 1000
    assert.equal(diagnosed('/webhook/b'), true)
  })

  it('is less in the seconds after a diagnosis that took longer', () => {
    let time = 0
    const diagnoseRefusal = diagnoseWithBudget(() => (time += 150))
    const diagnosed = () => !refuse(diagnoseRefusal, '/webhook/a').includes('not diagnosed')
    assert.equal(diagnosed(), true)
    time += 1000
    assert.equal(diagnosed(), false)
    time += 2000
    assert.equal(diagnosed(), true)
  })
})
