import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Worker } from 'node:worker_threads'
import {
  type ProgramThreadParts,
  createProgramThread,
} from '../../../daemon/agents/thread/program-thread.ts'
import { DoorwardError, systemCode } from '../../../shared/errors.ts'
import { untilGone } from '../../support/fixtures.ts'
import { temporaryFolder } from '../../support/temporary.ts'

const execute = promisify(execFile)

/** Tells the number of a program that it starts, and fails. */
const failingThread = `
const { spawn } = require('node:child_process')
const { parentPort } = require('node:worker_threads')
parentPort.on('message', ({ id }) => {
  const { pid } = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' })
  parentPort.postMessage({ kind: 'started', id, pid })
  setImmediate(() => { throw new Error('the number is ' + pid) })
})`

describe('the thread that runs programs', () => {
  const start = async (parts: Partial<ProgramThreadParts> = {}) => {
    const run = await temporaryFolder()
    const runProcess = createProgramThread({ home: { run }, ...parts })
    return {
      run,
      start: (argv: readonly string[], signal = new AbortController().signal) =>
        runProcess({
          argv,
          cwd: run,
          env: { PATH: process.env['PATH'] ?? '', WORD: 'wörd' },
          input: 'the prompt',
          timeoutMs: 20_000,
          outputLimitBytes: 1000,
          signal,
          folder: undefined,
        }),
    }
  }
  const nextThread = async (): Promise<Worker> => {
    const [thread] = (await once(process, 'worker')) as [Worker]
    return thread
  }

  it('gives what a program says and how it ended', async () => {
    const { start: run } = await start()
    const { reason, exitCode, stdout, stderr, cut } = await run([
      'sh',
      '-c',
      'cat; printf " $WORD"; echo wrong >&2; exit 3',
    ])
    assert.deepEqual([reason, exitCode, cut], ['exit', 3, false])
    assert.deepEqual([stdout.toString(), stderr.toString()], ['the prompt wörd', 'wrong\n'])
  })

  it('keeps a note of each program while it runs, and none afterwards', async () => {
    const { run, start: runIn } = await start()
    // Its number stands there a moment after it has begun.
    const script =
      'until grep -q "pid.:$$," "agents/$DOORWARD_RUN.json"; do :; done; ls agents; echo $DOORWARD_RUN'
    const { stdout } = await runIn(['sh', '-c', script])
    const [note, mark] = stdout.toString().split('\n')
    assert.equal(note, `${mark}.json`)
    assert.deepEqual(await readdir(join(run, 'agents')), [])
  })

  it('makes no home anew that was removed', async () => {
    const gone = join(await temporaryFolder(), 'home')
    const { start: run } = await start({ home: { run: join(gone, 'run') } })
    assert.equal((await run(['echo', 'it'])).stdout.toString(), 'it\n')
    assert.equal(existsSync(gone), false)
  })

  it('says why a program cannot be started', async () => {
    const { start: run } = await start()
    const error = await run(['no-such-program']).catch((thrown: unknown) => thrown)
    assert.equal(systemCode(error), 'ENOENT')
  })

  it('stops a program, also one that was not wanted any more when it was asked for', async () => {
    const { start: run } = await start()
    const stopped = new AbortController()
    const running = run(['sleep', '600'], stopped.signal)
    stopped.abort('at-once')
    const ends = await Promise.all([running, run(['sleep', '600'], stopped.signal)])
    for (const { reason, exitSignal } of ends)
      assert.deepEqual([reason, exitSignal], ['stopped', 'SIGTERM'])
  })

  it('runs programs at the same time', async () => {
    const { start: run } = await start()
    // Each waits for the other.
    const waits = (mine: string, other: string) =>
      run(['sh', '-c', `cat ${other} & echo it > ${mine}; wait`])
    await run(['mkfifo', 'a', 'b'])
    const ends = await Promise.all([waits('a', 'b'), waits('b', 'a')])
    assert.deepEqual(
      ends.map(({ stdout }) => stdout.toString()),
      ['it\n', 'it\n'],
    )
  })

  it('is ended when nothing runs, and made again for the next program', async () => {
    const { start: run } = await start({ idleMs: 0 })
    for (const turn of ['first', 'second']) {
      const made = nextThread()
      const { stdout } = await run(['echo', turn])
      assert.equal(stdout.toString(), `${turn}\n`)
      await once(await made, 'exit')
    }
  })

  it('takes its programs with it when it fails, and the next gets a new one', async () => {
    const { start: run } = await start({ text: failingThread })
    for (const turn of [1, 2]) {
      const error = await run(['sleep', '600']).catch((thrown: unknown) => thrown)
      assert.ok(error instanceof DoorwardError, String(error))
      assert.equal(error.code, 'agent-failed')
      const pid = Number(/the number is (\d+)/.exec(String(error.cause))?.[1])
      assert.ok(pid > 0, `${turn}: ${String(error)}`)
      await untilGone(pid)
    }
  })

  it('says what the system said where it cannot be begun', async () => {
    const text = "throw new Error('Worker initialization failure: EAGAIN')"
    const { start: run } = await start({ text })
    const error = await run(['echo']).catch((thrown: unknown) => thrown)
    assert.equal(systemCode(error), 'EAGAIN')
  })

  it('is not begun where there is no room for its files, and takes none of them then', async function () {
    // Elsewhere a process is not told what it has open.
    if (process.platform !== 'linux') this.skip()
    const module = new URL('../../../daemon/agents/thread/program-thread.js', import.meta.url).href
    const { stdout } = await execute('sh', [
      '-c',
      'ulimit -n 64; exec "$@"',
      'sh',
      process.execPath,
      'test/fixtures/runs-without-files.mjs',
      module,
      await temporaryFolder(),
    ])
    assert.equal(stdout, 'EMFILE\nEMFILE\nEMFILE\n0\nit runs\n')
  })
})
