import assert from 'node:assert/strict'
import { budgetSchema } from '../../../shared/agents/budget.ts'
import { checkConfig, ConfigError } from '../../../shared/config/load.ts'
import { collectWarnings } from '../../../shared/config/warnings.ts'
import { readYaml } from '../../../shared/config/yaml.ts'

const check = (agents: string, webhook = '', gateway = '') =>
  checkConfig(
    readYaml('gateway.yaml', gateway),
    readYaml('agents.yaml', `agents:\n${agents}`),
    readYaml(
      'webhooks.yaml',
      `webhooks:\n  - { path: /a, agent: a, prompt_template: x, accept_risk: true${webhook} }\n`,
    ),
    {},
  )

const problems = (...files: Parameters<typeof check>): string[] => {
  try {
    check(...files)
    return []
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error))
    return error.problems.map(({ key, reason, hint }) => `${key}: ${reason} (${hint})`)
  }
}

const url = 'https://agents.example.com/ask'

describe('a budget', () => {
  it('is in dollars or in tokens', () => {
    assert.deepEqual(budgetSchema.parse({ run: 0.5, day: 5, month: '2m tokens' }), {
      run: { usd: 0.5 },
      day: { usd: 5 },
      month: { tokens: 2_000_000 },
    })
    assert.deepEqual(budgetSchema.parse({ day: '500k tokens' }).day, { tokens: 500_000 })
    assert.deepEqual(budgetSchema.parse({ day: '1.5m tokens' }).day, { tokens: 1_500_000 })
    for (const day of [0, -1, 1e9, '5', '$5', '0 tokens', '2m', '2mtokens', '1e9 tokens', null])
      assert.equal(budgetSchema.safeParse({ day }).success, false, String(day))
    for (const budget of [{ run: '5 tokens' }, { week: 5 }])
      assert.equal(budgetSchema.safeParse(budget).success, false)
  })

  it('stands at an agent and a rule that say what they use', () => {
    const budget = 'budget: { run: 0.5, day: 5, month: 2m tokens }'
    assert.deepEqual(problems(`  a: { kind: claude, ${budget} }`, `, ${budget}`), [])
    assert.deepEqual(problems('  a: { kind: opencode, budget: { day: 5 } }'), [])
    const router = 'kind: openai, model: m, base_url: "https://openrouter.ai'
    assert.deepEqual(problems(`  a: { ${router}/api/v1", budget: { day: 5 } }`), [])
    assert.equal(problems(`  a: { ${router}.evil.example/v1", budget: { day: 5 } }`).length, 1)
    const http = `kind: http, url: "${url}", usage_path: usage`
    assert.deepEqual(problems(`  a: { ${http} }`, ', budget: { day: 5, month: 1m tokens }'), [])
    assert.deepEqual(problems('  a: { kind: codex, budget: { day: 2m tokens } }'), [])
  })

  it('in dollars is a fault where they do not say what they cost', () => {
    const codex = 'an agent of kind codex does not say what it costs (use tokens, as 2m tokens)'
    assert.deepEqual(problems('  a: { kind: codex, budget: { day: 5 } }'), [
      `agents.a.budget.day: ${codex}`,
    ])
    assert.deepEqual(problems('  a: { kind: codex }', ', budget: { month: 5 }'), [
      `webhooks[0].budget.month: ${codex}`,
    ])
    assert.deepEqual(
      problems('  a: { kind: codex }', ', rules: [{ name: r, budget: { day: 5 } }]'),
      [`webhooks[0].rules[0].budget.day: ${codex}`],
    )
    assert.match(problems('  a: { kind: echo, budget: { day: 1k tokens } }').join(), /max_runs/)
    const http = `  a: { kind: http, url: "${url}", budget: { day: 1k tokens } }`
    assert.match(problems(http).join(), /set usage_path/)
    assert.match(
      problems('  a: { kind: gemini, budget: { run: 1 } }').join(),
      /only runs of claude and opencode end/,
    )
  })

  it('of all in dollars is a warning where an agent does not say what it costs', () => {
    const warnings = (agents: string, budget: string) =>
      collectWarnings(check(agents, '', `budget: ${budget}`), {})
        .filter(({ code }) => code === 'budget-not-counted')
        .map(({ detail }) => detail)
    assert.match(warnings('  a: { kind: codex }', '{ day: 5 }').join(), /what they cost: a$/)
    assert.deepEqual(warnings('  a: { kind: codex }', '{ day: 1m tokens }'), [])
    assert.deepEqual(warnings('  a: { kind: claude }', '{ day: 5 }'), [])
  })
})
