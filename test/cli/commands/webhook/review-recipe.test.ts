import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { setInEntry } from '../../../../shared/config-edit/add-entry.ts'
import { loadConfig } from '../../../../shared/config/load.ts'
import { collectWarnings } from '../../../../shared/config/warnings.ts'
import { type Home, resolveHome } from '../../../../shared/home/home.ts'
import { findSandbox } from '../../../../shared/sandbox/probe.ts'
import { temporaryFolder, temporaryHome } from '../../../support/temporary.ts'
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
      ['review', 'coder', 4, 'github-review', ['diff', 'reviews']],
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
      /no agent that could review code yet\n.*webhook add github-review --agent \w+/,
    )
    const two = await temporaryHome({
      agents: 'agents: { echo: { kind: echo }, one: { kind: claude }, two: { kind: codex } }\n',
    })
    const unclear = await add(two)
    assert.equal(unclear.code, 2)
    assert.match(unclear.stderr, /more than one agent: choose one\n.*--agent with one of one, two/)
    assert.equal((await add(two, '--agent', 'two', '--deliver-to', 'log')).code, 0)
    const { webhooks } = await loadConfig(two, {})
    assert.equal(webhooks[0]?.rules[0]?.agentName, 'two')
  })

  it('makes the agent that is named like an installed program, in a home that is new', async () => {
    const folder = await temporaryFolder()
    await writeFile(join(folder, 'codex'), '#!/bin/sh\n', { mode: 0o700 })
    const env = { PATH: [folder, process.env['PATH']].join(delimiter) }
    const home = resolveHome(join(folder, 'home'))
    const addWith = async (...args: string[]) => run(['webhook', 'add', ...args], { home, env })
    const { code, stdout, stderr } = await addWith('github-review', '--agent', 'codex')
    assert.equal(code, 0, stderr)
    assert.match(stdout, /^agent +codex, new in agents\.yaml\n +(may now read|sees the diff)/m)
    const { agents, webhooks } = await loadConfig(home, env)
    assert.equal(agents.get('codex')?.kind, 'codex')
    assert.equal(webhooks.at(-1)?.rules[0]?.agentName, 'codex')
    // The next one uses it, and any preset can make one.
    const before = await agentsIn(home)
    assert.equal((await addWith('github', '--path', '/b', '--agent', 'codex')).code, 0)
    assert.equal(await agentsIn(home), before)
    await writeFile(join(folder, 'llm'), '#!/bin/sh\n', { mode: 0o700 })
    const other = await addWith('stripe', '--agent', 'llm', '--json')
    const { agent, agentState } = JSON.parse(other.stdout) as Record<string, string>
    assert.deepEqual([agent, agentState], ['llm', 'new'])
    assert.match(await agentsIn(home), /^ {2}llm:\n {4}kind: llm$/m)
  })

  it('makes no agent whose program is missing, none of an unknown name, and none where the rest is refused', async () => {
    const home = await temporaryHome()
    const before = await agentsIn(home)
    const path = await temporaryFolder()
    for (const [args, words] of [
      [['--agent', 'claude'], /no agent claude, and no program claude on PATH\n.*npm install -g @/],
      [['--agent', 'clade'], /clade/],
    ] as const) {
      const { code, stderr } = await run(['webhook', 'add', 'github-review', ...args], {
        home,
        env: { PATH: path },
      })
      assert.equal(code, 2, stderr)
      assert.match(stderr, words)
    }
    await writeFile(join(path, 'claude'), '#!/bin/sh\n', { mode: 0o700 })
    const env = { PATH: path }
    const refused = await run(
      ['webhook', 'add', 'github-review', '--agent', 'claude', '--deliver-to', 'nowhere:x'],
      { home, env },
    )
    assert.equal(refused.code, 2, refused.stderr)
    assert.equal(await agentsIn(home), before)
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
    assert.equal(webhooks[0]?.rules[0]?.agentName, 'two')
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
