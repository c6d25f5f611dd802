import assert from 'node:assert/strict'
import { noteAndRun } from '../../../daemon/agents/noted-run.ts'

describe('programs that are to start together', () => {
  it('start in a turn of the loop each, so that what comes meanwhile is looked at', async () => {
    let turns = 0
    let isOver = false
    const count = (): void => {
      turns += 1
      if (!isOver) setImmediate(count)
    }
    const startedIn: number[] = []
    const run = noteAndRun(() => ({
      mark: 'mark',
      started: () => void startedIn.push(turns),
      forget: async () => undefined,
    }))
    setImmediate(count)
    const ended = await Promise.all(
      Array.from({ length: 8 }, () =>
        run({
          argv: ['cat'],
          cwd: process.cwd(),
          env: { PATH: process.env['PATH'] ?? '' },
          input: 'the prompt',
          timeoutMs: 60_000,
          outputLimitBytes: 1000,
          signal: new AbortController().signal,
          folder: undefined,
        }),
      ),
    )
    isOver = true
    assert.equal(startedIn.length, 8)
    assert.deepEqual(startedIn, [...new Set(startedIn)])
    assert.deepEqual(new Set(ended.map(({ stdout }) => String(stdout))), new Set(['the prompt']))
  })
})
