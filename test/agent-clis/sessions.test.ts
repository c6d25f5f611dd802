import assert from 'node:assert/strict'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import type { EventDetail } from '../../shared/api/api.ts'
import { findSandbox } from '../../shared/sandbox/probe.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../support/daemon/daemon.ts'
import { send } from '../support/servers/http.ts'
import { type ModelServer, startModelServer } from '../support/servers/model-server.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { hasTerminal, run, startOnTerminal } from '../cli/support/cli.ts'
import { Desk, makeCodex, writeDeskSettings } from './support/desk.ts'
import { agentsFile, kinds, loginFiles, programs } from './support/programs.ts'

/*
 * One conversation over several events, in the agent programs themselves: each run has a home and a folder of its
 * own, in the sandbox and without.
 */

const withSettings = (agents: string, prefix: string, settings: string): string =>
  agents
    .split('\n')
    .flatMap((line) => {
      const other = line.replace(/^ {2}(\w+): \{ /, `  ${prefix}-$1: { ${settings}, `)
      return other === line ? [] : [other]
    })
    .join('\n')

const webhook = (name: string, more = ''): string =>
  `  - { path: /${name}, agent: ${name}, prompt_template: "Say it. {{event.canary}}", session: "{{event.thing}}"${more} }`

describe('one conversation in the agent programs themselves', function () {
  this.timeout(180_000)
  let model: ModelServer
  let daemon: RunningDaemon
  let home: string
  let temporary: string
  let runs = 0

  let deskFolder: string
  let codexFolder: string
  const deskVariables = () => ({
    HOME: home,
    TMPDIR: temporary,
    PATH: [codexFolder, programs, process.env['PATH']].join(delimiter),
    FAKE_KEY: 'key-canary',
    ANTHROPIC_BASE_URL: model.origin,
    ANTHROPIC_API_KEY: 'key-canary',
    GOOGLE_GEMINI_BASE_URL: model.origin,
    GEMINI_API_KEY: 'key-canary',
    GEMINI_MODEL: 'gemini-2.5-flash',
    OPENCODE_DISABLE_MODELS_FETCH: '1',
  })

  before(async () => {
    model = await startModelServer()
    model.behave({ kind: 'answers', text: 'An answer.' })
    home = await temporaryFolder()
    temporary = await temporaryFolder()
    for (const [path, text] of Object.entries(loginFiles(model.origin))) {
      await mkdir(join(home, path, '..'), { recursive: true })
      await writeFile(join(home, path), text)
    }
    deskFolder = await temporaryFolder()
    codexFolder = await makeCodex(await temporaryFolder())
    await writeDeskSettings(home, deskFolder)
    const agents = agentsFile(model.origin)
    daemon = await startDaemon({
      agents: [agents.trimEnd(), withSettings(agents, 'boxed', 'sandbox: required'), ''].join('\n'),
      webhooks: `webhooks:\n${kinds.flatMap((kind) => [webhook(kind), webhook(`boxed-${kind}`)]).join('\n')}\n`,
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

  const ask = async (
    path: string,
    thing: string,
  ): Promise<{ readonly event: EventDetail; readonly canary: string }> => {
    const canary = `canary-${(runs += 1)}-${Math.random().toString(36).slice(2)}`
    const reply = await send(`${daemon.url}/${path}`, {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ canary, thing }),
    })
    return { event: await untilFinished(daemon, String(reply.json()['id'])), canary }
  }

  const filesWith = async (text: string): Promise<string[]> => {
    const found: string[] = []
    for (const root of [home, temporary, daemon.home.root, '/dev/shm'])
      for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
        const path = join(entry.parentPath, entry.name)
        if (!entry.isFile()) continue
        const bytes = await readFile(path).catch(() => Buffer.alloc(0))
        if (bytes.includes(text)) found.push(path)
      }
    return found
  }

  const bodyWith = (canary: string): string =>
    model.requests.findLast(({ body }) => body.includes(canary))?.body ?? ''

  /** Sums of dollars are not exact. */
  const figures = ({ usage }: EventDetail): unknown => ({
    ...usage,
    costUsd: usage?.costUsd?.toFixed(9),
  })

  for (const kind of kinds) {
    it(`${kind} goes on in another folder, counts each turn once, and leaves nothing`, async () => {
      const first = await ask(kind, 'acme/shop#1')
      assert.deepEqual(first.event.session, { key: 'acme/shop#1', turn: 1, state: 'new' })
      const second = await ask(kind, 'acme/shop#1')
      const went = { key: 'acme/shop#1', turn: 2, state: 'resumed' }
      assert.deepEqual(second.event.session, went, second.event.detail)
      assert.ok(bodyWith(second.canary).includes(first.canary))
      assert.deepEqual(figures(second.event), figures(first.event))
      for (const { canary } of [first, second]) assert.deepEqual(await filesWith(canary), [])
      // These two give the figures of the whole conversation.
      if (kind !== 'claude' && kind !== 'codex') return
      const third = await ask(kind, 'acme/shop#1')
      assert.equal(third.event.session?.turn, 3, third.event.detail)
      const body = bodyWith(third.canary)
      assert.ok(body.includes(first.canary) && body.includes(second.canary))
      assert.deepEqual(figures(third.event), figures(first.event))
    })

    it(`${kind} goes on in the sandbox, with its own key alone`, async function () {
      if (!process.env['CI'] && 'missing' in (await findSandbox(process.env))) this.skip()
      const boxed = `boxed-${kind}`
      const [first, other] = await Promise.all([
        ask(boxed, 'acme/shop#1'),
        ask(boxed, 'acme/shop#2'),
      ])
      assert.equal(first.event.state, 'done', first.event.detail)
      const second = await ask(boxed, 'acme/shop#1')
      assert.equal(second.event.session?.state, 'resumed', second.event.detail)
      assert.ok(second.event.sandbox)
      const body = bodyWith(second.canary)
      assert.ok(body.includes(first.canary) && !body.includes(other.canary))
      assert.deepEqual(await filesWith(first.canary), [])
    })
  }

  for (const kind of ['claude', 'codex'] as const)
    it(`${kind} goes on at the terminal, and is taken back`, async function () {
      if (!hasTerminal()) this.skip()
      const thing = `acme/desk-${kind}`
      const first = await ask(kind, thing)
      const options = { home: daemon.home, cwd: deskFolder, env: deskVariables(), timeout: 60_000 }
      const desk = new Desk(
        startOnTerminal(`session open ${thing}`, { ...options, size: { columns: 120, rows: 40 } }),
      )
      await desk.untilShown(prompts[kind])
      const typed = `typed-at-${kind}`
      for (const key of typed) desk.press(key)
      await desk.untilShown(new RegExp(typed))
      desk.press('\r')
      while (!bodyWith(typed)) await model.untilAsked()
      assert.ok(bodyWith(typed).includes(first.canary))
      await desk.untilShown(/Ananswer/)
      const leave = kind === 'claude' ? '/exit' : '/quit'
      for (const key of leave) desk.press(key)
      await desk.untilShown(new RegExp(leave))
      desk.press('\r')
      await desk.untilEnded()
      const closed = await run(['session', 'close', thing], options)
      assert.match(closed.stdout, /^took back/, closed.stderr)
      const next = await ask(kind, thing)
      assert.equal(next.event.session?.state, 'resumed', next.event.detail)
      const body = bodyWith(next.canary)
      assert.ok(body.includes(first.canary) && body.includes(typed))
    })
})

/** What each program shows when it waits for the first line. */
const prompts = {
  claude: /forshortcuts|automodeon|shift\+tab/,
  codex: /AskCodextodoanything/,
} as const
