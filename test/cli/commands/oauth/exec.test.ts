import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { chmod, readFile, writeFile } from 'node:fs/promises'
import { constants } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { version } from '../../../../shared/version.ts'
import { cleanEnvironment, cliMain } from '../../../support/daemon/daemon.ts'
import { waitForProcessExit } from '../../../support/fixtures.ts'
import { temporaryFolder } from '../../../support/temporary.ts'
import type { ContractServer } from '../../support/contract-server.ts'
import {
  type CliOptions,
  hasTerminal,
  resultOf,
  run,
  startOnTerminal,
  untilSaid,
} from '../../support/cli.ts'
import { startTokenServer, tokenOf } from '../../support/token-server.ts'

const tellsSignals = fileURLToPath(
  new URL('../../../../../test/fixtures/tells-signals.mjs', import.meta.url),
)
const node = process.execPath

describe('cli: oauth exec', () => {
  let server: ContractServer

  before(async () => {
    const huge = { accessToken: 'x'.repeat(200_000) }
    server = await startTokenServer({ github: {}, slack: {}, 'my-own': {}, huge })
  })
  after(async () => server.close())

  const exec = async (args: readonly string[], options: CliOptions = {}) =>
    run(['oauth', 'exec', ...args], { home: server.home, ...options })

  it('gives each token to the command in its variable, on no command line', async () => {
    const script = `
      const { GITHUB_TOKEN, SLACK, MY_OWN_TOKEN, KEPT } = process.env
      console.log(JSON.stringify([GITHUB_TOKEN, SLACK, MY_OWN_TOKEN, KEPT, process.argv.slice(1)]))`
    const { code, stdout, stderr } = await exec(
      ['github', 'slack=SLACK', 'my-own', '--', node, '-e', script, '--', '--json', '-q'],
      { env: { KEPT: 'kept', GITHUB_TOKEN: 'an older one' } },
    )
    assert.deepEqual([code, stderr], [0, ''])
    assert.deepEqual(JSON.parse(stdout), [
      tokenOf('github'),
      tokenOf('slack'),
      tokenOf('my-own'),
      'kept',
      ['--json', '-q'],
    ])
  })

  it('shows tokens in no argument list, and the token of the API to nobody', async function () {
    if (process.platform !== 'linux') return this.skip()
    const script = `
      const { readFileSync, readdirSync, readlinkSync } = require('node:fs')
      const of = (pid) => readFileSync('/proc/' + pid + '/cmdline', 'utf8')
      console.log(of(process.pid) + of(process.ppid))
      console.log(JSON.stringify(process.env))
      for (const fd of readdirSync('/proc/self/fd'))
        try { console.log(fd, readlinkSync('/proc/self/fd/' + fd)) } catch {}`
    const { stdout } = await exec(['github', '--', node, '-e', script])
    assert.equal(stdout.split(tokenOf('github')).length, 2)
    assert.ok(!stdout.includes((await readFile(server.home.apiToken, 'utf8')).trim()))
    assert.doesNotMatch(stdout, /^\d+ .*(api\.token|daemon\.json)/m)
  })

  it('passes input, output and exit code through, also what is large', async () => {
    const script = `
      process.stdin.on('data', (chunk) => process.stdout.write(chunk))
      process.stdin.on('end', () => { console.error('to stderr'); process.exitCode = 42 })`
    const stdin = 'x'.repeat(1_000_000)
    const result = await exec(['github', '--json', '--', node, '-e', script], { stdin })
    assert.deepEqual([result.code, result.stderr], [42, 'to stderr\n'])
    assert.ok(result.stdout === stdin)
  })

  it('asks once for a provider that is wanted twice, and says for which program', async () => {
    const before = server.calls.length
    const words = ['github', 'github=GH_TOKEN', '--min-validity', '5m']
    assert.equal((await exec([...words, '--', node, '-e', ''])).code, 0)
    const asked = server.calls.slice(before)
    assert.deepEqual(
      asked.map(({ path, userAgent }) => [path, userAgent]),
      [
        [
          '/oauth/tokens/github/access?min_validity=300',
          `doorward-cli/${version} (oauth exec node)`,
        ],
      ],
    )
  })

  it('starts nothing when one token is missing', async () => {
    const marker = join(await temporaryFolder(), 'started')
    const { code, stdout, stderr } = await exec(['github', 'google', '--', 'touch', marker])
    assert.deepEqual([code, stdout], [4, ''])
    assert.match(stderr, /not logged in to google\nhint: doorward oauth login google/)
    await assert.rejects(readFile(marker), { code: 'ENOENT' })
  })

  const wrong: readonly (readonly [string, readonly string[], RegExp])[] = [
    ['no --', ['github', 'gh', 'api'], /-- is missing/],
    ['no --, with options of the command', ['github', 'gh', '--version'], /-- is missing/],
    ['no command', ['github', '--'], /command is missing/],
    ['no provider', ['--', 'gh'], /provider is missing|missing required argument/],
    ['a bad variable', ['github=A-B', '--', 'gh'], /cannot be the name/],
    ['a bad validity', ['github', '--min-validity', 'x', '--', 'gh'], /duration/],
  ]
  for (const [what, args, message] of wrong)
    it(`ends with 2 for ${what}, and asks nobody`, async () => {
      const before = server.calls.length
      const { code, stdout, stderr } = await exec(args)
      assert.deepEqual([code, stdout], [2, ''])
      assert.match(stderr, message)
      assert.equal(server.calls.length, before)
    })

  it('ends with 127 for a command that is not there, 126 for one that cannot be run', async () => {
    const folder = await temporaryFolder()
    const plain = join(folder, 'plain')
    await writeFile(plain, '#!/bin/sh\n')
    await chmod(plain, 0o600)
    const missing = await exec(['github', '--', 'no-such-program-here'])
    assert.equal(missing.code, 127)
    assert.match(missing.stderr, /^doorward: cannot run "no-such-program-here": .*no such command/)
    assert.equal((await exec(['github', '--', ''])).code, 127)
    const json = await exec(['github', '--json', '--', 'no-such-program-here'])
    assert.equal((JSON.parse(json.stderr) as { code: string }).code, 'command-not-found')
    for (const path of [plain, folder]) {
      const { code, stderr } = await exec(['github', '--', path])
      assert.equal(code, 126)
      assert.match(stderr, /permission denied\nhint: chmod/)
    }
  })

  it('names the size, not the mode of the program, where a token is larger than the system allows', async function () {
    if (process.platform !== 'linux') return this.skip()
    const { code, stderr } = await exec(['huge', '--', node, '-e', ''])
    assert.equal(code, 126)
    assert.match(stderr, /: its arguments and environment are larger than the system allows\n/)
    assert.match(stderr, /^hint: pass fewer or shorter arguments, variables or tokens$/m)
  })

  describe('and signals', function () {
    before(function () {
      if (process.platform === 'win32') this.skip()
    })

    /** Runs it as a process of ours whose signal can be seen; `start` has pipes, and so no terminal. */
    const started = (args: readonly string[]): ChildProcess => {
      const child = spawn(node, [cliMain, 'oauth', 'exec', 'github', '--', ...args], {
        env: cleanEnvironment({ DOORWARD_HOME: server.home.root }),
        stdio: ['pipe', 'pipe', 'pipe'],
        timeout: 40_000,
        killSignal: 'SIGKILL',
      })
      return child
    }

    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR2'] as const)
      it(`passes ${signal} on to the command, which ends as it likes`, async () => {
        const child = started([node, tellsSignals])
        const ended = resultOf(child)
        await untilSaid(child, 'stdout', /ready/)
        const told = untilSaid(child, 'stdout', new RegExp(`<${signal}>`))
        child.kill(signal)
        await told
        child.stdin?.end('end\n')
        assert.equal((await ended).code, 7)
      })

    for (const signal of ['SIGTERM', 'SIGINT', 'SIGKILL', 'SIGSEGV', 'SIGUSR1'] as const)
      it(`dies by ${signal} when the command does`, async () => {
        // Not Node: it would take a SIGUSR1 as the call for its debugger.
        const child = started(['sh', '-c', `kill -${signal.slice(3)} $$`])
        await resultOf(child)
        assert.deepEqual([child.exitCode, child.signalCode], [null, signal])
      })

    it('ends with what a shell would for a signal that cannot kill it', async () => {
      const child = started(['sh', '-c', 'kill -PIPE $$'])
      await resultOf(child)
      assert.equal(child.exitCode, 128 + constants.signals.SIGPIPE)
    })

    it('does not double the Ctrl-C of a terminal', async function () {
      if (!hasTerminal()) return this.skip()
      const child = startOnTerminal(`oauth exec github -- '${node}' '${tellsSignals}'`, server)
      const ended = resultOf(child)
      const said = await untilSaid(child, 'stdout', /ready \d+ \d+/)
      const ours = Number(/ready \d+ (\d+)/.exec(said)?.[1])
      const interrupted = untilSaid(child, 'stdout', /<SIGINT>/)
      child.stdin?.write('\u0003')
      await interrupted
      // Passed on after the SIGINT: had that been passed on too, it would have come before.
      const second = untilSaid(child, 'stdout', /<SIGUSR2>/)
      process.kill(ours, 'SIGUSR2')
      await second
      child.stdin?.write('end\r')
      const { stdout } = await ended
      assert.equal(stdout.match(/<SIGINT>/g)?.length, 1)
    })

    it('lets a shell stop and continue it', async function () {
      if (!hasTerminal()) return this.skip()
      const shell = startOnShell(server)
      const ended = resultOf(shell)
      const ready = untilSaid(shell, 'stdout', /ready \d+/)
      const line = `'${node}' '${cliMain}' oauth exec github -- '${node}' '${tellsSignals}'`
      shell.stdin?.write(`${line}; echo "code $?"\n`)
      await ready
      const stopped = untilSaid(shell, 'stdout', /Stopped/)
      shell.stdin?.write('\u001a')
      await stopped
      const continued = untilSaid(shell, 'stdout', /<SIGCONT>/)
      shell.stdin?.write('fg\n')
      await continued
      shell.stdin?.write('end\n')
      shell.stdin?.write('exit\n')
      assert.match((await ended).stdout, /<SIGCONT>/)
    })
  })

  it('does not leave the command behind when the terminal goes', async function () {
    if (!hasTerminal()) return this.skip()
    const child = startOnTerminal(
      `oauth exec github -- '${node}' -e 'console.log("ready " + process.pid); setInterval(() => 0, 1e6)'`,
      server,
    )
    const said = await untilSaid(child, 'stdout', /ready \d+/)
    child.kill('SIGKILL')
    await waitForProcessExit(Number(/ready (\d+)/.exec(said)?.[1]))
  })
})

const startOnShell = (server: ContractServer): ChildProcess =>
  spawn('script', ['-qec', 'bash --norc --noprofile -i', '/dev/null'], {
    env: cleanEnvironment({ DOORWARD_HOME: server.home.root, TERM: 'dumb' }),
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: 40_000,
    killSignal: 'SIGKILL',
  })
