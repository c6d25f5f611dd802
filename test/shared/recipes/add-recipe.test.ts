import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'mocha'
import { openConfig } from '../../../shared/config-edit/open-config.ts'
import { type AddRecipe, addRecipe, removeRule } from '../../../shared/recipes/add-recipe.ts'
import { startRecipes } from '../../../shared/recipes/start-recipes.ts'
import { run } from '../../cli/support/cli.ts'
import { temporaryHome } from '../../support/temporary.ts'

const agents = `agents:
  claude: { kind: claude }
  fixer: { kind: claude, tools: write, sandbox: required }
`
const read = async (home: { readonly config: string }, name: string) =>
  readFile(join(home.config, `${name}.yaml`), 'utf8')

describe('the recipes of the page', () => {
  const recipes: readonly AddRecipe[] = [
    { recipe: 'github-review', agent: 'claude', repo: 'acme/shop' },
    { recipe: 'github-mention', agent: 'claude', repo: 'acme/shop' },
    { recipe: 'github-fix', agent: 'claude', repo: 'acme/shop' },
    { recipe: 'ci-failure', agent: 'claude' },
    { recipe: 'sentry-fix', agent: 'claude', repo: 'acme/shop', secret: 'sentry-1' },
    { recipe: 'slack-agent', agent: 'claude', appToken: 'xapp-1', botToken: 'xoxb-1' },
    { recipe: 'telegram-agent', agent: 'claude', from: '1234', botToken: '1:abc' },
    { recipe: 'weekly-digest', agent: 'claude', folder: '/srv/shop' },
  ]
  for (const request of recipes)
    it(`show, write and remove ${request.recipe}, with its brakes`, async () => {
      const files = { agents, webhooks: '# Mine.\nwebhooks: []\n', schedules: 'schedules: []\n' }
      const home = await temporaryHome(files)
      const shown = await addRecipe(home, { ...request, print: true })
      const name = shown.file.replace('.yaml', '')
      assert.match(shown.text, /dry_run: true\n +budget: \{ day: 2 \}$/)
      assert.equal(await readFile(home.env, 'utf8'), '')
      assert.match(await read(home, name), /: \[\]\n$/)
      const { path, rule } = await addRecipe(home, request)
      assert.match(await read(home, name), /dry_run: true\n +budget: \{ day: 2 \}\n$/)
      await openConfig(home)
      await removeRule(home, path, rule)
      assert.equal(await read(home, name), files[name as 'webhooks' | 'schedules'])
    })

  it('all go into one configuration, which `config check` takes, and out of it again', async () => {
    const files = { agents, webhooks: '# Mine.\nwebhooks: []\n', schedules: 'schedules: []\n' }
    const home = await temporaryHome(files)
    assert.deepEqual(
      recipes.map(({ recipe }) => recipe),
      startRecipes.map(({ name }) => name),
    )
    const added = []
    for (const request of recipes) added.push(await addRecipe(home, request))
    const checked = await run(['config', 'check'], { home })
    assert.equal(checked.code, 0, checked.stderr)
    assert.match(checked.stdout, /^ok: 4 webhooks with 5 rules/)
    const gateway = await read(home, 'gateway')
    assert.match(
      gateway,
      /targets:\n  telegram: .*TELEGRAM_BOT_TOKEN.*\n  slack: .*SLACK_BOT_TOKEN/,
    )
    for (const { path, rule } of added.toReversed()) await removeRule(home, path, rule)
    assert.equal(await read(home, 'webhooks'), files.webhooks)
    assert.equal(await read(home, 'schedules'), files.schedules)
  })

  it('leave other rules and comments when one is removed', async () => {
    const webhooks = `webhooks:
  # One.
  - path: /webhook/one
    secret_env: ONE
    rules:
      # A.
      - { name: a, agent: claude, prompt_template: x }

      # B.
      - name: b
        agent: claude
        prompt_template: |
          more

          lines
      # C.
      - { name: c, agent: claude, prompt_template: x }
  # Two.
  - { path: /webhook/two, agent: claude, prompt_template: x, secret_env: TWO }
`
    const home = await temporaryHome({ agents, webhooks, env: 'ONE=one\nTWO=two\n' })
    await removeRule(home, '/webhook/one', 'b')
    const without = webhooks.replace(/\n {6}# B\.[^]*lines\n/, '')
    assert.equal(await read(home, 'webhooks'), without)
    await removeRule(home, '/webhook/two')
    assert.equal(await read(home, 'webhooks'), without.replace(/ {2}# Two[^]*/, ''))
    await assert.rejects(removeRule(home, '/webhook/two'), { code: 'webhook-not-found' })
  })
})
