import assert from 'node:assert/strict'
import { collectWarnings } from '../../../shared/config/warnings.ts'
import { checkConfig } from '../../../shared/config/load.ts'
import { readYaml } from '../../../shared/config/yaml.ts'

const warnings = (providers: string): string[] => {
  const config = checkConfig(
    readYaml('gateway.yaml', `providers: ${providers}\n`),
    readYaml('agents.yaml', ''),
    readYaml('webhooks.yaml', ''),
    {},
  )
  return collectWarnings(config, {}).map(({ code, detail, hint }) => `${code}: ${detail} (${hint})`)
}

const authorize = 'authorization_endpoint: "https://a.example/authorize"'
const token = 'token_endpoint: "https://a.example/token"'

describe('warnings of providers', () => {
  it('name what is missing to log in, and the way out', () => {
    const both = 'an authorization_endpoint and a token_endpoint'
    for (const [entry, missing, wayOut] of [
      ['{}', both, 'providers.x.authorization_endpoint and providers.x.token_endpoint'],
      [
        '{ dialect: github }',
        both,
        'providers.x.authorization_endpoint and providers.x.token_endpoint',
      ],
      [`{ ${authorize} }`, 'a token_endpoint', 'providers.x.token_endpoint'],
      [`{ ${token} }`, 'an authorization_endpoint', 'providers.x.authorization_endpoint'],
    ] as const)
      assert.deepEqual(warnings(`{ x: ${entry} }`), [
        `provider-incomplete: provider x has neither an issuer nor ${missing}: no login is possible (set providers.x.issuer in gateway.yaml, or ${wayOut})`,
      ])
  })

  it('name the built-in one that a slip of the pen may have meant', () => {
    const [warning = ''] = warnings('{ gogle: { client_id: a } }')
    assert.match(warning, /\(did you mean "google"\? else set providers\.gogle\.issuer/)
  })

  it('leave alone what can be logged in to', () => {
    for (const providers of [
      '{}',
      '{ x: { issuer: "https://a.example" } }',
      `{ x: { ${authorize}, ${token} } }`,
      `{ github: {}, slack: { ${authorize} }, google: { ${token} } }`,
    ])
      assert.deepEqual(warnings(providers), [])
  })
})
