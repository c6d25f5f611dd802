import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { access, chmod, readdir, realpath, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { runCommand } from '../../../daemon/agents/invoke.ts'
import { runProcess } from '../../../daemon/agents/process.ts'
import type { Answer } from '../../../daemon/agents/answer.ts'
import type { CommandAgent } from '../../../shared/config/schema.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { fixtureAgent, isRunning, pidsIn, waitForProcessExit } from '../../support/fixtures.ts'
import { temporaryFolder } from '../../support/temporary.ts'

const makeAgent = (command: string[], more: Partial<CommandAgent> = {}): CommandAgent => ({
  kind: 'command',
  command,
  timeout: 15_000,
  concurrency: 1,
  output_limit: 1024 * 1024,
  ...more,
})

const run = (
  command: string[],
  more: Partial<CommandAgent> & { prompt?: string; signal?: AbortSignal } = {},
): Promise<Answer> => {
  const { prompt = 'a prompt', signal = new AbortController().signal, ...rest } = more
  const env = { ...process.env, HOOK_SECRET: 'canary-secret', KEY: 'key-value' }
  const getToken = async (provider: string, minValidityMs: number) => {
    if (provider !== 'github') throw new DoorwardError('not-logged-in', 'you are not logged in')
    return `token-for-${minValidityMs}`
  }
  return runCommand(makeAgent(command, rest), prompt, {
    env,
    run: runProcess,
    homeFolder: '/nowhere',
    getToken,
    signal,
  })
}

/** The error of a run that fails. */
const getFailure = async (running: Promise<Answer>): Promise<DoorwardError> => {
  const error = await running.then(
    () => assert.fail('it answered'),
    (error: unknown) => error,
  )
  assert.ok(error instanceof DoorwardError, String(error))
  return error
}

describe('an agent of kind command', () => {
  it('gets a whole prompt of 5 MB, on its standard input and not in its arguments', async () => {
    const prompt = `canary ${'€x'.repeat(1_310_720)}`
    const answer = await run(fixtureAgent('reads-stdin', 'one', '$HOME;`id`'), { prompt })
    const seen = JSON.parse(answer.text) as Record<string, unknown>
    assert.equal(seen['bytes'], Buffer.byteLength(prompt))
    assert.equal(seen['sha256'], createHash('sha256').update(prompt).digest('hex'))
    assert.deepEqual(seen['argv'], ['one', '$HOME;`id`'])
    assert.ok(!String(seen['cmdline']).includes('canary'))
  })

  it('may exit without reading its input', async () => {
    const answer = await run(fixtureAgent('ignores-stdin-and-exits'), { prompt: 'x'.repeat(5e6) })
    assert.deepEqual(answer, { text: 'not read', cut: false })
  })

  it('runs in an empty folder of its own that is removed afterwards', async () => {
    // Other daemons of this machine use the usual temporary folder.
    const own = await temporaryFolder()
    const usual = process.env['TMPDIR']
    process.env['TMPDIR'] = own
    try {
      const answer = await run(fixtureAgent('reads-stdin'))
      const { cwd } = JSON.parse(answer.text) as { cwd: string }
      assert.match(cwd, /doorward-agent-/)
      await assert.rejects(access(cwd), { code: 'ENOENT' })
      await getFailure(run(fixtureAgent('fails-with-stderr')))
      await getFailure(run(['no-such-program-anywhere']))
      assert.deepEqual(await readdir(own), [])
    } finally {
      if (usual === undefined) delete process.env['TMPDIR']
      else process.env['TMPDIR'] = usual
    }
  })

  it('runs in its cwd when it has one, which stays', async () => {
    const cwd = await temporaryFolder()
    const answer = await run(fixtureAgent('reads-stdin'), { cwd })
    assert.equal((JSON.parse(answer.text) as { cwd: string }).cwd, await realpath(cwd))
    await access(cwd)
  })

  it('sees a clean environment and what its entry adds, and no secret of the daemon', async () => {
    const answer = await run(fixtureAgent('prints-env'), {
      env: { GIVEN: 'env:KEY', PLAIN: 'text', MISSING: 'env:NOTHING' },
    })
    const seen = JSON.parse(answer.text) as Record<string, string>
    assert.deepEqual([seen['GIVEN'], seen['PLAIN']], ['key-value', 'text'])
    assert.ok(!('HOOK_SECRET' in seen) && !('MISSING' in seen) && !('KEY' in seen))
    assert.ok(!answer.text.includes('canary'))
  })

  it('reads no .bashrc of the owner', async () => {
    const HOME = await temporaryFolder()
    await writeFile(join(HOME, '.bashrc'), 'echo from .bashrc')
    const { text } = await run(['bash', '-c', 'echo from the agent'], { env: { HOME } })
    assert.equal(text.trim(), 'from the agent')
  })

  it('fails with its exit code, and its last lines of standard error for the owner only', async () => {
    const error = await getFailure(run(fixtureAgent('fails-with-stderr', '7')))
    assert.equal(error.code, 'agent-failed')
    assert.match(error.message, /exited with code 7$/)
    assert.doesNotMatch(error.message, /line/)
    assert.match(error.localDetail ?? '', /: line 16\nline 17\nline 18\nline 19\nline 20$/)
  })

  it('fails with the signal that killed it', async () => {
    const error = await getFailure(
      run([process.execPath, '-e', 'process.kill(process.pid, "SIGKILL")']),
    )
    assert.deepEqual([error.code, /SIGKILL/.test(error.message)], ['agent-failed', true])
  })

  it('is not found when there is no such program, file or folder', async () => {
    const folder = await temporaryFolder()
    const file = join(folder, 'not-executable')
    await writeFile(file, '#!/bin/sh\necho hello\n')
    await chmod(file, 0o644)
    const script = join(folder, 'written-on-windows')
    await writeFile(script, '#!/bin/sh\r\necho hello\r\n', { mode: 0o755 })
    const cases: readonly [string[], Partial<CommandAgent>, RegExp][] = [
      [['no-such-program-anywhere'], {}, /no such program on the daemon's PATH$/],
      [[join(folder, 'nothing')], {}, /nothing: there is no such program, or not the one/],
      [[script], {}, /, or not the one that its first line names$/],
      [[file], {}, /not executable/],
      [[folder], {}, /not executable/],
      [
        fixtureAgent('prints-env'),
        { cwd: join(folder, 'nothing') },
        /: its cwd .*nothing does not exist$/,
      ],
      [fixtureAgent('prints-env'), { cwd: file }, /: its cwd .*not-executable is a file$/],
      [['node'], { cwd: file }, /: its cwd .*not-executable is a file$/],
      [['no-such-program-anywhere'], { cwd: folder }, /no such program on the daemon's PATH$/],
      [[join(file, 'program')], {}, /a part of its path is a file$/],
      [['a\0b'], {}, /cannot start/],
      [[process.execPath, 'x'.repeat(3_000_000)], {}, /too long/],
    ]
    for (const [command, more, message] of cases) {
      const error = await getFailure(run(command, more))
      assert.equal(error.code, 'agent-not-found')
      assert.match(error.message, message)
    }
  })

  it('is cut at its output limit, marked, and costs no more memory than that', async () => {
    const limit = 64 * 1024
    globalThis.gc?.()
    const before = process.memoryUsage().rss
    const answer = await run(fixtureAgent('prints-100-mb'), { output_limit: limit })
    const grown = process.memoryUsage().rss - before
    assert.ok(answer.cut)
    assert.equal(Buffer.byteLength(answer.text), limit + '\n[cut: longer than 65536 bytes]'.length)
    assert.ok(grown < 80 * 1024 * 1024, `grew by ${grown} bytes`)
  })

  it('is not marked when it fills its output limit exactly', async () => {
    const answer = await run([process.execPath, '-e', 'process.stdout.write("x".repeat(100))'], {
      output_limit: 100,
    })
    assert.deepEqual(answer, { text: 'x'.repeat(100), cut: false })
  })

  it('is stopped when it takes too long', async () => {
    const error = await getFailure(run(fixtureAgent('sleeps-for-ever'), { timeout: 1000 }))
    assert.equal(error.code, 'agent-timeout')
    assert.match(error.message, /longer than 1 s/)
  })

  it('is killed 5 s after a SIGTERM that it ignores, with all that it started', async () => {
    const folder = await temporaryFolder()
    const stop = new AbortController()
    const running = run(fixtureAgent('ignores-sigterm', join(folder, 'pids')), {
      signal: stop.signal,
    })
    const pids = await pidsIn(folder)
    for (const pid of pids) assert.ok(await isRunning(pid))
    const stoppedAt = performance.now()
    stop.abort()
    const error = await getFailure(running)
    const took = performance.now() - stoppedAt
    assert.equal(error.code, 'agent-stopped')
    assert.ok(took > 4500 && took < 9000, `took ${took} ms`)
    for (const pid of pids) await waitForProcessExit(pid)
  })

  it('is killed sooner when the daemon must stop immediately', async () => {
    const folder = await temporaryFolder()
    const stop = new AbortController()
    const running = run(fixtureAgent('ignores-sigterm', join(folder, 'pids')), {
      signal: stop.signal,
    })
    const pids = await pidsIn(folder)
    const stoppedAt = performance.now()
    stop.abort('immediately')
    assert.equal((await getFailure(running)).code, 'agent-stopped')
    assert.ok(performance.now() - stoppedAt < 4000)
    for (const pid of pids) await waitForProcessExit(pid)
  })

  it('leaves no child behind that ignored the SIGTERM', async () => {
    const folder = await temporaryFolder()
    const stop = new AbortController()
    const command = fixtureAgent('ends-on-sigterm-but-child-does-not', join(folder, 'pids'))
    const running = run(command, { signal: stop.signal })
    const pids = await pidsIn(folder)
    stop.abort()
    assert.equal((await getFailure(running)).code, 'agent-stopped')
    for (const pid of pids) await waitForProcessExit(pid)
  })

  for (const output of ['holds', 'lets-go-of'])
    it(`leaves no child behind that ${output} its output`, async () => {
      const answer = await run(fixtureAgent('leaves-a-child', output))
      assert.ok(Number(answer.text) > 1)
      await waitForProcessExit(Number(answer.text))
    })

  it('is stopped immediately when the daemon has stopped waiting already', async () => {
    const error = await getFailure(
      run(fixtureAgent('sleeps-for-ever'), { signal: AbortSignal.abort() }),
    )
    assert.equal(error.code, 'agent-stopped')
  })

  describe('with a token in its environment', () => {
    const printing = (code: string) => [process.execPath, '-e', code]
    const env = { GITHUB_TOKEN: 'oauth:github', COPY: 'oauth:github' }

    it('gets one that is valid as long as it may run', async () => {
      const code = 'process.stdout.write(process.env.GITHUB_TOKEN + " " + process.env.COPY)'
      const { text } = await run(printing(code), { env })
      assert.equal(text, 'token-for-15000 token-for-15000')
    })

    it('is not started without it', async () => {
      const error = await getFailure(run(printing(''), { env: { A: 'oauth:slack' } }))
      assert.equal(error.code, 'not-logged-in')
    })

    it('does not bring it into an event when it fails and prints it', async () => {
      const code = 'console.error("my token is " + process.env.GITHUB_TOKEN); process.exit(1)'
      const error = await getFailure(run(printing(code), { env }))
      assert.match(error.localDetail ?? '', /my token is <token of github>$/)
    })

    it('nor the values of variables that its entry names, line by line', async () => {
      const code = 'console.error(process.env.MINE, process.env.HOME); process.exit(1)'
      const error = await getFailure(run(printing(code), { env: { MINE: 'env:HOOK_SECRET' } }))
      assert.ok(
        error.localDetail?.endsWith(`: <value of HOOK_SECRET> ${process.env['HOME'] ?? ''}`),
      )
    })

    for (const kept of [1, 8, 15])
      it(`nor the rest of one that is cut after all but ${kept} characters`, async () => {
        const code = `console.error(process.env.GITHUB_TOKEN + " " + "x".repeat(${8192 - kept - 2})); process.exit(1)`
        const error = await getFailure(run(printing(code), { env }))
        assert.match(error.localDetail ?? '', /: (<token of github>|0) x+$/)
      })
  })
})
