import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type CliOptions, run } from '../../support/cli.ts'
import { startedHomes } from '../../support/started-homes.ts'

describe('cli: a daemon that cannot start', () => {
  const { newHome } = startedHomes()

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
    assert.match(
      stderr,
      /^doorward: the daemon exited with 9 and printed nothing\n.* info +listening /,
    )
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
    for (const [args, exitCode] of [
      [['daemon', 'start'], 1],
      [['daemon', 'start', '--foreground'], 78],
    ] as const) {
      const wrong = await errorOf([...args], { home, env: variables })
      assert.deepEqual([wrong.exitCode, wrong.code], [exitCode, 'config-invalid'])
    }

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

  it('shows the problems of a broken configuration when it would start one', async () => {
    const home = await newHome({ webhooks: 'webhooks: 1\n' })
    const { code, stderr } = await run(['events'], { home })
    assert.equal(code, 1)
    assert.match(stderr, /webhooks\.yaml:1:1 webhooks: must be a list/)
  })
})
