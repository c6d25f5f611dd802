import assert from 'node:assert/strict'
import { collectWarnings } from '../../../shared/config/warnings.ts'
import { checkConfig } from '../../../shared/config/load.ts'
import { readYaml } from '../../../shared/config/yaml.ts'

const warnings = (fields: string, env: NodeJS.ProcessEnv = { A: 'secret' }): string[] =>
  collectWarnings(
    checkConfig(
      readYaml('gateway.yaml', ''),
      readYaml('agents.yaml', 'agents:\n  echo: { kind: echo }\n'),
      readYaml(
        'webhooks.yaml',
        `webhooks:\n  - { path: /a, agent: echo, prompt_template: x, secret_env: A, ${fields} }\n`,
      ),
      env,
    ),
    env,
  ).map(({ code, detail, hint }) => `${code}: ${detail} (${hint})`)

describe('warnings of signature schemes', () => {
  it('name the scheme of a sender whose header is read as a plain HMAC', () => {
    for (const [header, scheme] of [
      ['Stripe-Signature', 'stripe'],
      ['X-Slack-Signature', 'slack'],
      ['webhook-signature', 'standard-webhooks'],
      ['svix-signature', 'standard-webhooks'],
      ['X-Gitlab-Token', 'gitlab'],
      ['X-Shopify-Hmac-Sha256', 'shopify'],
    ] as const) {
      const [warning, ...more] = warnings(`signature_header: ${header}`)
      assert.match(warning ?? '', new RegExp(`^scheme-differs: .*set signature_scheme: ${scheme} `))
      assert.deepEqual(more, [])
    }
  })

  it('leave alone what hmac can say', () => {
    for (const header of [
      'X-Hub-Signature-256',
      'Linear-Signature',
      'Sentry-Hook-Signature',
      'X-Own',
    ])
      assert.deepEqual(warnings(`signature_header: ${header}`), [])
  })

  it('tell a secret of another shape from one that is of no use, and show neither', () => {
    const shape = warnings('signature_scheme: slack', { A: 'xoxb-canary' })
    assert.match(shape[0] ?? '', /^secret-shape: webhook \/a: the value of A is not 32 hex digits/)
    const unusable = warnings('signature_scheme: svix', { A: 'whsec_can-ary' })
    assert.match(unusable[0] ?? '', /^secret-unusable: .*; it verifies nothing/)
    assert.doesNotMatch([...shape, ...unusable].join(), /xoxb|can-?ary/)
  })

  it('say nothing of a webhook that is switched off, or of a secret that is unset', () => {
    assert.deepEqual(warnings('signature_scheme: slack, enabled: false', { A: 'xoxb-1' }), [])
    const unset = warnings('signature_scheme: slack', {})
    assert.deepEqual([unset.length, unset[0]?.split(':')[0]], [1, 'secret-unset'])
  })
})
