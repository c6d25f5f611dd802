import assert from 'node:assert/strict'
import { mkdir, readdir, readFile, realpath, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { canaryPayload, findText } from '../../../../cli/commands/doctor/canary.ts'
import { firstMismatch } from '../../../../daemon/webhook/rules/choose.ts'
import { checkConfig } from '../../../../shared/config/load.ts'
import { readYaml } from '../../../../shared/config/yaml.ts'
import type { SessionList } from '../../../../shared/api/api.ts'
import { makeClaudeStandIn } from '../../../support/claude-stand-in.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../../support/daemon/daemon.ts'
import { scopeOf } from '../../../support/scope.ts'
import { send } from '../../../support/servers/http.ts'
import { temporaryFolder } from '../../../support/temporary.ts'
import { hasTerminal, resultOf, run, startOnTerminal, untilSaid } from '../../support/cli.ts'

const node = JSON.stringify(process.execPath)
const keeps = JSON.stringify(
  `const { readFileSync, writeFileSync } = require('node:fs')
const text = readFileSync(0, 'utf8')
writeFileSync(process.env.HOME + '/.claude/history.jsonl', text)
writeFileSync(process.env.HOME + '/.codex/state.sqlite', Buffer.concat([Buffer.alloc(70000), Buffer.from(text, 'utf16le')]))
console.log('done')`,
)

const agents = `agents:
  echo: { kind: echo }
  keeps: { kind: command, command: [${node}, -e, ${keeps}] }
  claude: { kind: claude, sandbox: 'off' }
  fails: { kind: command, command: [${node}, -e, "process.exit(3)"] }
`
const webhooks = `webhooks:
  - path: /clean
    agent: echo
    prompt_template: "{{event.issue.title}} {{event.commits.0.message}}"
    secret_env: HOOK_SECRET
    filter: { action: [opened, closed], issue.state: open }
    deliver_to: ["file:answers/{{event.issue.number}}.md", log]
  - { path: /keeps, agent: keeps, prompt_template: "{{event}}" }
  - { path: /fails, agent: fails, prompt_template: "{{event}}" }
  - { path: /talk, agent: claude, prompt_template: "{{event.text}}", session: "{{event.thing}}" }
  - { path: /off, agent: fails, prompt_template: "{{event}}", enabled: false }
`

describe('cli: doctor --privacy', () => {
  let daemon: RunningDaemon
  let home: string
  let env: Record<string, string>

  before(async () => {
    home = await realpath(await temporaryFolder())
    await mkdir(join(home, '.claude'))
    await mkdir(join(home, '.codex'))
    env = { HOME: home, TMPDIR: await realpath(await temporaryFolder()) }
    const claude = await makeClaudeStandIn(join(home, 'none'))
    const path = [claude.folder, process.env['PATH']].join(delimiter)
    const variables = { ...env, PATH: path, DOORWARD_LOG_LEVEL: 'trace' }
    daemon = await startDaemon({ agents, webhooks, env: 'HOOK_SECRET=of-the-test\n', variables })
  })
  after(() => daemon.stop())

  const doctor = (...args: string[]) =>
    run(['doctor', '--privacy', ...args], { home: daemon.home, env })

  it('sends an event that passes the filter, and finds it where its target was to write it alone', async () => {
    const { code, stdout, stderr } = await doctor('/clean', '--yes')
    assert.equal(code, 0, stdout + stderr)
    assert.match(stderr, /\/clean -> agent echo \(echo\) -> file:answers\/.*, log/)
    const file = join(daemon.home.root, 'answers', 'privacy-check.md')
    assert.match(stdout, /^\/clean: done evt_/)
    assert.ok(
      stdout.includes(`as expected in ${await realpath(file)} (file:answers/privacy-check.md)`),
    )
    assert.match(stdout, /the event is in none but those of targets$/m)
    assert.equal((await readFile(file, 'utf8')).match(/doorward-canary-[0-9a-f]{32}/g)?.length, 2)
  })

  it('names each file in which an agent kept it, and ends with 1', async () => {
    const { code, stdout } = await doctor('/keeps', '--yes', '--json')
    assert.equal(code, 1)
    const answer = JSON.parse(stdout) as {
      ok: boolean
      files: unknown
      webhooks: { state: string }[]
    }
    assert.equal(answer.ok, false)
    assert.deepEqual(answer.files, [
      { path: join(home, '.claude', 'history.jsonl'), expected: false },
      { path: join(home, '.codex', 'state.sqlite'), expected: false },
    ])
    assert.doesNotMatch(stdout, /doorward-canary-/)
  })

  it('goes through every enabled webhook, and cannot vouch for one that fails', async () => {
    const { code, stdout, stderr } = await doctor('--yes')
    assert.equal(code, 1)
    assert.match(
      stdout,
      /^\/clean: done .*\n\/keeps: done .*\n\/fails: failed \(agent-failed\) evt_.*\n\/talk: done /,
    )
    assert.match(stderr, /\/fails was not checked to its end/)
    assert.doesNotMatch(stdout, /\/off/)
  })

  for (const store of ['memory', 'sealed'])
    it(`finds nothing of a conversation whose store is ${store}, and forgets it`, async () => {
      await writeFile(
        join(daemon.home.config, 'gateway.yaml'),
        `oauth: { callback_port: 0 }\nsessions: { store: ${store} }\n`,
      )
      await daemon.client.post('/daemon/reload')
      const canary = `canary-of-${store}`
      const word = canary.replaceAll('-', '_')
      const ask = async () => {
        const reply = await send(`${daemon.url}/talk`, {
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ text: `say:${word} ${canary}`, thing: 'a' }),
        })
        return untilFinished(daemon, String(reply.json()['id']))
      }
      await ask()
      const own = await ask()
      assert.equal(own.session?.state, 'resumed', own.detail)
      const { code, stdout } = await doctor('/talk', '--yes')
      assert.equal(code, 0, stdout)
      for (const text of [canary, word])
        assert.deepEqual(
          (await findText([daemon.home.root, home, env['TMPDIR'] ?? ''], text, 0)).paths,
          [],
        )
      const { sessions } = await daemon.client.get<SessionList>('/sessions')
      assert.deepEqual(
        sessions.map(({ event, isSealed }) => [event, isSealed]),
        [[own.id, store === 'sealed']],
      )
      const files = await readdir(join(daemon.home.state, 'sessions')).catch(() => [])
      assert.equal(files.length, store === 'sealed' ? 1 : 0)
      await daemon.client.delete(`/sessions/${sessions[0]?.id}`)
    })

  it('runs nothing when nobody can be asked', async () => {
    const { code, stderr } = await doctor('/keeps')
    assert.equal(code, 2)
    assert.match(stderr, /there is no terminal to ask\nhint: say so with --yes/)
    const off = await doctor('/off', '--yes')
    assert.deepEqual([off.code, /not enabled/.test(off.stderr)], [2, true])
    assert.match((await doctor('/claen', '--yes')).stderr, /no webhook .*\nhint: .*"\/clean"/)
  })

  it('asks on a terminal, and runs nothing without a yes', async function () {
    if (!hasTerminal()) return this.skip()
    const child = startOnTerminal('doctor --privacy /clean', { home: daemon.home, env })
    const ended = resultOf(child)
    await untilSaid(child, 'stdout', /Go on\? \[y\/N\]/)
    child.stdin?.write('n\n')
    const { code, stdout } = await ended
    assert.equal(code, 1)
    assert.match(stdout, /nothing was run or sent/)
  })
})

describe('canaryPayload', () => {
  const ruleOf = (entry: string) => {
    const { webhooks: checked } = checkConfig(
      readYaml('gateway.yaml', ''),
      readYaml('agents.yaml', 'agents: { echo: { kind: echo } }'),
      readYaml('webhooks.yaml', `webhooks:\n  - path: /a\n    agent: echo\n${entry}`),
      {},
    )
    const [rule] = checked[0]?.rules ?? []
    assert.ok(rule)
    return rule
  }

  it('brings the canary to every path of the template, through loops and assigned names too', () => {
    const rule = ruleOf(
      `    prompt_template: '{{event.a}} {{event.a.b}} {% for c in event.commits %}{{ c.author.name }}{% endfor %}{% assign o = event.data.object %}{{ o.id | upcase }}'\n    filter: { e: [1, 2], f.g: true }\n`,
    )
    assert.deepEqual(JSON.parse(JSON.stringify(canaryPayload(rule, 'X'))), {
      doorward_canary: 'X',
      a: { text: 'X', b: 'X' },
      commits: [{ author: { name: 'X' } }],
      data: { object: { text: 'X', id: 'X' } },
      e: '1',
      f: { g: 'true' },
    })
  })

  it('passes the tests of a filter', () => {
    const rule = ruleOf(`    prompt_template: '{{event.title}} {{event.labels[*].name}}'
    filter:
      labels[*].name: { not: wip, glob: 'b*g' }
      meta["a.b"]: { contains: x }
      size: { above: 5, below: 7 }
      closed_at: { exists: false }
      id: { exists: true }
      body: { regex: ^/review }
      any: [{ action: [opened, closed] }, { none: [{ action: x }] }]
      none: [{ draft: true }]
`)
    const payload: unknown = JSON.parse(JSON.stringify(canaryPayload(rule, 'X')))
    assert.equal(firstMismatch(scopeOf(payload), rule.filter), undefined)
    assert.match(JSON.stringify(payload), /"title":"X"/)
  })
})

describe('findText', () => {
  it('finds a text across pieces of a large file, in what has changed alone', async () => {
    const folder = await realpath(await temporaryFolder())
    const before = Date.now() - 1000
    await writeFile(
      join(folder, 'large'),
      `${'x'.repeat(65_536 - 5)}the-canary${'y'.repeat(100_000)}`,
    )
    await writeFile(join(folder, 'other'), 'the-canar')
    const found = await findText(
      [folder, join(folder, 'large'), '/no/such/place'],
      'the-canary',
      before,
    )
    assert.deepEqual(found, { paths: [join(folder, 'large')], searched: 2, unreadable: 0 })
    assert.deepEqual((await findText([folder], 'the-canary', Date.now() + 60_000)).paths, [])
  })
})
