import assert from 'node:assert/strict'
import type { FromOld } from '../../../daemon/handover/messages.ts'
import { shareMemory } from '../../../daemon/handover/share-memory.ts'
import { createMemory } from '../../../daemon/memory.ts'

describe('shareMemory', () => {
  it('tells of each change until it is told to stop, as after a successor that failed', () => {
    const memory = createMemory(10)
    const sent: FromOld['kind'][] = []
    const change = () => {
      memory.events.add(new Date(), { state: 'filtered', webhook: '/a' })
      memory.deliveries.remember({ webhook: '/a', hash: 'x' }, '1', 0)
      memory.progress.put('key', { parts: 1, mayHaveArrived: false })
      memory.messages.put('C1 1.1')
    }
    const stop = shareMemory(memory, ({ kind }) => sent.push(kind))
    change()
    assert.deepEqual(sent, ['memory', 'event', 'delivery', 'progress', 'message'])
    stop()
    change()
    assert.equal(sent.length, 5)
  })
})
