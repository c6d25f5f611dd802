import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { watch } from 'node:fs'
import { access, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import type { EventDetail, EventRecord, SessionList } from '../../../shared/api/api.ts'
import { run } from '../../cli/support/cli.ts'
import { type ClaudeStandIn, makeClaudeStandIn } from '../../support/claude-stand-in.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { restart, stopHome } from '../../support/daemon/restart.ts'
import { send } from '../../support/servers/http.ts'
import { temporaryFolder } from '../../support/temporary.ts'

const webhooks = (template = 'Go on. {{event.text}}'): string => `
webhooks:
  - path: /talk
    prompt_template: '${template}'
    session: '{{event.thing}}'
    session_limit: 64kb
    rules:
      - { name: one, agent: claude }
  - path: /twice
    prompt_template: 'Go on. {{event.text}}'
    session: '{{event.thing}}'
    rules:
      - { name: first, agent: claude }
      - { name: second, agent: claude }
  - path: /short
    agent: claude
    prompt_template: 'Go on. {{event.text}}'
    session: '{{event.thing}}'
    session_ttl: 1ms
  - path: /other
    agent: echo
    prompt_template: 'Go on. {{event.text}}'
    session: '{{event.thing}}'
`

const agents = `
agents:
  claude: { kind: claude, concurrency: 4 }
  echo: { kind: echo }
`

/** The same conversation from one event to the next, with a program that stands in for Claude Code. */
describe('the conversation of a rule', () => {
  let home: string
  let secret: string
  let claude: ClaudeStandIn
  let daemon: RunningDaemon
  let things = 0

  const variables = () => ({
    HOME: home,
    PATH: [claude.folder, process.env['PATH']].join(delimiter),
  })
  const gateway = (store: string) =>
    `oauth: { callback_port: 0 }\nsessions: { store: ${store} }\nqueue: { drain_timeout: 10s }\n`
  const begin = async (store = 'memory') =>
    startDaemon({ webhooks: webhooks(), agents, gateway: gateway(store), variables: variables() })

  before(async () => {
    home = await temporaryFolder()
    secret = join(home, 'secret.txt')
    await writeFile(secret, JSON.stringify({ content: 'a secret of the owner' }))
    claude = await makeClaudeStandIn(secret)
    daemon = await begin()
  })
  after(async () => {
    await daemon?.stop()
  })

  const newThing = () => `acme/shop#${(things += 1)}`
  const post = async (path: string, thing: string, text: string): Promise<string> => {
    const headers = { 'content-type': 'application/json' }
    const reply = await send(`${daemon.url}${path}`, {
      headers,
      body: JSON.stringify({ thing, text }),
    })
    return String(reply.json()['id'])
  }
  const ask = async (path: string, thing: string, text: string): Promise<EventDetail> =>
    untilFinished(daemon, await post(path, thing, text))
  const cli = async (...words: string[]) => run(words, { home: daemon.home, env: variables() })
  const sessions = async () => (await daemon.client.get<SessionList>('/sessions')).sessions

  it('goes on, and counts what each event cost', async () => {
    const thing = newThing()
    const first = await ask('/talk', thing, 'say:one')
    assert.deepEqual(first.session, { key: thing, turn: 1, state: 'new' }, first.detail)
    const second = await ask('/talk', thing, 'say:two')
    assert.deepEqual(second.session, { key: thing, turn: 2, state: 'resumed' })
    assert.equal(second.result, 'one,two')
    assert.equal(second.usage?.costUsd, 0.01)
    const [session] = (await sessions()).filter(({ key }) => key === thing)
    assert.equal(session?.turns, 2)
    assert.equal(session?.event, second.id)
    assert.match((await cli('session', 'list')).stdout, new RegExp(`${thing} +one +claude +2`))
    assert.match((await cli('session', 'show', thing)).stdout, /agent +claude \(claude\)/)
    // Nothing is left in the program's own store.
    await assert.rejects(access(join(home, '.claude', 'projects')))
  })

  it('belongs to one rule', async () => {
    const thing = newThing()
    const headers = { 'content-type': 'application/json' }
    const twice = async (text: string) => {
      const body = JSON.stringify({ thing, text })
      const reply = await send(`${daemon.url}/twice`, { headers, body })
      const { events } = reply.json() as { events: { id: string }[] }
      return Promise.all(events.map(async ({ id }) => untilFinished(daemon, id)))
    }
    await twice('say:one')
    const seconds = await twice('say:two')
    assert.deepEqual(
      seconds.map(({ result }) => result),
      ['one,two', 'one,two'],
    )
    const foreign = await ask('/talk', thing, 'say:three')
    assert.equal(foreign.result, 'three')
    const ambiguous = await cli('session', 'show', thing)
    assert.match(ambiguous.stderr, /name one of them before the key: .*second/)
    const shown = await cli('session', 'forget', 'second', thing)
    assert.match(shown.stdout, /^forgot acme/)
    const results = (await twice('say:four')).map(({ result = '' }) => result)
    assert.ok(results.includes('four') && results.includes('one,two,four'), results.join(' '))
  })

  it('starts over in the same run where the program does not go on with it', async () => {
    const thing = newThing()
    await ask('/talk', thing, 'say:one')
    const { state, result, session, detail } = await ask('/talk', thing, 'say:two do:refuse')
    assert.deepEqual([state, result, session?.state], ['done', 'two', 'anew'])
    assert.match(detail ?? '', /a new conversation was started: claude could not go on with it/)
    assert.equal((await ask('/talk', thing, 'say:three')).result, 'two,three')
  })

  it('goes on with a program that was updated, or starts over where that one refuses', async () => {
    const thing = newThing()
    await ask('/talk', thing, 'say:one')
    const path = join(claude.folder, 'claude')
    const text = await readFile(path, 'utf8')
    const update = async (next: string) => {
      await writeFile(`${path}.next`, next, { mode: 0o755 })
      await rename(`${path}.next`, path)
    }
    try {
      await update(`${text}// Version 2\n`)
      const second = await ask('/talk', thing, 'say:two')
      assert.deepEqual([second.result, second.session?.state], ['one,two', 'resumed'])
      await update(text.replace('if (resumed) {', "if (resumed) {\n  fail('another format')"))
      const third = await ask('/talk', thing, 'say:three')
      assert.deepEqual([third.result, third.session?.state], ['three', 'anew'], third.detail)
      assert.match(third.detail ?? '', /a new conversation was started: claude could not go on/)
    } finally {
      await update(text)
    }
  })

  for (const what of ['link', 'pipe', 'folder', 'linked-folder', 'big', 'damage'])
    it(`takes no ${what} for a transcript`, async () => {
      const thing = newThing()
      const first = await ask('/talk', thing, `say:one do:${what}`)
      assert.equal(first.state, 'done')
      if (what !== 'damage')
        assert.match(first.detail ?? '', /the next event starts a new conversation/)
      const second = await ask('/talk', thing, 'say:two')
      assert.deepEqual([second.result, second.session?.state], ['two', 'anew'], second.detail)
    })

  it('ends after its time, and starts over for another prompt', async () => {
    const thing = newThing()
    await ask('/short', thing, 'say:one')
    assert.equal((await ask('/short', thing, 'say:two')).session?.state, 'new')
    await ask('/talk', thing, 'say:one')
    const file = join(daemon.home.config, 'webhooks.yaml')
    await writeFile(file, webhooks('Go on, please. {{event.text}}'))
    await daemon.client.post('/daemon/reload')
    const { session } = await ask('/talk', thing, 'say:two')
    assert.equal(session?.why, 'its agent, the tools or the prompt_template have changed')
    await writeFile(file, webhooks())
    await daemon.client.post('/daemon/reload')
  })

  it('is not kept for an agent without conversations, or for an empty key', async () => {
    const { detail, session } = await ask('/other', newThing(), 'x')
    assert.equal(session, undefined)
    assert.match(detail ?? '', /no conversation was kept: an agent of kind echo/)
    assert.equal((await ask('/talk', '', 'say:one')).session, undefined)
  })

  const untilStarted = async () => {
    const started = join(claude.gate, 'started')
    const isThere = async () =>
      access(started).then(
        () => true,
        () => false,
      )
    await new Promise<void>((resolve) => {
      const watcher = watch(claude.gate, () => void check())
      const check = async () => {
        if (!(await isThere())) return
        watcher.close()
        resolve()
      }
      void check()
    })
    await rm(started)
  }
  const openGate = async () => writeFile(join(claude.gate, 'open'), '')
  const closeGate = async () => rm(join(claude.gate, 'open'), { force: true })

  it('runs its events one after the other, those of other keys beside them', async () => {
    const thing = newThing()
    const first = await post('/talk', thing, 'say:one do:wait')
    await untilStarted()
    const second = await post('/talk', thing, 'say:two')
    assert.equal((await ask('/talk', newThing(), 'say:other')).result, 'other')
    const waiting = await daemon.client.get<EventRecord>(`/events/${second}`)
    assert.equal(waiting.state, 'queued')
    await openGate()
    assert.equal((await untilFinished(daemon, first)).result, 'one')
    assert.equal((await untilFinished(daemon, second)).result, 'one,two')
    await closeGate()
  })

  it('is not kept when it is forgotten while its agent runs', async () => {
    const thing = newThing()
    await ask('/talk', thing, 'say:one')
    const running = await post('/talk', thing, 'say:two do:wait')
    await untilStarted()
    assert.equal((await cli('session', 'forget', thing)).code, 0)
    await openGate()
    const { result, detail } = await untilFinished(daemon, running)
    assert.equal(result, 'one,two')
    assert.match(detail ?? '', /it was forgotten while its agent ran/)
    await closeGate()
    assert.equal((await ask('/talk', thing, 'say:three')).result, 'three')
  })

  it('goes on at the terminal, and comes back', async () => {
    const thing = newThing()
    await ask('/talk', thing, 'say:one')
    const opened = await cli('session', 'open', thing)
    assert.equal(opened.code, 0, opened.stderr)
    const [, folder, id] = /^cd (\S+) && claude --resume (\S+)$/.exec(opened.stdout.trim()) ?? []
    assert.ok(folder !== undefined && id !== undefined, opened.stdout)
    const child = promisify(execFile)(join(claude.folder, 'claude'), ['--resume', id], {
      cwd: folder,
      env: { ...process.env, ...variables() },
    })
    child.child.stdin?.end('say:desk')
    await child
    const closed = await cli('session', 'close', thing)
    assert.match(closed.stdout, /^took back/, closed.stderr)
    const next = await ask('/talk', thing, 'say:two')
    assert.equal(next.result, 'one,desk,two')
    // What was said at the desk is in its total: the share of this event is not known.
    assert.equal(next.usage?.costUsd, undefined)
    assert.deepEqual(await filesBelow(join(home, '.claude')), [])
    await cli('session', 'open', thing)
    await ask('/talk', thing, 'say:three')
    assert.match((await cli('session', 'close', thing)).stderr, /events have gone on with it since/)
    assert.equal((await cli('session', 'forget', thing)).code, 0)
    assert.deepEqual(await filesBelow(join(home, '.claude')), [])
  })

  it('goes with the texts of an event that is forgotten', async () => {
    const thing = newThing()
    const { id } = await ask('/talk', thing, 'say:one')
    assert.match((await cli('events', 'forget', id)).stdout, /forgotten/)
    const event = await daemon.client.get<EventDetail>(`/events/${id}`)
    assert.deepEqual(
      [event.prompt, event.result, event.resultPreview, event.subject, event.session],
      [undefined, undefined, undefined, undefined, undefined],
    )
    assert.match((await cli('events', 'retry', id, '--again')).stderr, /no longer in memory/)
    assert.equal((await ask('/talk', thing, 'say:two')).result, 'two')
  })

  it('lasts over a restart, also of an event that ran then, and not over a stop', async () => {
    const thing = newThing()
    await ask('/talk', thing, 'say:one')
    const running = await post('/talk', thing, 'say:two do:wait')
    await untilStarted()
    await restart(daemon.client)
    const third = await post('/talk', thing, 'say:three')
    await openGate()
    const now = { client: await connectTo() }
    assert.equal((await untilFinished(now, running)).result, 'one,two')
    assert.equal((await untilFinished(now, third)).result, 'one,two,three')
    await closeGate()
    now.client.close()
    await stopHome(daemon.home)
    daemon = await startDaemon({ home: daemon.home, variables: variables() })
    assert.equal((await ask('/talk', thing, 'say:four')).session?.state, 'new')
  })

  const connectTo = async () => {
    const { connect } = await import('../../../shared/client/client.ts')
    return connect(daemon.home)
  }

  it('is sealed where the gateway says so, and starts over without the key', async () => {
    await daemon.stop()
    daemon = await begin('sealed')
    const thing = newThing()
    await ask('/talk', thing, 'say:canary')
    await daemon.stop()
    const folder = join(daemon.home.state, 'sessions')
    const [name = ''] = await readdir(folder)
    assert.match(name, /^[0-9a-f]{64}\.json$/)
    const sealed = await readFile(join(folder, name), 'utf8')
    assert.ok(!sealed.includes('canary') && !sealed.includes('acme'))
    daemon = await startDaemon({ home: daemon.home, variables: variables() })
    assert.equal((await ask('/talk', thing, 'say:two')).result, 'canary,two')
    await daemon.stop()
    await rm(join(daemon.home.run, 'sessions.key'))
    daemon = await startDaemon({ home: daemon.home, variables: variables() })
    const { result, session } = await ask('/talk', thing, 'say:three')
    assert.deepEqual([result, session?.state], ['three', 'anew'])
    assert.equal((await cli('session', 'forget', thing)).code, 0)
    await daemon.stop()
    assert.deepEqual(await readdir(folder), [])
    daemon = await startDaemon({ home: daemon.home, variables: variables() })
  })

  it('is opened in a checkout of the commit that its last event saw', async () => {
    const project = await temporaryFolder()
    const git = (...args: string[]) => execFileSync('git', args, { cwd: project, stdio: 'pipe' })
    git('init', '-q', '-b', 'main')
    await mkdir(join(project, 'src'))
    await writeFile(join(project, 'src', 'a.txt'), 'first')
    git('add', '.')
    git('-c', 'user.name=a', '-c', 'user.email=a@example.com', 'commit', '-qm', 'first')
    await writeFile(
      join(daemon.home.config, 'webhooks.yaml'),
      `webhooks:
  - path: /code
    agent: claude
    prompt_template: 'Go on. {{event.text}}'
    session: '{{event.thing}}'
    workspace: { repo: '${project}', ref: main }
`,
    )
    await writeFile(
      join(daemon.home.config, 'agents.yaml'),
      "agents:\n  claude: { kind: claude, sandbox: 'off' }\n",
    )
    await daemon.client.post('/daemon/reload')
    const thing = newThing()
    const first = await ask('/code', thing, 'say:one')
    assert.equal(first.session?.state, 'new', first.detail)
    assert.equal((await ask('/code', thing, 'say:two')).result, 'one,two')
    const opened = await cli('session', 'open', thing)
    const [, folder = ''] = /^cd (\S+) && /.exec(opened.stdout) ?? []
    assert.equal(await readFile(join(folder, 'src', 'a.txt'), 'utf8'), 'first', opened.stderr)
    assert.equal((await cli('session', 'close', thing)).code, 0)
    await assert.rejects(access(folder))
  })
})

const filesBelow = async (folder: string): Promise<string[]> =>
  (await readdir(folder, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)
