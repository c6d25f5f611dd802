import assert from 'node:assert/strict'
import type { FromOld } from '../../../daemon/restart/protocol.ts'
import { applyChange, shareMemory } from '../../../daemon/restart/snapshot.ts'
import { createMemory } from '../../../daemon/state.ts'

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

  it('brings what there was, and each change, to the memory of the other', () => {
    const [memory, other] = [createMemory(10), createMemory(10)]
    memory.messages.put('C1 1.1')
    shareMemory(memory, (message) => applyChange(other, message, 0))
    const isOwn = (ts: string) => other.messages.isOwnMessage({ event: { channel: 'C1', ts } })
    assert.deepEqual([isOwn('1.1'), isOwn('1.2')], [true, false])
    memory.messages.put('C1 1.2')
    assert.equal(isOwn('1.2'), true)
  })
})
