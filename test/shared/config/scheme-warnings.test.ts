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

  it('leave alone a description that is right, of a sender that has a name too', () => {
    const stripe = `signature_header: Stripe-Signature, signature_param: v1, timestamp_param: t, signed: '{timestamp}.{body}'`
    assert.deepEqual(warnings(stripe), [])
    const square = 'signature_header: X-Square-HmacSha256-Signature, signature_encoding: base64'
    assert.match(
      warnings(square)[0] ?? '',
      /square does not sign .* in this way.*set signature_scheme: square/,
    )
  })

  it('keep the App Secret of Meta out of addresses', () => {
    const env = { A: '0123456789abcdef0123456789abcdef', B: 'my-own' }
    assert.match(
      warnings('signature_scheme: meta', env)[0] ?? '',
      /^webhook-token: .*the App Secret is the verify token too.*set verify_token_env/,
    )
    assert.deepEqual(warnings('signature_scheme: meta, verify_token_env: B', env), [])
  })

  it('say that a token proves less than a signature, and what a sender signs that is not known', () => {
    const token = warnings('signature_scheme: token')
    assert.match(
      token[0] ?? '',
      /^webhook-token: webhook \/a: a token proves less than a signature/,
    )
    assert.doesNotMatch(token[0] ?? '', /proxy/)
    assert.match(
      warnings('signature_scheme: token, token_in: "query:k"')[0] ?? '',
      /log of a proxy/,
    )
    for (const scheme of ['telegram', 'gitlab', 'alertmanager'])
      assert.deepEqual(warnings(`signature_scheme: ${scheme}`), [])
    for (const scheme of ['square', 'hubspot'])
      assert.match(
        warnings(`signature_scheme: ${scheme}`)[0] ?? '',
        /^address-unset: .* signs the public address, which is not set.*set server\.public_url/,
      )
    assert.match(warnings(`signed: '{url}{body}'`)[0] ?? '', /^address-unset/)
  })

  it('tell a secret of another shape from one that is of no use, and show neither', () => {
    const shape = warnings('signature_scheme: slack', { A: 'xoxb-canary' })
    assert.match(shape[0] ?? '', /^secret-shape: webhook \/a: the value of A is not 32 hex digits/)
    const unusable = warnings('signature_scheme: svix', { A: 'whsec_can-ary' })
    assert.match(unusable[0] ?? '', /^secret-unusable: .*; it verifies nothing/)
    assert.doesNotMatch([...shape, ...unusable].join(), /xoxb|can-?ary/)
    for (const [scheme, secret, why] of [
      ['paddle', 'apikey-canary', /does not begin with pdl_ntfset_/],
      ['paystack', 'pk_live_canary', /does not begin with sk_live_/],
      ['notion', 'ntn_canary', /does not begin with secret_/],
      ['telegram', 'canary canary', /other characters than A-Z/],
      ['meta', 'EAAcanary', /not 32 hex digits, as app secrets of Meta are/],
      ['trello', 'ATTAcanary', /not 64 hex digits/],
      ['twitch', 'canary', /10 to 100 ASCII/],
    ] as const) {
      const [warning = ''] = warnings(`signature_scheme: ${scheme}`, { A: secret }).filter((text) =>
        text.startsWith('secret-shape'),
      )
      assert.match(warning, why)
      assert.doesNotMatch(warning, /canary/)
    }
    const hex = warnings('secret_encoding: hex', { A: 'canary' })
    assert.match(hex[0] ?? '', /^secret-unusable: .* is not hex, as secret_encoding says/)
  })

  it('say nothing of a webhook that is switched off, or of a secret that is unset', () => {
    assert.deepEqual(warnings('signature_scheme: slack, enabled: false', { A: 'xoxb-1' }), [])
    const unset = warnings('signature_scheme: slack', {})
    assert.deepEqual([unset.length, unset[0]?.split(':')[0]], [1, 'secret-unset'])
  })
})
