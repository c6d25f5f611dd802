import assert from 'node:assert/strict'
import {
  type Burst,
  addToBurst,
  emptyBurst,
  flushBurst,
} from '../../../tray/notifications/announcer.ts'
import type { Note } from '../../../tray/notifications/note.ts'

const run = (index: number): Note => ({ subject: `/${index}`, body: 'x', isRun: true })
const failedRun = (index: number): Note => ({ ...run(index), failure: true })
const addAll = (burst: Burst, notes: readonly Note[], now: number) => {
  let step = addToBurst(burst, { subject: '', body: '' }, now)
  const shown: Note[] = []
  let last = burst
  notes.forEach((note, index) => {
    step = addToBurst(last, note, now + index)
    last = step.burst
    shown.push(...step.show)
  })
  return { ...step, shown }
}
const runs = (count: number) => Array.from({ length: count }, (_, index) => run(index))

describe('a burst of notes', () => {
  it('shows three immediately', () => {
    const { shown, flushAt } = addAll(emptyBurst, runs(3), 0)
    assert.equal(shown.length, 3)
    assert.equal(flushAt, undefined)
  })

  it('combines the others ten seconds after the first', () => {
    const { burst, shown, flushAt } = addAll(emptyBurst, runs(6), 0)
    assert.equal(shown.length, 3)
    assert.equal(flushAt, 10_000)
    const { show, burst: after } = flushBurst(burst, 10_000)
    assert.deepEqual(show, [{ subject: '3 more runs finished', body: '/3\n/4\n/5' }])
    assert.deepEqual(after.waiting, [])
  })

  it('says how many of them failed', () => {
    const { burst } = addAll(emptyBurst, [...runs(6), failedRun(6), failedRun(7)], 0)
    const [note] = flushBurst(burst, 10_000).show
    assert.equal(note?.subject, '5 more runs finished, 2 failed')
    assert.equal(note?.failure, true)
  })

  it('counts other notes apart from runs', () => {
    const other = { subject: 'GitHub: log in again', body: 'x', failure: true } as const
    const { burst } = addAll(emptyBurst, [...runs(4), other], 0)
    const [note] = flushBurst(burst, 10_000).show
    assert.equal(note?.subject, '1 more run finished, 1 other note')
    assert.equal(note?.body, '/3\nGitHub: log in again')
  })

  it('shows a single late note unchanged', () => {
    const { burst } = addAll(emptyBurst, runs(4), 0)
    assert.deepEqual(flushBurst(burst, 10_000).show, [run(3)])
  })

  it('starts again after ten seconds', () => {
    const { burst } = addAll(emptyBurst, runs(3), 0)
    assert.deepEqual(addToBurst(burst, run(9), 10_002).show, [run(9)])
  })

  it('counts a flood without storing it', () => {
    const { burst } = addAll(emptyBurst, [...runs(503), ...runs(500).map(() => failedRun(0))], 0)
    assert.equal(burst.waiting.length, 20)
    assert.equal(flushBurst(burst, 10_000).show[0]?.subject, '1000 more runs finished, 500 failed')
  })
})
