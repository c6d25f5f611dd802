import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { runProcess } from '../../../daemon/agents/process.ts'

const timeoutMs = 200

describe('a process that runs', () => {
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

  it('has answered when it ended in time while we could not look', async () => {
    let pid = 0
    // It ends by itself; what we do to end its input is not done before we can look again.
    const running = start(['head', '-c', '10'], (its) => (pid = its))
    // Nothing of ours runs meanwhile, as while the machine sleeps.
    const end = performance.now() + 2 * timeoutMs
    const state = () => execFileSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
    const lastEnd = end + 20_000
    while (!state().startsWith('Z') || performance.now() < end)
      if (performance.now() > lastEnd) assert.fail('it does not end')
    const { reason, exitCode, stdout } = await running
    assert.deepEqual([reason, exitCode, stdout.toString()], ['exit', 0, 'the prompt'])
  })

  it('is ended when it takes longer than it may', async () => {
    const { reason, exitSignal } = await start(['sleep', '60'], () => undefined)
    assert.deepEqual([reason, exitSignal], ['timeout', 'SIGTERM'])
  })
})
