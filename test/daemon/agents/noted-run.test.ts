import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type RunOptions, noteAndRun } from '../../../daemon/agents/orphans.ts'
import { answerAtEndOfTurn } from '../../../daemon/http/turn-batching.ts'
import { countTurns } from '../../support/count-turns.ts'

const options = (argv: readonly string[], signal: AbortSignal): RunOptions => ({
  argv,
  cwd: process.cwd(),
  env: { PATH: process.env['PATH'] ?? '' },
  input: 'the prompt',
  timeoutMs: 60_000,
  outputLimitBytes: 1000,
  signal,
  folder: undefined,
})

const noting = (started: () => void) =>
  noteAndRun(() => ({ mark: 'mark', started, forget: async () => undefined }))

describe('programs that are to start together', () => {
  it('start in a turn of the loop each, so that what comes meanwhile is looked at', async () => {
    const turns = countTurns()
    const startedIn: number[] = []
    const run = noting(() => void startedIn.push(turns.now()))
    const { signal } = new AbortController()
    const ended = await Promise.all(
      Array.from({ length: 8 }, async () => run(options(['cat'], signal))),
    )
    turns.end()
    assert.equal(startedIn.length, 8)
    assert.deepEqual(startedIn, [...new Set(startedIn)])
    assert.deepEqual(new Set(ended.map(({ stdout }) => String(stdout))), new Set(['the prompt']))
  })

  it('start after the answers to whoever came since their note', async () => {
    const order: string[] = []
    const running = () => process.getActiveResourcesInfo().includes('ProcessWrap')
    const run = noteAndRun(() => {
      order.push('note')
      const answer = () => order.push(running() ? 'answer after the start' : 'answer')
      setImmediate(() => answerAtEndOfTurn(answer))
      return {
        mark: 'mark',
        started: () => void order.push(running() ? 'number' : 'number before the start'),
        forget: async () => void order.push('forgotten'),
      }
    })
    await run(options(['cat'], new AbortController().signal))
    assert.deepEqual(order, ['note', 'answer', 'number', 'forgotten'])
  })

  it('do not start any more when they are to stop before their turn comes', async () => {
    let started = 0
    const stop = new AbortController()
    const isStopped = once(stop.signal, 'abort')
    const run = noting(() => {
      started += 1
      stop.abort()
    })
    const all = Array.from({ length: 8 }, async () => run(options(['sleep', '60'], stop.signal)))
    await isStopped
    const ended = await Promise.all(all)
    assert.equal(started, 1)
    for (const { reason } of ended) assert.equal(reason, 'stopped')
  })
})
