import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { runProcess } from '../../../daemon/agents/process.ts'

const timeoutMs = 200

describe('a running process', () => {
  const start = (argv: readonly string[], onStart: (pid: number) => void) =>
    runProcess({
      argv,
      cwd: process.cwd(),
      env: { PATH: process.env['PATH'] ?? '' },
      input: 'the prompt',
      timeoutMs,
      outputLimitBytes: 1000,
      signal: new AbortController().signal,
      onStart,
    })

  it('counts as exited when it exited in time while we were blocked', async () => {
    let pid = 0
    // `head` exits on its own: closing its input would need our event loop.
    const running = start(['head', '-c', '10'], (its) => (pid = its))
    // Block the event loop, as a sleeping machine does.
    const end = performance.now() + 2 * timeoutMs
    const state = () => execFileSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
    const lastEnd = end + 20_000
    while (!state().startsWith('Z') || performance.now() < end)
      if (performance.now() > lastEnd) assert.fail('it does not exit')
    const { reason, exitCode, stdout } = await running
    assert.deepEqual([reason, exitCode, stdout.toString()], ['exit', 0, 'the prompt'])
  })

  it('is stopped at its timeout', async () => {
    const { reason, exitSignal } = await start(['sleep', '60'], () => undefined)
    assert.deepEqual([reason, exitSignal], ['timeout', 'SIGTERM'])
  })
})
