import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cliProgram, packageFolder } from '../../../shared/version.ts'
import { cleanEnvironment } from '../../support/daemon/daemon.ts'
import { waitForProcessExit } from '../../support/fixtures.ts'
import { temporaryFolder } from '../../support/temporary.ts'

const root = fileURLToPath(new URL('../../../../', import.meta.url))

const spawnStart = (home: string) =>
  spawn(process.execPath, [join(root, 'scripts/start.mjs')], {
    cwd: root,
    env: cleanEnvironment({ DOORWARD_HOME: home, DOORWARD_PORT: '0' }),
    stdio: ['ignore', 'pipe', 'pipe'],
  })

/** Runs the script of `npm start` until its last line, then stops it as Ctrl-C does. */
const startOnce = async (
  home: string,
  meanwhile?: () => Promise<void>,
): Promise<{ output: string; code: number | null }> => {
  const child = spawnStart(home)
  let output = ''
  const lastLine = new Promise<void>((resolve) => {
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString()
      if (/open the page.*\n/.test(output)) resolve()
    })
  })
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()))
  await Promise.race([lastLine, once(child, 'exit')])
  assert.equal(child.exitCode, null, output)
  await meanwhile?.()
  const ended = once(child, 'exit')
  child.kill('SIGINT')
  await ended
  return { output, code: child.exitCode }
}

const waitForEnd = async (child: ReturnType<typeof spawnStart>) => {
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  await once(child, 'close')
  return { output, code: child.exitCode }
}

/** Replaces what differs from run to run by a name. */
const normalize = (text: string): string =>
  text
    .replaceAll(/127\.0\.0\.1:\d+/g, '127.0.0.1:PORT')
    .replace(/link\/\S{43}/, 'link/CODE')
    .replace(/home \S+/, 'home HOME')
    .replace(/evt_[0-9a-f]+/, 'EVENT')
    .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/, 'DELIVERY')
    .replace(/in \d+ ms/, 'in N ms')
    .trim()

describe('npm start', () => {
  it('creates a home, shows one event from sender to answer, and prints what the README shows', async () => {
    const home = join(await temporaryFolder(), 'home')
    const { output, code } = await startOnce(home)
    assert.equal(code, 0, output)
    const readme = await readFile(join(root, 'README.md'), 'utf8')
    const transcript = /```text\n([^]*?)```/.exec(readme)?.[1] ?? ''
    assert.equal(normalize(output), normalize(transcript))
    assert.match(
      await readFile(join(home, '.env'), 'utf8'),
      /^GITHUB_WEBHOOK_SECRET=[0-9a-f]{64}$/m,
    )
    assert.equal(existsSync(join(home, 'run/daemon.json')), false)
  })

  it('prints only what is wrong when the daemon cannot start', async () => {
    const home = join(await temporaryFolder(), 'home')
    await startOnce(home)
    await writeFile(join(home, 'config/agents.yaml'), 'agents: [\n')
    const { output, code } = await waitForEnd(spawnStart(home))
    assert.equal(code, 78)
    assert.match(
      output,
      /^doorward: the configuration cannot be used\n\S+agents\.yaml:\d+:\d+ .*\nhint: .*\n$/,
    )
  })

  it('runs no agent but the sample one', async () => {
    const home = join(await temporaryFolder(), 'home')
    await startOnce(home)
    await writeFile(
      join(home, 'config/agents.yaml'),
      'agents:\n  echo: { kind: command, command: [no-such-program] }\n',
    )
    const { output, code } = await startOnce(home)
    assert.equal(code, 0, output)
    assert.match(output, /runs your agent echo, so npm start sent nothing/)
    assert.doesNotMatch(output, /evt_/)
  })

  it('changes nothing on a second start', async () => {
    const home = join(await temporaryFolder(), 'home')
    await startOnce(home)
    const files = ['.env', 'config/webhooks.yaml', 'run/api.token']
    const read = () => Promise.all(files.map((name) => readFile(join(home, name), 'utf8')))
    const before = await read()
    const { output, code } = await startOnce(home)
    assert.equal(code, 0, output)
    assert.deepEqual(await read(), before)
    assert.doesNotMatch(output, /installing|building/)
  })

  it('stays for the successor of a restarted daemon, and stops it', async () => {
    const home = join(await temporaryFolder(), 'home')
    const pidNow = async () => {
      const file = await readFile(join(home, 'run/daemon.json'), 'utf8')
      return (JSON.parse(file) as { pid: number }).pid
    }
    let successor = 0
    const { output, code } = await startOnce(home, async () => {
      const before = await pidNow()
      const cli = fileURLToPath(new URL(cliProgram, packageFolder))
      const restart = spawn(process.execPath, [cli, 'daemon', 'restart'], {
        env: cleanEnvironment({ DOORWARD_HOME: home }),
        stdio: 'ignore',
      })
      assert.deepEqual(await once(restart, 'exit'), [0, null])
      successor = await pidNow()
      assert.notEqual(successor, before)
    })
    assert.equal(code, 0, output)
    await waitForProcessExit(successor)
    assert.equal(existsSync(join(home, 'run/daemon.json')), false)
  })

  it('leaves no daemon behind when its output is closed early', async () => {
    const home = join(await temporaryFolder(), 'home')
    const child = spawnStart(home)
    await once(child.stdout, 'data')
    const file = await readFile(join(home, 'run/daemon.json'), 'utf8')
    const { pid } = JSON.parse(file) as { pid: number }
    child.stdout.destroy()
    await once(child, 'exit')
    assert.equal(child.exitCode, 0)
    await waitForProcessExit(pid)
    assert.equal(existsSync(join(home, 'run/daemon.json')), false)
  })
})
