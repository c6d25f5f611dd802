import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setInEntry } from '../../../../cli/config-edit/add-entry.ts'
import { loadConfig } from '../../../../shared/config/load.ts'
import { collectWarnings } from '../../../../shared/config/warnings.ts'
import type { Home } from '../../../../shared/home/home.ts'
import { findSandbox } from '../../../../shared/sandbox/probe.ts'
import { temporaryHome } from '../../../support/temporary.ts'
import { hasTerminal, resultOf, run, startOnTerminal, untilSaid } from '../../support/cli.ts'

const agentsIn = async (home: Home) => readFile(join(home.config, 'agents.yaml'), 'utf8')
const add = async (home: Home, ...args: string[]) =>
  run(['webhook', 'add', 'github-review', ...args], { home })

describe('cli: webhook add github-review', () => {
  it('writes the whole rule, and nothing that config check warns about', async () => {
    const home = await temporaryHome({ agents: 'agents:\n  coder:\n    kind: claude # mine\n' })
    const { code, stdout, stderr } = await add(home)
    assert.equal(code, 0, stderr)
    assert.match(stderr, /webhook connect github OWNER\/REPO --path \/webhook\/github-review/)
    assert.match(stderr, /webhook explain \/webhook\/github-review --sample/)
    assert.doesNotMatch(stderr, /webhook send/)
    const config = await loadConfig(home, {})
    const [webhook] = config.webhooks
    assert.equal(webhook?.scheme.name, 'github')
    const [rule] = webhook?.rules ?? []
    assert.deepEqual(
      [rule?.name, rule?.agentName, rule?.on?.length, rule?.targets[0]?.kind, rule?.context],
      ['review', 'coder', 4, 'github-review', ['diff']],
    )
    assert.deepEqual([rule?.workspace?.access, rule?.coalesce?.running], ['read', 'cancel'])
    const env = { GITHUB_REVIEW_WEBHOOK_SECRET: 'x' }
    assert.deepEqual(collectWarnings(config, env), [])
    assert.match(stdout, /GITHUB_REVIEW_WEBHOOK_SECRET, written to/)
  })

  it('gives the agent tools only in a sandbox, and says so', async () => {
    const agents = 'agents:\n  codey:\n    kind: codex # mine\n    timeout: 5m\n'
    const home = await temporaryHome({ agents })
    const { stdout } = await add(home)
    if ('missing' in (await findSandbox(process.env))) {
      assert.match(stdout, /sees the diff alone/)
      assert.equal(await agentsIn(home), agents)
      return
    }
    assert.match(stdout, /may now read the checkout, in a sandbox: tools: read/)
    const keys = '    kind: codex # mine\n    tools: read\n    sandbox: required\n    timeout: 5m\n'
    assert.equal(await agentsIn(home), `agents:\n  codey:\n${keys}`)
    const nowhere = await temporaryHome({ agents })
    const alone = await run(['webhook', 'add', 'github-review'], {
      home: nowhere,
      env: { PATH: '/nowhere' },
    })
    assert.match(alone.stdout, /sees the diff alone: bubblewrap \(bwrap\) is not on/)
    assert.equal(await agentsIn(nowhere), agents)
  })

  it('leaves an agent with tools, a folder of its own or no sandbox as it is', async () => {
    for (const [keys, words] of [
      ['kind: claude, tools: none', undefined],
      ["kind: claude, args: [--tools, 'Read']", undefined],
      ['kind: claude, cwd: /tmp', /sees the diff alone: it has a cwd of its own/],
      ['kind: claude, sandbox: off', /sees the diff alone: its sandbox is off/],
      ["kind: openai, base_url: 'http://127.0.0.1:1/v1', model: m", /no tools that read files/],
    ] as const) {
      const agents = `agents: { one: { ${keys} } }\n`
      const home = await temporaryHome({ agents })
      const { code, stdout, stderr } = await add(home)
      assert.equal(code, 0, stderr)
      assert.equal(await agentsIn(home), agents)
      if (words) assert.match(stdout, words)
      else assert.doesNotMatch(stdout, /sees the diff/)
    }
  })

  it('needs an agent with a model, and the name of one where there are several', async () => {
    const echo = await temporaryHome()
    const none = await add(echo)
    assert.equal(none.code, 2)
    assert.match(
      none.stderr,
      /no agent that could review code yet\n.*doorward agent add \w+ reviewer/,
    )
    const two = await temporaryHome({
      agents: 'agents: { echo: { kind: echo }, one: { kind: claude }, two: { kind: codex } }\n',
    })
    const unclear = await add(two)
    assert.equal(unclear.code, 2)
    assert.match(unclear.stderr, /more than one agent: choose one\n.*--agent with one of one, two/)
    assert.equal((await add(two, '--agent', 'two', '--deliver-to', 'log')).code, 0)
    const { webhooks } = await loadConfig(two, {})
    assert.equal(webhooks[0]?.rules[0].agentName, 'two')
  })

  it('asks for the agent on a terminal', async function () {
    if (!hasTerminal()) this.skip()
    const agents = 'agents: { one: { kind: claude }, two: { kind: codex } }\n'
    const home = await temporaryHome({ agents })
    const child = startOnTerminal('webhook add github-review', { home })
    await untilSaid(child, 'stdout', /Which agent reviews\? \(one, two\)/)
    child.stdin?.write('two\n')
    const { code, stdout } = await resultOf(child)
    assert.equal(code, 0, stdout)
    const { webhooks } = await loadConfig(home, {})
    assert.equal(webhooks[0]?.rules[0].agentName, 'two')
  })
})

describe('cli: keys that are added to an entry', () => {
  const set = (text: string) => setInEntry(text, ['agents', 'a'], 'kind', { tools: 'read' })

  it('stand behind its kind, and nothing else changes', () => {
    for (const [before, after] of [
      ['agents:\n  a:\n    kind: claude\n', 'agents:\n  a:\n    kind: claude\n    tools: read\n'],
      [
        '# top\nagents:\r\n    a:\r\n        timeout: 1m\r\n        kind: claude # why\r\n\r\n    b: { kind: echo }\r\n',
        '# top\nagents:\r\n    a:\r\n        timeout: 1m\r\n        kind: claude # why\r\n        tools: read\r\n\r\n    b: { kind: echo }\r\n',
      ],
      ['agents: { a: { kind: claude } }', 'agents: { a: { kind: claude, tools: read } }'],
      ['agents:\n  a: {kind: claude}\n', 'agents:\n  a: {kind: claude, tools: read}\n'],
    ])
      assert.equal(set(before ?? ''), after)
  })

  it('are not written where that would change more', () => {
    for (const text of [
      'agents:\n  b: &same\n    kind: claude\n  a: *same\n',
      'agents:\n  a:\n    "kind": claude\n',
      'agents:\n  a:\n    kind:\n      claude\n',
      'agents: {}\n',
    ])
      assert.equal(set(text), undefined)
  })
})
