import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { waitForProcessExit } from '../../../../shared/client/discovery.ts'
import { isAlive } from '../../../../shared/home/lock.ts'
import { answers, resultOf, run, start } from '../../support/cli.ts'
import { type Running, startedHomes } from '../../support/started-homes.ts'

describe('cli: daemon', () => {
  const { newHome, startIn } = startedHomes()

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
          `^hint: port ${port} is in use by node \\S+ \\(pid ${process.pid}\\): stop it, or`,
        ),
      )
    assert.equal((await status()).stderr, 'hint: doorward daemon start\n')
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

  it('says of a daemon that runs without run/daemon.json that it runs, and how to replace it', async function () {
    if (process.platform === 'win32') return this.skip()
    const home = await newHome()
    const { stdout } = await run(['daemon', 'start', '--json'], { home })
    const { pid } = JSON.parse(stdout) as Running
    await rm(home.daemonJson)
    const runs = new RegExp(`^the daemon \\(pid ${pid}\\) runs, but run/daemon\\.json is missing`)
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
      assert.match(problem.hint, new RegExp(`^kill ${pid}, then doorward daemon start$`))
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

    process.kill(pid)
    assert.equal(await waitForProcessExit(pid), true)
    const started = await run(['daemon', 'start', '--json'], { home })
    assert.notEqual((JSON.parse(started.stdout) as Running).pid, pid)
    assert.equal((await run(['daemon', 'stop'], { home })).code, 0)
    return undefined
  })
})
