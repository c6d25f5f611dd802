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

describe('warnings of words in a filter that match nothing', () => {
  const hintsOf = (filter: string) =>
    warnings(`prompt_template: x, filter: { ${filter} }`).map((line) =>
      line.replace(/^(\S+): webhook \/a: .*? \((write .*)\)$/s, '$1: $2'),
    )

  it('show the right form of what looks like a pattern, a negation, a comparison or a list', () => {
    for (const [value, form] of [
      ['refs/heads/*', "{ glob: 'refs/heads/*' }"],
      ['*[bot]', "{ glob: '*[bot]' }"],
      [String.raw`/^\/review/`, "{ regex: '^/review' }"],
      ['/fix|feat/i', "{ regex: '(?i)fix|feat' }"],
      ['/bug/', "{ regex: 'bug' }"],
      ['^release', "{ regex: '^release' }"],
      ['.*-rc', "{ regex: '.*-rc' }"],
      ['!renovate[bot]', "{ not: 'renovate[bot]' }"],
      ["!= it's", "{ not: 'it''s' }"],
      ['> 5', '{ above: 5 }'],
      ['<=0.5', '{ below: 0.5 }'],
      ['opened|closed', '[opened, closed]'],
      ['opened, closed', '[opened, closed]'],
      ['*', '{ exists: true }'],
      ['null', '{ exists: false }'],
    ] as const) {
      const text = `'${value.replaceAll("'", "''")}'`
      const hint = `filter-value-literal: write ${form}, or { is: ${text} } if that is the text`
      assert.deepEqual(hintsOf(`a.b: ${text}`), [hint])
      assert.deepEqual(hintsOf(`any: [{ a.b: [x, ${text}] }]`), [hint])
      assert.deepEqual(hintsOf(`a.b: { is: ${text} }`), [])
    }
  })

  it('show the right form of a regular expression between slashes', () => {
    assert.deepEqual(hintsOf("a: { regex: '/^fix/i' }"), [
      "filter-value-literal: write it without the slashes: '(?i)^fix'",
    ])
    assert.deepEqual(hintsOf("a: { regex: '/api/' }"), [])
  })

  it('name a boolean that YAML reads as text, and not one in quotes', () => {
    for (const [word, meant] of [
      ['no', false],
      ['Off', false],
      ['yes', true],
      ['ON', true],
    ] as const) {
      const hint = `filter-value-boolean: write ${meant}, or '${word}' in quotes if it is text`
      assert.deepEqual(hintsOf(`a: ${word}`), [hint])
      assert.deepEqual(hintsOf(`none: [{ a: { in: [x, ${word}] } }]`), [hint])
      assert.deepEqual(hintsOf(`a: '${word}', b: { contains: ${word} }`), [])
    }
  })

  it('name a header that is written as a field', () => {
    assert.deepEqual(hintsOf('X-GitHub-Event: push'), [
      'filter-path-header: write headers.x-github-event',
    ])
  })

  it('say nothing of ordinary text', () => {
    for (const value of [
      'opened',
      'refs/heads/main',
      '/webhook/github',
      '/a/b/',
      'octo/hello-world',
      'a?b=c&d=e',
      'What? Why!',
      'Hello, dear world of it',
      '2.0',
      'application/json; charset=utf-8',
      '<!channel>',
      'a@b.example',
    ])
      assert.deepEqual(hintsOf(`a: '${value}'`), [], value)
    assert.deepEqual(hintsOf(`'labels["app.kubernetes.io/name"]': web, headers.x-a: b, x: y`), [])
  })
})
