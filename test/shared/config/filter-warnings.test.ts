import assert from 'node:assert/strict'
import { collectWarnings } from '../../../shared/config/warnings.ts'
import { checkConfig } from '../../../shared/config/load.ts'
import { readYaml } from '../../../shared/config/yaml.ts'

const warnings = (fields: string): string[] => {
  const env = { A: '0123456789abcdef'.repeat(2) }
  const entry = `{ path: /a, agent: echo, secret_env: A, ${fields} }`
  const config = checkConfig(
    readYaml('gateway.yaml', ''),
    readYaml('agents.yaml', 'agents:\n  echo: { kind: echo }\n'),
    readYaml('webhooks.yaml', `webhooks:\n  - ${entry}\n`),
    env,
  )
  return collectWarnings(config, env).map(
    ({ code, detail, hint }) => `${code}: ${detail} (${hint})`,
  )
}

describe('warnings of filters', () => {
  it('name each path that is written as in a prompt', () => {
    const filter = 'filter: { event.action: opened, action: opened, event.user.login: octocat }'
    const [action, login, ...more] = warnings(`prompt_template: x, ${filter}`)
    assert.equal(
      action,
      'filter-path-prefix: webhook /a: event.action in filter never matches, unless the payload has a field event (write action: paths of a filter have no event. in front)',
    )
    assert.match(login ?? '', /: event\.user\.login in filter .*\(write user\.login: /)
    assert.deepEqual(more, [])
  })

  it('say nothing where payloads have a field of that name', () => {
    const filter = 'filter: { event.type: message }'
    for (const fields of [
      `prompt_template: x, signature_scheme: slack, ${filter}`,
      `prompt_template: "{{event.event.text}}", ${filter}`,
      'prompt_template: x, filter: { event: push, events.a: b }',
    ])
      assert.deepEqual(warnings(fields), [], fields)
  })

  it('say nothing of a webhook that is not served', () => {
    const filter = 'filter: { event.action: opened }'
    assert.deepEqual(warnings(`prompt_template: x, enabled: false, ${filter}`), [])
  })
})
