import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { runCommand } from '../../daemon/agents/invoke.ts'
import { runProcess } from '../../daemon/agents/process.ts'
import { findSandbox } from '../../shared/sandbox/probe.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../support/daemon/daemon.ts'
import { fixtureAgent } from '../support/fixtures.ts'
import { send } from '../support/servers/http.ts'
import { homeIn, temporaryFolder } from '../support/temporary.ts'

/* A hostile agent, in the sandbox of the built daemon. */

type Attempts = {
  readonly read?: readonly string[]
  readonly list?: readonly string[]
  readonly write?: readonly string[]
  readonly sockets?: readonly string[]
  readonly ports?: readonly number[]
  readonly urls?: readonly string[]
  readonly pids?: readonly number[]
}

type Outcome = {
  /** By attempt: an error code, or what it got. */
  readonly results: Record<string, unknown>
  /** How many processes it sees. */
  readonly processes: number
  readonly daemon: RunningDaemon
}

const listen = async (path: string): Promise<Server> => {
  const server = createServer((socket) => socket.end()).listen(path)
  await once(server, 'listening')
  return server
}

describe('a hostile agent in a sandbox', function () {
  this.timeout(60_000)
  let person: string
  let project: string
  const opened: { close: () => unknown }[] = []

  before(async function () {
    // CI has bubblewrap; elsewhere these tests need it.
    if (process.platform !== 'linux') this.skip()
    if (!process.env['CI'] && 'missing' in (await findSandbox(process.env))) this.skip()
    person = await temporaryFolder()
    project = join(person, 'projects', 'one')
    await mkdir(project, { recursive: true })
    await mkdir(join(person, '.ssh'), { mode: 0o700 })
    await writeFile(join(person, '.ssh', 'id_ed25519'), 'ssh-canary', { mode: 0o600 })
    await writeFile(join(project, 'code.txt'), 'code-canary')
    await symlink(join(person, '.ssh', 'id_ed25519'), join(project, 'link.txt'))
  })
  afterEach(async () => {
    for (const one of opened.splice(0)) await one.close()
  })

  /** Runs the attempts as an agent of a daemon whose home, like that of its owner, is a folder of the test. */
  const tryOut = async (
    build: (daemon: { home: string; url: string; pid: number }) => Attempts,
    settings = '',
  ): Promise<Outcome> => {
    const home = await homeIn(join(person, `.doorward-${Math.random().toString(36).slice(2)}`), {
      webhooks: 'webhooks:\n  - { path: /out, agent: out, prompt_template: x }\n',
      agents: 'agents: { out: { kind: echo } }\n',
      env: 'A_SECRET=env-canary\n',
    })
    const daemon = await startDaemon({
      home,
      // A terminal that leaves a folder open to all that it starts.
      under: ['bash', '-c', 'exec 30<"$0"; exec "$@"', person],
      variables: { HOME: person, XDG_RUNTIME_DIR: join(person, 'runtime') },
    })
    opened.push({ close: () => daemon.stop() })
    const attempts = build({ home: home.root, url: daemon.url, pid: daemon.process.pid ?? 0 })
    const command = JSON.stringify(fixtureAgent('breaks-out', JSON.stringify(attempts)))
    await writeFile(
      join(home.config, 'agents.yaml'),
      `agents: { out: { kind: command, command: ${command}, sandbox: required, ${settings} } }\n`,
    )
    await daemon.client.post('/daemon/reload', {})
    const reply = await send(`${daemon.url}/out`, {
      headers: {
        'content-type': 'application/json',
        // Its agent has it as a variable, and variables may name files.
        'x-github-delivery': join(person, '.ssh', 'id_ed25519'),
      },
      body: '{}',
    })
    const event = await untilFinished(daemon, String(reply.json()['id']))
    assert.equal(event.state, 'done', event.detail)
    const { processes, ...results } = JSON.parse(event.result ?? '') as Record<string, unknown>
    return { results, processes: Number(processes), daemon }
  }

  it("reads no key, no file of doorward, and no other code, but its project's", async () => {
    const { results, processes } = await tryOut(
      ({ home }) => ({
        read: [
          join(person, '.ssh', 'id_ed25519'),
          join(project, 'link.txt'),
          '/proc/self/fd/30/.ssh/id_ed25519',
          join(home, '.env'),
          join(home, 'run', 'api.token'),
          join(home, 'workspaces', 'other', 'README.md'),
          '/etc/shadow',
          join(project, 'code.txt'),
        ],
        list: [home, join(person, '.ssh'), join(person, 'projects'), '/home', '/var'],
      }),
      `cwd: ${JSON.stringify(project)}`,
    )
    const { [`read ${join(project, 'code.txt')}`]: code, ...others } = results
    assert.equal(code, 'code-canary')
    const { [`list ${join(person, 'projects')}`]: projects, ...refused } = others
    assert.equal(projects, 'one')
    assert.ok(processes <= 3, String(processes))
    assert.deepEqual([...new Set(Object.values(refused))], ['ENOENT'], JSON.stringify(refused))
  })

  it('changes nothing outside, nor in a folder that it may only read', async () => {
    const { results } = await tryOut(
      () => ({
        write: [
          join(project, 'code.txt'),
          '/etc/passwd',
          '/usr/bin/x',
          '/x',
          '/tmp/x',
          `${person}/x`,
          // Of its own namespace; root could also write to those of the machine.
          '/proc/sys/kernel/domainname',
        ],
      }),
      `cwd: ${JSON.stringify(project)}`,
    )
    // Its home and /tmp are its own, and in memory.
    const { 'write /tmp/x': temporary, [`write ${person}/x`]: home, ...others } = results
    assert.deepEqual([temporary, home], ['written', 'written'])
    const { 'write /proc/sys/kernel/domainname': setting, ...outside } = others
    assert.match(String(setting), /^(EROFS|EACCES)$/)
    assert.deepEqual(new Set(Object.values(outside)), new Set(['EROFS']))
    await assert.rejects(readFile(join(person, 'x')), { code: 'ENOENT' })
    assert.equal(await readFile(join(project, 'code.txt'), 'utf8'), 'code-canary')
  })

  it('sees and signals no process of the machine', async () => {
    const { results } = await tryOut(({ pid }) => ({
      read: [`/proc/${pid}/environ`, `/proc/${pid}/cmdline`, `/proc/${process.pid}/environ`],
      pids: [pid, process.pid],
    }))
    const gone = new Set(Object.values(results))
    assert.deepEqual(gone, new Set(['ENOENT', 'ESRCH']), JSON.stringify(results))
  })

  it('cannot keep its run from ending by tracing the first process, and still debugs its own', async () => {
    // PTRACE_ATTACH of a parent, then of a child that waits.
    const number = process.arch === 'x64' ? 101 : 117
    const script = `
      use POSIX ':sys_wait_h';
      my $first = syscall(${number}, 16, 1, 0, 0) == -1 ? $!{EPERM} ? 'EPERM' : $! : 'attached';
      my $child = fork() // die; if (!$child) { sleep 100; exit }
      my $own = syscall(${number}, 16, $child, 0, 0) == -1 ? $! : 'attached';
      waitpid($child, 0); kill 9, $child;
      print "$first $own";`
    const { text } = await runCommand(
      {
        kind: 'command',
        command: ['perl', '-MErrno', '-e', script],
        timeout: 20_000,
        concurrency: 1,
        output_limit: 1000,
        sandbox: 'required',
      },
      '',
      {
        env: { ...process.env, HOME: person },
        homeFolder: join(person, '.doorward'),
        run: runProcess,
        getToken: async () => 'none',
        signal: new AbortController().signal,
      },
    )
    assert.equal(text, 'EPERM attached')
  })

  it('reaches no socket of the desktop, at a path or an abstract address', async () => {
    await mkdir(join(person, 'runtime'), { recursive: true })
    const bus = join(person, 'runtime', 'bus')
    const display = `\0doorward-test-${process.pid}`
    opened.push(await listen(bus), await listen(display))
    const { results } = await tryOut(() => ({ sockets: [bus, display] }))
    assert.deepEqual([...new Set(Object.values(results))], ['EPERM'], JSON.stringify(results))
  })

  it("gets nothing at the daemon's port without the token, which it cannot read", async () => {
    const { results, daemon } = await tryOut(({ url }) => ({
      urls: ['/status', '/events', '/oauth/tokens', '/webhooks', '/metrics'].map(
        (path) => `${url}${path}`,
      ),
    }))
    assert.deepEqual([...new Set(Object.values(results))], [401], JSON.stringify(results))
    assert.ok(daemon.apiToken.length > 0)
  })

  it("reaches no port at all with network: off, not even the daemon's", async () => {
    const { results } = await tryOut(
      ({ url }) => ({ ports: [Number(new URL(url).port)] }),
      'network: off',
    )
    assert.deepEqual(Object.values(results), ['ECONNREFUSED'])
  })
})
