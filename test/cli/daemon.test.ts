import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { isAlive } from '../../shared/process-state.ts'
import { startHeldAgent, untilDead } from '../support/restart.ts'
import { type CliOptions, answers, resultOf, run, start, untilSaid } from './support/cli.ts'
import { startContractServer } from './support/contract-server.ts'
import { type Running, startedHomes } from './support/started-homes.ts'

describe('cli: daemon', () => {
  const { newHome, startIn, stopAtEnd } = startedHomes()

  it('starts one that outlives the command, once, and stops it', async () => {
    const home = await newHome()
    const first = await run(['daemon', 'start', '--json'], { home })
    assert.equal(first.code, 0, first.stderr)
    const { pid, url } = JSON.parse(first.stdout) as Running
    assert.match(url, /^http:\/\/127\.0\.0\.1:\d+$/)
    assert.equal((await stat(join(home.logs, 'daemon.stderr'))).mode & 0o777, 0o600)

    const second = await run(['daemon', 'start'], { home })
    assert.deepEqual([second.code, second.stdout], [0, `already running: ${url} (pid ${pid})\n`])

    const status = await run(['daemon', 'status', '--json'], { home })
    assert.equal(status.code, 0)
    assert.equal((JSON.parse(status.stdout) as Running).pid, pid)

    const stopped = await run(['daemon', 'stop'], { home })
    assert.deepEqual([stopped.code, stopped.stdout], [0, `stopped (pid ${pid})\n`])
    assert.equal(isAlive(pid), false)
  })

  it('says that none runs: status ends with 3, stop with 0', async () => {
    const home = await newHome()
    const status = await run(['daemon', 'status'], { home })
    assert.deepEqual([status.code, status.stdout], [3, 'stopped\n'])
    const json = await run(['daemon', 'status', '--json'], { home })
    assert.deepEqual([json.code, JSON.parse(json.stdout)], [3, { running: false }])
    const stop = await run(['daemon', 'stop'], { home })
    assert.deepEqual([stop.code, stop.stdout], [0, 'not running\n'])
  })

  it('says of a stopped one which program has its port', async () => {
    const home = await newHome()
    const stranger = createServer().listen(0, '127.0.0.1')
    await once(stranger, 'listening')
    const { port } = stranger.address() as AddressInfo
    assert.equal((await run(['init'], { home })).code, 0)
    const status = () => run(['daemon', 'status'], { home, env: { DOORWARD_PORT: String(port) } })
    const held = await status()
    stranger.close()
    assert.deepEqual([held.code, held.stdout], [3, 'stopped\n'])
    if (process.platform === 'linux')
      assert.match(
        held.stderr,
        new RegExp(
          `^hint: port ${port} is held by node \\S+ \\(pid ${process.pid}\\): stop it, or`,
        ),
      )
    assert.equal((await status()).stderr, 'hint: doorward daemon start\n')
  })

  it('restarts it as another process at the same address, and says which', async () => {
    const home = await newHome()
    const before = await startIn(home)
    const { code, stdout } = await run(['daemon', 'restart', '--json'], { home })
    assert.equal(code, 0)
    const after = JSON.parse(stdout) as Running & { previous: { pid: number } }
    assert.notEqual(after.pid, before.pid)
    assert.deepEqual([after.running, after.url, after.previous.pid], [true, before.url, before.pid])
    const again = await run(['daemon', 'restart'], { home })
    const { pid } = JSON.parse(await readFile(home.daemonJson, 'utf8')) as Running
    assert.equal(again.stdout, `restarted: ${before.url} (pid ${pid}, before ${after.pid})\n`)
    const status = await run(['daemon', 'status', '--json'], { home })
    assert.equal((JSON.parse(status.stdout) as Running).pid, pid)
  })

  it('starts one where none runs to be restarted', async () => {
    const home = await newHome()
    const { code, stdout } = await run(['daemon', 'restart'], { home })
    assert.equal(code, 0)
    assert.match(stdout, /^started: /)
  })

  describe('one that is stopped and still finishes', () => {
    it('is waited for by what starts one', async () => {
      for (const [args, said] of [
        [['daemon', 'start'], /^started: /],
        [['daemon', 'restart'], /^started: /],
        [['webhook', 'send', '/a', '-'], /^evt_\w+ accepted\n$/],
      ] as const) {
        const { home, agent, pid, stopping } = await stopWhileAnAgentRuns()
        const next = start(args, { home, stdin: '{}' })
        await untilSaid(
          next,
          'stderr',
          new RegExp(`pid ${pid}\\) is stopping: waiting for its end`),
        )
        agent.answer('late')
        const { code, stdout, stderr } = await resultOf(next)
        assert.equal(code, 0, stderr)
        assert.match(stdout, said)
        assert.equal((await stopping).stdout, `stopped (pid ${pid})\n`)
        assert.equal(await answers(home), true)
        agent.close()
      }
    })

    it('is not waited for with --no-start', async () => {
      const { home, agent, stopping } = await stopWhileAnAgentRuns()
      for (const args of [
        ['daemon', 'restart'],
        ['webhook', 'send', '/a', '-'],
      ]) {
        const result = await run([...args, '--no-start', '--json'], { home, stdin: '{}' })
        assert.equal(result.code, 1)
        assert.equal((JSON.parse(result.stderr) as { code: string }).code, 'stopping')
      }
      agent.answer('late')
      await stopping
      agent.close()
    })

    const stopWhileAnAgentRuns = async () => {
      const agent = await startHeldAgent()
      const home = await newHome({
        webhooks: 'webhooks:\n  - { path: /a, agent: held, prompt_template: x }\n',
        agents: `agents:\n  held: { kind: http, url: "${agent.url}" }\n`,
      })
      const { pid } = await startIn(home)
      const sent = await run(['webhook', 'send', '/a', '-'], { home, stdin: '{}' })
      assert.equal(sent.code, 0, sent.stderr)
      const { answer } = await agent.next()
      const child = start(['daemon', 'stop'], { home })
      await untilSaid(child, 'stderr', /waiting for 1 running/)
      return { home, pid, agent: { answer, close: agent.close }, stopping: resultOf(child) }
    }
  })

  it('stops and starts one that cannot hand over', async () => {
    const home = await newHome()
    // As on Windows, and as of an older version.
    const other = 'Object.defineProperty(process, "platform", { value: "win32" })'
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(other)}`
    const before = await startIn(home, { NODE_OPTIONS })
    const { code, stdout, stderr } = await run(['daemon', 'restart'], { home })
    assert.equal(code, 0, stderr)
    assert.match(stderr, new RegExp(`stopped \\(pid ${before.pid}\\)`))
    assert.match(stdout, /^started: /)
    assert.equal(isAlive(before.pid), false)
  })

  for (const [command, exitCode, answer] of [
    ['daemon stop', 0, /^stopped \(pid \d+\)\n$/],
    ['daemon restart', 0, /^started: /],
    ['daemon start', 0, /^started: /],
    // The one that is started in its place has no login.
    ['oauth token github', 4, /^$/],
  ] as const)
    it(`takes a daemon that ends by another's word meanwhile for what it is: ${command}`, async () => {
      const daemon = spawn(process.execPath, ['-e', 'process.stdin.resume()'])
      const server = await startContractServer((_call, response) => {
        daemon.kill()
        response.destroy()
        return undefined
      })
      const home = stopAtEnd(server.home)
      const told = JSON.parse(await readFile(home.daemonJson, 'utf8')) as object
      await writeFile(home.daemonJson, JSON.stringify({ ...told, pid: daemon.pid }))
      const { code, stdout, stderr } = await run(command.split(' '), { home })
      await server.close()
      assert.equal(code, exitCode, stderr)
      assert.match(stdout, answer)
    })

  it('says once that the daemon is of another version, but not to scripts', async () => {
    const home = await newHome()
    await startIn(home)
    const file = await readFile(home.daemonJson, 'utf8')
    await writeFile(home.daemonJson, file.replace(/"version":"[^"]*"/, '"version":"0.0.9"'))
    const told =
      /^the running daemon is version 0\.0\.9, this command \S+: doorward daemon restart$/gm
    for (const command of [['status'], ['events'], ['daemon', 'status']]) {
      const { stdout, stderr } = await run(command, { home })
      assert.equal(stderr.match(told)?.length, 1, stderr)
      assert.equal(stdout.match(told), null)
      for (const option of ['--json', '--quiet'])
        assert.equal((await run([...command, option], { home })).stderr, '')
    }
    assert.doesNotMatch((await run(['daemon', 'restart'], { home })).stderr, told)
    assert.doesNotMatch((await run(['status'], { home })).stderr, told)
  })

  it('leaves the running one alone when the configuration cannot be used', async () => {
    const home = await newHome()
    const { pid } = JSON.parse(
      (await run(['daemon', 'start', '--json'], { home })).stdout,
    ) as Running
    await writeFile(join(home.config, 'webhooks.yaml'), 'webhooks: 1\n')
    const { code, stdout, stderr } = await run(['daemon', 'restart', '--json'], { home })
    assert.deepEqual([code, stdout], [1, ''])
    assert.equal((JSON.parse(stderr) as { code: string }).code, 'config-invalid')
    assert.equal(isAlive(pid), true)
  })

  it('shows every problem of a configuration that cannot be used, and ends with 78 in the foreground', async () => {
    const home = await newHome({
      webhooks: 'webhooks: 1\n',
      agents: 'agents: { a: { kind: x } }\n',
    })
    for (const [args, expected] of [
      [['daemon', 'start'], 1],
      [['daemon', 'start', '--foreground'], 78],
    ] as const) {
      const { code, stderr } = await run([...args], { home })
      assert.equal(code, expected, stderr)
      assert.match(stderr, /^doorward: the configuration cannot be used\n/)
      assert.match(stderr, /webhooks\.yaml:1:1 webhooks/)
      assert.match(stderr, /agents\.yaml:1:/)
      assert.match(stderr, /hint: .*config check/)
    }
  })

  it('shows the last lines of the log of one that ended without a word', async () => {
    const home = await newHome()
    await mkdir(home.logs, { mode: 0o700 })
    await writeFile(home.log, '{"level":30,"time":"2001-01-01T00:00:00.000Z","msg":"of old"}\n')
    // It tells its parent that it listens, and dies of that.
    const dies = 'process.send &&= () => setTimeout(() => process.exit(9), 200)'
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(dies)}`
    const { code, stderr } = await run(['daemon', 'start'], { home, env: { NODE_OPTIONS } })
    assert.equal(code, 1)
    assert.match(stderr, /^doorward: the daemon ended with 9 and said nothing\n.* info +listening /)
    assert.doesNotMatch(stderr, /of old/)
  })

  it('tells the code of what keeps it from starting, and ends with 1', async () => {
    const home = await newHome()
    const other = createServer((_, response) => response.end('{}')).listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    const env = { DOORWARD_PORT: String(port) }
    const errorOf = async (args: string[], options: CliOptions) => {
      const { code, stdout, stderr } = await run([...args, '--json'], options)
      assert.equal(stdout, '')
      return { exitCode: code, ...(JSON.parse(stderr) as { code: string; detail: string }) }
    }
    const taken = await errorOf(['daemon', 'start'], { home, env })
    // To a command that only needed it, it is one that cannot be reached.
    const needed = await errorOf(['events'], { home, env })
    other.close()
    for (const { code, detail } of [taken, needed]) {
      assert.equal(code, 'port-in-use')
      assert.match(detail, new RegExp(`port ${port} is taken by .+`))
    }
    assert.deepEqual([taken.exitCode, needed.exitCode], [1, 3])

    const variables = { DOORWARD_LOG_LEVEL: 'loud' }
    const wrong = await errorOf(['daemon', 'start'], { home, env: variables })
    assert.deepEqual([wrong.exitCode, wrong.code], [1, 'config-invalid'])

    await writeFile(home.env, 'A=b\n')
    await chmod(home.env, 0o644)
    for (const args of [['daemon', 'start'], ['events']]) {
      const open = await errorOf(args, { home })
      assert.deepEqual([open.exitCode, open.code], [1, 'home-insecure'])
    }
    await chmod(home.env, 0o600)

    // Killed before it could say anything.
    const dies = 'process.kill(process.pid, "SIGKILL")'
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(`process.send && ${dies}`)}`
    const killed = await errorOf(['daemon', 'start'], { home, env: { NODE_OPTIONS } })
    assert.deepEqual([killed.exitCode, killed.code], [1, 'daemon-unreachable'])
  })

  it('is the daemon itself in the foreground, and ends by SIGTERM', async function () {
    if (process.platform === 'win32') return this.skip()
    const home = await newHome()
    const child = start(['daemon', 'start', '--foreground'], { home })
    const ended = resultOf(child)
    while (!(await answers(home))) assert.equal(child.exitCode, null)
    const { pid } = JSON.parse(await readFile(home.daemonJson, 'utf8')) as Running
    assert.equal(pid, child.pid)
    child.kill('SIGTERM')
    const { code, stdout, stderr } = await ended
    assert.deepEqual([code, stdout], [0, ''])
    assert.match(stderr, /^doorward \S+ at http:\/\/127\.0\.0\.1:\d+, log in .*daemon\.log\n$/)
  })

  it('stays in the foreground over a restart, and ends with the daemon that took over', async function () {
    if (process.platform === 'win32') return this.skip()
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      const home = await newHome()
      const child = start(['daemon', 'start', '--foreground'], { home })
      const ended = resultOf(child)
      while (!(await answers(home))) assert.equal(child.exitCode, null)
      await run(['daemon', 'restart'], { home })
      const second = JSON.parse((await run(['daemon', 'restart', '--json'], { home })).stdout) as {
        pid: number
        previous: { pid: number }
      }
      assert.notEqual(second.previous.pid, child.pid)
      await untilDead(second.previous.pid)
      assert.equal(await answers(home), true)
      // It is no end of the daemon that nothing tells where it is.
      if (signal === 'SIGTERM') {
        await rm(home.daemonJson)
        while (!(await answers(home))) assert.equal(child.exitCode, null)
      }
      assert.equal(child.exitCode, null)
      if (signal === 'SIGTERM') child.kill(signal)
      else process.kill(second.pid, signal)
      assert.equal((await ended).code, signal === 'SIGTERM' ? 0 : 1)
      assert.equal(isAlive(second.pid), false)
    }
    return undefined
  })

  it('starts one for a command that needs it, even for several at once', async () => {
    const home = await newHome()
    const results = await Promise.all(
      [1, 2, 3].map(async () => run(['webhook', 'list', '--json'], { home })),
    )
    for (const { code, stdout, stderr } of results) {
      assert.equal(code, 0, stderr)
      assert.deepEqual(JSON.parse(stdout), { webhooks: [] })
    }
  })

  it('starts none with --no-start: exit code 3', async () => {
    const home = await newHome()
    for (const args of [
      ['events'],
      ['webhook', 'list'],
      ['oauth', 'list'],
      ['status'],
      ['daemon', 'restart'],
    ]) {
      const { code, stdout, stderr } = await run([...args, '--no-start', '--json'], { home })
      assert.equal(code, 3)
      assert.equal(stdout, '')
      assert.equal((JSON.parse(stderr) as { code: string }).code, 'daemon-unreachable')
    }
    assert.equal(await answers(home), false)
  })

  it('shows the problems of a broken configuration when it would start one', async () => {
    const home = await newHome({ webhooks: 'webhooks: 1\n' })
    const { code, stderr } = await run(['events'], { home })
    assert.equal(code, 1)
    assert.match(stderr, /webhooks\.yaml:1:1 webhooks: must be a list/)
  })

  it('does not take the file of a daemon that has gone for one that runs', async () => {
    const home = await newHome()
    const gone = start(['--version'])
    await resultOf(gone)
    const stranger = createServer((_, response) => response.end('{}')).listen(0, '127.0.0.1')
    await once(stranger, 'listening')
    const { port } = stranger.address() as AddressInfo
    const file = { pid: gone.pid, url: `http://127.0.0.1:${port}`, version: '0', startedAt: '' }
    await mkdir(home.run, { mode: 0o700 })
    await writeFile(home.daemonJson, JSON.stringify(file))
    await writeFile(home.apiToken, 'a'.repeat(64), { mode: 0o600 })
    assert.equal((await run(['daemon', 'status'], { home })).stdout, 'stopped\n')

    await writeFile(home.daemonJson, JSON.stringify({ ...file, pid: process.pid }))
    const { code, stderr } = await run(['daemon', 'status', '--json'], { home })
    stranger.close()
    await writeFile(home.daemonJson, JSON.stringify(file))
    assert.equal(code, 3)
    assert.equal((JSON.parse(stderr) as { code: string }).code, 'daemon-foreign')
  })

  it('says of a daemon that runs without run/daemon.json that it runs, and finds it once it is told again', async function () {
    if (process.platform === 'win32') return this.skip()
    const home = await newHome()
    const { stdout } = await run(['daemon', 'start', '--json'], { home })
    const { pid, url } = JSON.parse(stdout) as Running
    // One that cannot mend it.
    process.kill(pid, 'SIGSTOP')
    await rm(home.daemonJson)
    const runs = new RegExp(`^the daemon \\(pid ${pid}\\) runs, but run/daemon\\.json does not say`)
    const commands = [
      '',
      'status',
      'daemon status',
      'daemon stop',
      'daemon restart',
      'daemon start',
    ]
    const answered = await Promise.all(
      commands.map(async (command) =>
        run([...command.split(' ').filter(Boolean), '--json'], { home }),
      ),
    )
    for (const { code, stdout: answer, stderr } of answered) {
      assert.deepEqual([code, answer], [3, ''], stderr)
      const problem = JSON.parse(stderr) as Record<'code' | 'detail' | 'hint', string>
      assert.equal(problem.code, 'daemon-unreachable')
      assert.match(problem.detail, runs)
      assert.match(problem.hint, new RegExp(`: kill ${pid}, then doorward daemon start$`))
    }
    const examined = await run(['doctor', '--json'], { home })
    const { checks } = JSON.parse(examined.stdout) as {
      checks: { group: string; name: string; status: string; detail: string }[]
    }
    const found = checks.filter(({ group, name }) => group === 'daemon' && name === 'running')
    assert.deepEqual(
      found.map(({ status }) => status),
      ['error'],
    )
    assert.match(found[0]?.detail ?? '', runs)

    process.kill(pid, 'SIGCONT')
    const started = await run(['daemon', 'start', '--json'], { home })
    assert.deepEqual(
      { ...(JSON.parse(started.stdout) as Running), running: true },
      { ...(JSON.parse(stdout) as Running), running: true },
    )
    assert.equal((JSON.parse(started.stdout) as Running).url, url)
    assert.equal((await run(['daemon', 'stop'], { home })).stdout, `stopped (pid ${pid})\n`)
    return undefined
  })
})
