import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { describe, it } from 'mocha'
import { readRecipe, ruleRecipes, writeRule } from '../../../../shared/recipes/rule-recipes.ts'
import { loadConfig } from '../../../../shared/config/load.ts'
import type { Home } from '../../../../shared/home/home.ts'
import { temporaryFolder, temporaryHome } from '../../../support/temporary.ts'
import { run } from '../../support/cli.ts'
import { blocksOf, readPage } from '../../support/documents.ts'

const bot = `
webhooks:
  - path: /webhook/acme-helper
    signature_scheme: github
    secret_env: GITHUB_BOT_ACME_HELPER_SECRET
    source: { provider: github, app: acme-helper }
    rules: []
`
const rulesOf = async (home: Home, path: string) => {
  const { webhooks } = await loadConfig(home, {})
  return webhooks.find((webhook) => webhook.path === path)?.rules ?? []
}

describe('cli: webhook add of whole rules', () => {
  const add = async (home: Home, args: readonly string[], env: NodeJS.ProcessEnv = {}) =>
    run(['webhook', 'add', ...args], { home, env })

  it('writes what the pages show', async () => {
    const pages = await Promise.all(
      ['mentions', 'fixes', 'ci-failures'].map(async (name) => readPage(`${name}.md`)),
    )
    const blocks = pages.flatMap((page) => blocksOf(page, 'yaml'))
    for (const name of Object.keys(ruleRecipes)) {
      const text = readRecipe(name).trimEnd()
      const indented = text.replaceAll(/^(?=.)/gm, '      ')
      const shown = blocks.filter((block) => block.includes(text) || block.includes(indented))
      assert.equal(shown.length, 1, name)
    }
  })

  it('adds them to the entry of the bot, with its name and for one repository', async () => {
    const agents = 'agents:\n  claude:\n    kind: claude\n'
    const home = await temporaryHome({ agents, webhooks: bot })
    for (const args of [
      ['github-mention', '--repo', 'acme/shop'],
      ['github-mention'],
      ['ci-failure', '--repo', 'acme/shop'],
    ]) {
      const { code, stderr } = await add(home, args)
      assert.equal(code, 0, stderr)
      assert.match(stderr, /doorward bot install acme-helper/)
    }
    const [first, second, third] = await rulesOf(home, '/webhook/acme-helper')
    assert.deepEqual(
      [first, second, third].map((rule) => [rule?.name, rule?.mention, rule?.filter.length]),
      [
        ['mention', 'acme-helper', 1],
        ['mention-2', 'acme-helper', 0],
        ['ci', undefined, 3],
      ],
    )
    const text = await readFile(join(home.config, 'webhooks.yaml'), 'utf8')
    assert.match(text, /filter:\n +repository\.full_name: acme\/shop\n +workflow_run\.conclusion/)
  })

  it('makes an agent that may write, and leaves the one that reads as it is', async () => {
    const bin = await temporaryFolder()
    await writeFile(join(bin, 'claude'), '#!/bin/sh\n', { mode: 0o700 })
    const env = { PATH: [bin, process.env['PATH']].join(delimiter) }
    const agents = 'agents:\n  claude:\n    kind: claude\n'
    const home = await temporaryHome({ agents, webhooks: 'webhooks: []\n' })
    const { code, stdout, stderr } = await add(home, ['sentry-fix', '--repo', 'acme/door'], env)
    assert.equal(code, 0, stderr)
    assert.match(
      stdout,
      /agent +fixer, new in agents\.yaml\n +may change the checkout, in a sandbox/,
    )
    const written = await readFile(join(home.config, 'agents.yaml'), 'utf8')
    assert.ok(written.startsWith(agents))
    assert.match(
      written,
      /fixer:\n +kind: claude\n +tools: write\n +sandbox: required\n +timeout: 20m/,
    )
    const [rule] = await rulesOf(home, '/webhook/sentry')
    assert.deepEqual(
      [rule?.agentName, rule?.targets[0]?.text, rule?.workspace?.repo.source],
      ['fixer', 'pull-request:acme/door', 'acme/door'],
    )
    assert.equal((await add(home, ['github-fix'], env)).code, 0)
    const [fix] = await rulesOf(home, '/webhook/github-fix')
    assert.equal(fix?.agentName, 'fixer')
    const reads = await add(home, ['github-fix', '--agent', 'claude', '--repo', 'acme/shop'], env)
    assert.match(reads.stdout, /changes no file until it has tools: write/)
  })

  it('refuses parts of a rule, and a repository that is missing or none', async () => {
    const home = await temporaryHome({ agents: 'agents:\n  claude:\n    kind: claude\n' })
    const before = await readFile(join(home.config, 'webhooks.yaml'), 'utf8')
    for (const [args, words] of [
      [['ci-failure', '--prompt', 'x'], /ci-failure writes a whole rule, and takes no --prompt/],
      [['sentry-fix', '--agent', 'claude'], /sentry-fix needs the repository of the code/],
      [['ci-failure', '--repo', 'x: y'], /--repo x: y is not owner\/name/],
    ] as const) {
      const { code, stderr } = await add(home, args)
      assert.equal(code, 2, stderr)
      assert.match(stderr, words)
    }
    assert.equal(await readFile(join(home.config, 'webhooks.yaml'), 'utf8'), before)
  })

  it('gives rules of one entry names of their own', () => {
    const chosen = { agent: 'a', bot: undefined }
    const nameOf = (repo: string | undefined, taken: readonly string[]) =>
      writeRule('ci-failure', { ...chosen, repo, taken }).value['name']
    assert.equal(nameOf(undefined, ['review']), 'ci')
    assert.equal(nameOf('acme/shop', ['ci']), 'ci-shop')
    assert.equal(nameOf('acme/shop', ['ci', 'ci-shop']), 'ci-2')
  })
})
