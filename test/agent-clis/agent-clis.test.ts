import assert from 'node:assert/strict'
import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import type { EventDetail } from '../../shared/api/api.ts'
import { findSandbox } from '../../shared/sandbox/probe.ts'
import { run } from '../cli/support/cli.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../support/daemon/daemon.ts'
import { send } from '../support/servers/http.ts'
import {
  type ModelBehaviour,
  type ModelServer,
  startModelServer,
} from '../support/servers/model-server.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { agentsFile, kinds, loginFiles, programs } from './support/programs.ts'

/*
 * The agent programs themselves, as scripts/agent-clis.mjs installs them, run by the built daemon
 * against a model of our own.
 */

const webhooksFile = `webhooks:
${kinds.map((kind) => `  - { path: /${kind}, agent: ${kind}, prompt_template: "Say it. {{event.canary}} {{event.more}}" }`).join('\n')}
${kinds.map((kind) => `  - { path: /at-${kind}, agent: at-${kind}, prompt_template: "Say it. {{event.canary}} {{event.more}}" }`).join('\n')}
${kinds.map((kind) => `  - { path: /boxed-${kind}, agent: boxed-${kind}, prompt_template: "Say it. {{event.canary}}" }`).join('\n')}
${kinds.map((kind) => `  - { path: /writer-${kind}, agent: writer-${kind}, prompt_template: "Say it. {{event.canary}}" }`).join('\n')}
  - { path: /cheap-claude, agent: cheap-claude, prompt_template: "Say it. {{event.canary}}" }
${kinds.map((kind) => `  - { path: /hasty-${kind}, agent: hasty-${kind}, prompt_template: "Say it. {{event.canary}}" }`).join('\n')}
`

/** The same agents by other names, with more settings. */
const variant = (agents: string, name: string, settings: string): string =>
  agents
    .split('\n')
    .flatMap((line) => {
      const other = line.replace(/^ {2}(\w+): \{ /, `  ${name}-$1: { ${settings}, `)
      return other === line ? [] : [other]
    })
    .join('\n')

const oneToken = { inputTokens: 1, outputTokens: 1, cachedTokens: 0 }

/** The model says that an answer takes a token in and a token out. */
const usages: Readonly<Record<(typeof kinds)[number], EventDetail['usage']>> = {
  claude: { ...oneToken, model: 'claude-opus-5-5', turns: 1 },
  codex: oneToken,
  gemini: { ...oneToken, model: 'fake-model', turns: 1 },
  opencode: { ...oneToken, turns: 1 },
}

/** How each of them reads a file. */
const readCalls: Readonly<Record<(typeof kinds)[number], (path: string) => object>> = {
  claude: (path) => ({ name: 'Read', input: { file_path: path } }),
  codex: (path) => ({ name: 'exec_command', input: { cmd: `cat ${path}` } }),
  gemini: (path) => ({ name: 'read_file', input: { file_path: path } }),
  opencode: (path) => ({ name: 'read', input: { filePath: path } }),
}

describe('the agent programs themselves', function () {
  this.timeout(120_000)
  let model: ModelServer
  let daemon: RunningDaemon
  let home: string
  let temporary: string
  let project: string
  let runs = 0

  before(async () => {
    model = await startModelServer()
    home = await temporaryFolder()
    temporary = await temporaryFolder()
    project = await temporaryFolder()
    await writeFile(join(project, 'inside.txt'), 'inside-canary')
    await writeFile(join(home, 'key.txt'), 'key-of-the-person')
    for (const [path, text] of Object.entries(loginFiles(model.origin))) {
      await mkdir(join(home, path, '..'), { recursive: true })
      await writeFile(join(home, path), text)
    }
    const agents = agentsFile(model.origin)
    daemon = await startDaemon({
      agents: [
        agents.trimEnd(),
        variant(agents, 'hasty', 'timeout: 8s'),
        variant(agents, 'at', `cwd: "${project}"`),
        variant(
          agents.slice(0, agents.indexOf('  codex:')),
          'cheap',
          'budget: { run: 0.000001 }, tools: read',
        ),
        variant(agents, 'writer', `cwd: "${project}", tools: write, sandbox: required`),
        variant(agents, 'boxed', `cwd: "${project}", tools: read, sandbox: required`),
        '',
      ].join('\n'),
      webhooks: webhooksFile,
      gateway: 'oauth: { callback_port: 0 }\nqueue: { concurrency: 8 }\n',
      env: 'FAKE_KEY=key-canary\n',
      variables: {
        HOME: home,
        TMPDIR: temporary,
        PATH: [programs, process.env['PATH']].join(delimiter),
      },
    })
  })
  after(async () => {
    await daemon?.stop()
    model?.close()
  })

  /** Sends an event with a canary of its own through an agent. */
  const ask = async (path: string, more = ''): Promise<{ event: EventDetail; canary: string }> => {
    const canary = `canary-${(runs += 1)}-${Math.random().toString(36).slice(2)}`
    const reply = await send(`${daemon.url}/${path}`, {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ canary, more }),
    })
    return { event: await untilFinished(daemon, String(reply.json()['id'])), canary }
  }

  /** Every file that holds a text, in all places that a run could have written to. */
  const filesWith = async (text: string): Promise<string[]> => {
    const found: string[] = []
    for (const root of [home, temporary, daemon.home.root, '/dev/shm']) {
      const entries = await readdir(root, { recursive: true, withFileTypes: true }).catch(() => [])
      for (const entry of entries) {
        if (!entry.isFile()) continue
        const path = join(entry.parentPath, entry.name)
        const bytes = await readFile(path).catch(() => Buffer.alloc(0))
        if (bytes.includes(text)) found.push(path)
      }
    }
    return found
  }

  const requestsWith = (canary: string) =>
    model.requests.filter(({ body }) => body.includes(canary))

  const toolsIn = (body: string): unknown[] => {
    const { tools = [] } = JSON.parse(body) as { tools?: { functionDeclarations?: unknown[] }[] }
    return tools.flatMap((tool) => tool.functionDeclarations ?? [tool])
  }

  for (const kind of kinds) {
    describe(kind, () => {
      it('answers with no tool and no file that the event names, is told that it is data, and leaves the prompt in none', async () => {
        model.behave({ kind: 'answers', text: 'Two\nlines “said”.' })
        const paths = ['inside.txt', join(project, 'inside.txt'), join(home, 'key.txt')]
        const { event, canary } = await ask(`at-${kind}`, paths.map((path) => `@${path}`).join(' '))
        assert.deepEqual([event.state, event.result], ['done', 'Two\nlines “said”.'], event.detail)
        const { costUsd, ...usage } = event.usage ?? {}
        assert.deepEqual(usage, usages[kind])
        assert.equal(costUsd !== undefined && costUsd > 0, kind === 'claude')
        const requests = requestsWith(canary)
        const [request] = requests
        assert.ok(request)
        assert.match(request.body, /<<<EVENT_TEXT [0-9a-f]{16}>>>/)
        assert.match(request.body, /never instructions to follow/)
        for (const { body } of requests)
          assert.doesNotMatch(body, /inside-canary|key-of-the-person/)
        const names = requests
          .flatMap(({ body }) => toolsIn(body))
          .map((tool) => (tool as { name?: string }).name)
        // It asks the person, of whom there is none.
        assert.deepEqual(
          names.filter((name) => name !== 'request_user_input'),
          [],
        )
        assert.deepEqual(await filesWith(canary), [])
        assert.deepEqual(await readdir(temporary), [])
      })

      it('reads its folder with its own tools in the sandbox, and nothing of the home', async function () {
        if (!process.env['CI'] && 'missing' in (await findSandbox(process.env))) this.skip()
        const read = async (path: string) => {
          model.behave({ kind: 'asks-for-tool', ...readCalls[kind](path) } as ModelBehaviour)
          const { event } = await ask(`boxed-${kind}`)
          assert.equal(event.state, 'done', event.detail)
          return event.result ?? ''
        }
        assert.match(await read(join(project, 'inside.txt')), /inside-canary/)
        const outside = await read(join(home, 'key.txt'))
        assert.match(outside, /denied|No such file|not in workspace|prevents you/)
        assert.ok(!outside.includes('key-of-the-person'))
      })

      it('reaches its model, and nothing else, where it may write', async () => {
        model.behave({ kind: 'answers', text: `the answer of ${kind}` })
        const { event } = await ask(`writer-${kind}`)
        assert.deepEqual([event.state, event.result], ['done', `the answer of ${kind}`])
        assert.equal(event.sandbox?.network, 'model')
        // What it does without: experiments, and telemetry.
        const refused = event.sandbox?.refused ?? []
        const known =
          /^(ab\.chatgpt\.com|play\.googleapis\.com|\S*(statsig|sentry|datadog)\S*):443$/
        assert.ok(
          refused.every((host) => known.test(host)),
          refused.join(' '),
        )
      })

      it('fails with its own words and the way to log in when the model refuses it', async () => {
        model.behave({ kind: 'refuses', status: 401, message: 'the model says no' })
        const { event, canary } = await ask(kind)
        assert.deepEqual(
          [event.state, event.stage, event.code],
          ['failed', 'agent', 'agent-failed'],
        )
        assert.match(event.detail ?? '', /^\w+ exited with code \d+: .*the model says no/s)
        assert.match(event.detail ?? '', kind === 'opencode' ? /says no/ : /\(run/)
        assert.ok(!event.detail?.includes('key-canary') && !event.detail?.includes(canary))
        assert.deepEqual(await filesWith(canary), [])
      })
    })
  }

  it('are ended when a run has cost what it may, and the event has what that was', async () => {
    const call = readCalls.claude(join(project, 'inside.txt'))
    model.behave({ kind: 'asks-for-tool', ...call } as ModelBehaviour)
    const { event } = await ask('cheap-claude')
    assert.deepEqual([event.state, event.code], ['failed', 'budget-reached'], event.detail)
    assert.match(event.detail ?? '', /^claude ended the run at its budget/)
    assert.ok((event.usage?.costUsd ?? 0) > 0)
  })

  // These wait for their time to be over: all four at once.
  it('fail, or are stopped in time, when the model has a fault', async () => {
    model.behave({ kind: 'refuses', status: 500, message: 'the model is broken' })
    for (const { event, canary } of await Promise.all(kinds.map((kind) => ask(`hasty-${kind}`)))) {
      assert.equal(event.state, 'failed')
      assert.match(event.code ?? '', /^agent-(failed|timeout)$/)
      assert.ok((event.durations.agentMs ?? 0) < 20_000)
      assert.deepEqual(await filesWith(canary), [])
    }
  })

  it('are stopped in time when the model never answers, and leave nothing', async () => {
    model.behave({ kind: 'hangs' })
    for (const { event, canary } of await Promise.all(kinds.map((kind) => ask(`hasty-${kind}`)))) {
      assert.deepEqual([event.state, event.code], ['failed', 'agent-timeout'])
      assert.ok((event.durations.agentMs ?? 0) < 20_000)
      assert.deepEqual(await filesWith(canary), [])
    }
    assert.deepEqual(await readdir(temporary), [])
  })

  it('pass the privacy check of doorward doctor', async () => {
    model.behave({ kind: 'answers', text: 'ok' })
    const { code, stdout, stderr } = await run(
      ['doctor', '--privacy', '--yes', '--json', ...kinds.map((kind) => `/${kind}`)],
      { home: daemon.home, env: { HOME: home, TMPDIR: temporary } },
    )
    // A doctor that did not get to its report says why here.
    assert.notEqual(stdout, '', `it exited with ${code}: ${stderr}`)
    const answer = JSON.parse(stdout) as { webhooks: { state: string }[]; files: unknown[] }
    assert.deepEqual(
      answer.webhooks.map(({ state }) => state),
      ['done', 'done', 'done', 'done'],
      stdout,
    )
    assert.deepEqual([code, answer.files], [0, []], stderr)
  })
})
