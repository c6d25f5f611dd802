import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { EventDetail } from '../../../shared/api/api.ts'
import { workspacesSchema } from '../../../shared/api/workspaces.ts'
import { describeSandbox } from '../../../shared/event-stages.ts'
import { explanationSchema } from '../../../shared/api/explain.ts'
import type { Home } from '../../../shared/home/home.ts'
import { findSandbox } from '../../../shared/sandbox/probe.ts'
import { run } from '../../cli/support/cli.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { storeLogin } from '../../support/providers/stored-login.ts'
import { type GitServer, startGitServer } from '../../support/servers/git-server.ts'
import { send } from '../../support/servers/http.ts'
import { filesIn, temporaryFolder, temporaryHome } from '../../support/temporary.ts'
import { untilText } from '../../support/until-text.ts'

/** What `storeLogin` stores. */
const token = 'of-before'

const addressOf = (server: Server): string =>
  `http://127.0.0.1:${(server.address() as AddressInfo).port}`

const program = (code: string) => JSON.stringify([process.execPath, '-e', code])

/** Prints how many worktrees it sees, a file of its own, and what comes of writing a file and reaching above. */
const peek = `const fs = require('fs')
const attempt = (act) => { try { return act() } catch (error) { return error.code } }
console.log(fs.readdirSync('..').length, fs.readFileSync('src/a.ts', 'utf8').trim(),
  attempt(() => fs.writeFileSync('new', '')), attempt(() => fs.readdirSync('../../..').join()))`

describe('a rule with a workspace', () => {
  let server: GitServer
  /** It never answers. */
  let silent: Server
  let folder: string
  let home: Home
  let daemon: RunningDaemon
  before(async () => {
    server = await startGitServer(token, 'acme/app')
    silent = createServer()
    silent.listen(0, '127.0.0.1')
    await once(silent, 'listening')
    folder = await temporaryFolder()
    const mark = JSON.stringify(join(folder, 'mark'))
    const workspace = `workspace: { repo: '{{event.repo}}', ref: '{{event.ref}}', base: main }`
    home = await temporaryHome({
      gateway: `oauth: { callback_port: 0 }\nproviders: { github: { token_endpoint: "${server.origin}/token" }, gitlab: { git_hosts: ["${new URL(addressOf(silent)).host}"] } }\n`,
      agents: `
agents:
  list: { kind: command, command: ${program(`console.log(process.cwd()); console.log(require('fs').readdirSync('.').join())`)} }
  fail: { kind: command, command: ${program('process.exit(3)')} }
  peek: { kind: command, sandbox: required, command: ${program(peek)} }
  slow: { kind: command, timeout: 1s, command: ${program('setInterval(() => {}, 1000)')} }
  wait: { kind: command, sandbox: off, command: ${program(`require('fs').writeFileSync(${mark}, process.cwd() + '\\n'); setInterval(() => {}, 1000)`)} }
`,
      webhooks: `webhooks:\n${['list', 'fail', 'peek', 'slow', 'wait']
        .map((name) => `  - { path: /${name}, agent: ${name}, prompt_template: x, ${workspace} }\n`)
        .join('')}`,
    })
    await storeLogin(home, 'github', 'a refresh token')
    daemon = await startDaemon({ home })
  })
  after(async () => {
    await daemon.stop()
    server.close()
    silent.close()
    silent.closeAllConnections()
  })

  const post = async (path: string, payload: object): Promise<string> => {
    const headers = { 'content-type': 'application/json' }
    const reply = await send(`${daemon.url}${path}`, { headers, body: JSON.stringify(payload) })
    assert.equal(reply.status, 202, reply.text)
    return (reply.json() as { id: string }).id
  }
  const event = async (path: string, payload: object): Promise<EventDetail> =>
    untilFinished(daemon, await post(path, payload))
  const openRuns = async (): Promise<string[]> => {
    const mirrors = await readdir(home.workspaces).catch(() => [])
    const all = await Promise.all(
      mirrors.map((name) => readdir(join(home.workspaces, name, 'runs'))),
    )
    return all.flat()
  }

  it('runs its agent in the code of the event, and removes it afterwards', async () => {
    const head = await server.push(
      { 'CLAUDE.md': 'obey\n', 'src/a.ts': 'x\n' },
      { to: 'refs/heads/change' },
    )
    const done = await event('/list', { repo: 'acme/app', ref: head })
    assert.equal(done.state, 'done', done.detail)
    const [cwd = '', files] = (done.result ?? '').trim().split('\n')
    assert.equal(files, 'hello.txt,src')
    assert.ok(cwd.startsWith(home.workspaces), cwd)
    assert.ok(cwd.endsWith('/app'), cwd)
    assert.ok(!existsSync(cwd))
    assert.equal(done.detail, 'files that steer an agent are as in base: CLAUDE.md')
    assert.deepEqual([...new Set(server.logins)], [`x-access-token:${token}`])
    for (const file of await filesIn(home.root))
      if (!file.startsWith('tokens'))
        assert.ok(!(await readFile(join(home.root, file), 'latin1')).includes(token), file)
  })

  it('removes it when the agent fails, or takes too long', async () => {
    const payload = { repo: 'acme/app', ref: 'main' }
    assert.equal((await event('/fail', payload)).code, 'agent-failed')
    const slow = await event('/slow', payload)
    assert.equal(slow.code, 'agent-timeout')
    assert.match(slow.detail ?? '', /the whole run: checkout .* s, context .* s, agent .* s$/)
    assert.deepEqual(await openRuns(), [])
  })

  it('runs no agent for values that name no commit of a repository', async () => {
    for (const [payload, code, words] of [
      [
        { repo: 'acme/app', ref: '--upload-pack=touch' },
        'workspace-invalid',
        /no name of a branch/,
      ],
      [{ repo: 'acme/app', ref: 'a..b' }, 'workspace-invalid', /no name of a branch/],
      [{ repo: 'acme/app' }, 'workspace-invalid', /ref .* is empty in this event/],
      [{ repo: '/etc', ref: 'main' }, 'workspace-invalid', /only the rule itself/],
      [{ repo: '../../etc', ref: 'main' }, 'workspace-invalid', /no owner\/name/],
      [{ repo: 'https://evil.example/a/b', ref: 'main' }, 'workspace-invalid', /no login knows/],
      [{ repo: 'ext::sh -c id', ref: 'main' }, 'workspace-invalid', /no owner\/name/],
      [{ repo: 'acme/app', ref: 'gone' }, 'workspace-ref-not-found', /has no gone any more/],
      [{ repo: 'acme/none', ref: 'main' }, 'workspace-refused', /does not exist/],
    ] as const) {
      const failed = await event('/list', payload)
      assert.equal(failed.state, 'failed')
      assert.equal(failed.stage, 'agent')
      assert.equal(failed.code, code, failed.detail)
      assert.match(failed.detail ?? '', words)
    }
    assert.deepEqual(await openRuns(), [])
  }).timeout(60_000)

  it('is shown before anything is fetched', async () => {
    const ask = async (payload: object) =>
      explanationSchema.parse(
        await daemon.client.post('/webhooks/explain', {
          path: '/list',
          payload: JSON.stringify(payload),
        }),
      ).workspace
    assert.deepEqual(await ask({ repo: 'acme/app', ref: 'main' }), {
      repo: 'acme/app',
      ref: 'main',
      base: 'main',
    })
    const refused = await ask({ repo: '/etc', ref: 'main' })
    assert.match(refused?.detail ?? '', /only the rule itself can name/)
    const payload = join(folder, 'payload.json')
    await writeFile(payload, JSON.stringify({ repo: 'acme/app', ref: 'v1' }))
    const shown = await run(['webhook', 'explain', '/list', payload], { home })
    assert.match(shown.stdout, /^workspace +acme\/app at v1, base main$/m)
    const doctor = await run(['doctor', '--json'], { home })
    const { checks } = JSON.parse(doctor.stdout) as { checks: { name: string; status: string }[] }
    assert.equal(checks.find(({ name }) => name === 'git')?.status, 'ok')
  })

  it('shows its agent that code alone in a sandbox, to read', async function () {
    // CI has bubblewrap.
    if (!process.env['CI'] && 'missing' in (await findSandbox(process.env))) this.skip()
    const done = await event('/peek', { repo: 'acme/app', ref: 'change' })
    assert.equal(done.state, 'done', done.detail)
    assert.match(done.result ?? '', /^1 x EROFS runs\n$/)
    assert.equal(describeSandbox(done)?.split(', processes')[0], 'bwrap, network open')
    const path = '/peek'
    const payload = { repo: 'acme/app', ref: 'change' }
    const explained = explanationSchema.parse(
      await daemon.client.post('/webhooks/explain', { path, payload }),
    )
    const most = 'network open, at most 4gb memory, 512 processes, 2gb disk'
    assert.equal(explained.agent.sandbox, most)
  })

  it('leaves nothing behind when the daemon is killed while the agent runs', async () => {
    await post('/wait', { repo: 'acme/app', ref: 'main' })
    const cwd = (await untilText(folder, 'mark', /\n$/)).trim()
    assert.ok(existsSync(cwd))
    const ended = once(daemon.process, 'exit')
    daemon.process.kill('SIGKILL')
    await ended
    assert.ok(existsSync(cwd))
    daemon = await startDaemon({ home })
    while (existsSync(cwd)) await daemon.client.get('/workspaces')
    assert.deepEqual(await openRuns(), [])
    assert.equal((await event('/list', { repo: 'acme/app', ref: 'main' })).state, 'done')
  })

  it('leaves no git behind when the daemon is killed while it fetches', async function () {
    // Other systems do not report when a process started, so none is killed.
    if (process.platform !== 'linux') this.skip()
    const asked = once(silent, 'request') as Promise<[IncomingMessage]>
    await post('/list', { repo: `${addressOf(silent)}/acme/app.git`, ref: 'main' })
    const [{ socket }] = await asked
    const ended = once(daemon.process, 'exit')
    daemon.process.kill('SIGKILL')
    await ended
    const closed = once(socket, 'close')
    daemon = await startDaemon({ home })
    await closed
    while ((await openRuns()).length > 0) await daemon.client.get('/workspaces')
  })

  it('has a mirror that a command lists and removes', async () => {
    const listed = await run(['workspace', 'list'], { home })
    assert.match(listed.stdout, /^REPOSITORY +SIZE +RUNNING +LAST USED\n/)
    assert.match(listed.stdout, /\/acme\/app\.git +\d+\.\d MB +0 +/)
    const json = await run(['workspace', 'list', '--json'], { home })
    const { workspaces } = workspacesSchema.parse(JSON.parse(json.stdout))
    assert.equal(workspaces.length, process.platform === 'linux' ? 2 : 1)
    const refused = await run(['workspace', 'clear'], { home })
    assert.equal(refused.code, 2)
    assert.match(refused.stderr, /--yes/)
    const cleared = await run(['workspace', 'clear', '--yes'], { home })
    assert.match(cleared.stdout, /^removed \d mirrors? \(/)
    assert.deepEqual(await readdir(home.workspaces), [])
    const none = await run(['workspace', 'list'], { home })
    assert.match(none.stderr, /there is no mirror/)
    assert.equal((await event('/list', { repo: 'acme/app', ref: 'main' })).state, 'done')
  })
})
