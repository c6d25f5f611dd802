import assert from 'node:assert/strict'
import {
  copyEnded,
  restoreEnded,
  restoreSnapshot,
  takeSnapshot,
} from '../../../daemon/restart/snapshot.ts'
import type { AcceptedEvent } from '../../../daemon/webhook/events/accepted-event.ts'
import { expandWorkspace } from '../../../daemon/workspace/request.ts'
import { parseWorkspace } from '../../../shared/config/workspace.ts'
import { scopeOf } from '../../support/scope.ts'
import { createMemory } from '../../../daemon/state.ts'

const posted = (ts: string) => ({ channel: 'C1', ts })

describe('a snapshot of the memory', () => {
  it('has all that the memory of the other process needs', () => {
    const [memory, other] = [createMemory(10), createMemory(10)]
    const { id } = memory.events.add(new Date(), { state: 'accepted', webhook: '/a' })
    memory.events.update(id, { state: 'done' }, { prompt: 'p', result: 'r' })
    memory.messages.remember(posted('1.1'))
    const rate = { count: 1, perMs: 60_000 }
    memory.rateLimits.count('/a', rate, performance.now())
    const key = { webhook: '/a', hash: 'x' }
    memory.deliveries.remember(key, id, performance.now())
    memory.eventNames.remember(key, 'push', performance.now())
    restoreSnapshot(other, structuredClone(takeSnapshot(memory, [])))
    assert.deepEqual(other.events.get(id), memory.events.get(id))
    assert.equal(other.counts.of('/a').counts.done, 1)
    assert.equal(other.messages.isOwnMessage({ event: posted('1.1') }), true)
    assert.equal(other.messages.isOwnMessage({ event: posted('1.2') }), false)
    assert.throws(() => other.rateLimits.count('/a', rate, performance.now()), {
      code: 'rate-limited',
    })
    assert.equal(other.deliveries.eventFor(key, performance.now()), id)
    assert.equal(other.eventNames.eventFor(key, performance.now()), 'push')
  })

  it('has what a retry of an event needs: its code, and the comment that its answer updates', () => {
    const [memory, other] = [createMemory(10), createMemory(10)]
    const { id } = memory.events.add(new Date(), { state: 'accepted', webhook: '/a' })
    memory.events.update(id, { state: 'failed' }, { prompt: 'p' })
    const kept = {
      updateKey: '/a review',
      code: { head: 'a', change: { gitDir: '/m', ref: 'refs/x' } },
      workspace: expandWorkspace(
        parseWorkspace({ repo: 'acme/door', ref: 'main', access: 'write' }),
        scopeOf({}),
      ),
    }
    const accepted = { webhook: {}, known: {}, targets: [] } as unknown as AcceptedEvent
    memory.kept.keep(id, { ...accepted, ...kept })
    restoreSnapshot(other, structuredClone(takeSnapshot(memory, [])))
    const { updateKey, code, workspace } = other.kept.get(id) ?? {}
    assert.deepEqual({ updateKey, code, workspace }, kept)
  })

  it('is followed by how a run ended, with what its delivery has left behind', () => {
    const [memory, other] = [createMemory(10), createMemory(10)]
    const { id } = memory.events.add(new Date(), { state: 'running', webhook: '/a' })
    restoreSnapshot(other, takeSnapshot(memory, []))
    memory.messages.remember(posted('1.1'))
    memory.events.update(id, { state: 'done' }, { result: 'r' })
    const record = memory.events.record(id)
    assert.ok(record)
    const ended = copyEnded(memory, record)
    assert.ok(ended)
    restoreEnded(other, structuredClone(ended))
    assert.deepEqual([other.events.get(id)?.state, other.events.get(id)?.result], ['done', 'r'])
    assert.equal(other.messages.isOwnMessage({ event: posted('1.1') }), true)
  })

  it('is followed by an event that was accepted after it, which can be retried', () => {
    const [memory, other] = [createMemory(10), createMemory(10)]
    restoreSnapshot(other, takeSnapshot(memory, []))
    const { id } = memory.events.add(new Date(), { state: 'accepted', webhook: '/a' })
    memory.kept.keep(id, { webhook: {}, known: {}, targets: [] } as unknown as AcceptedEvent)
    memory.events.update(id, { state: 'failed' }, { prompt: 'p' })
    const record = memory.events.record(id)
    assert.ok(record)
    const ended = copyEnded(memory, record)
    assert.ok(ended)
    restoreEnded(other, structuredClone(ended))
    assert.equal(other.kept.get(id)?.prompt, 'p')
    const { accepted, failed } = other.counts.of('/a').counts
    assert.deepEqual([accepted, failed], [1, 1])
  })
})
