import assert from 'node:assert/strict'
import { createTurnBatching } from '../../../daemon/http/turn-batching.ts'

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Blocks the event loop, as the start of a program does. */
const passTime = (ms: number): void => {
  const end = performance.now() + ms
  while (performance.now() < end);
}

describe('the end of a turn', () => {
  // However slow the machine is, no limit ends the wait.
  const { batchResponse, deferToTickEnd } = createTurnBatching(Infinity)

  it('sends responses in their order, and then runs deferred steps', async () => {
    const done: string[] = []
    deferToTickEnd(() => done.push('step'))
    batchResponse(() => done.push('first'))
    batchResponse(() => done.push('second'))
    assert.deepEqual(done, [])
    await turn()
    assert.deepEqual(done, ['first', 'second', 'step'])
  })

  it('does not keep responses waiting in a long turn', async () => {
    const { batchResponse, deferToTickEnd } = createTurnBatching(250)
    const done: string[] = []
    deferToTickEnd(() => done.push('turn'))
    await turn()
    deferToTickEnd(() => done.push('step'))
    batchResponse(() => done.push('first'))
    assert.deepEqual(done, ['turn'])
    passTime(250)
    batchResponse(() => done.push('second'))
    assert.deepEqual(done, ['turn', 'first', 'second'])
    await turn()
    assert.deepEqual(done, ['turn', 'first', 'second', 'step'])
  })
})
