import assert from 'node:assert/strict'
import { type Crowd, join, noCrowd, release } from '../../../tray/notifications/dedupe.ts'
import type { Note } from '../../../tray/notifications/note.ts'

const run = (index: number): Note => ({ title: `Doorward · /${index}`, body: 'x', isRun: true })
const failedRun = (index: number): Note => ({ ...run(index), failure: true })
const joinAll = (crowd: Crowd, notes: readonly Note[], now: number) => {
  let step = join(crowd, { title: '', body: '' }, now)
  const shown: Note[] = []
  let last = crowd
  notes.forEach((note, index) => {
    step = join(last, note, now + index)
    last = step.crowd
    shown.push(...step.show)
  })
  return { ...step, shown }
}
const runs = (count: number) => Array.from({ length: count }, (_, index) => run(index))

describe('coalescing', () => {
  it('shows three at once', () => {
    const { shown, releaseAt } = joinAll(noCrowd, runs(3), 0)
    assert.equal(shown.length, 3)
    assert.equal(releaseAt, undefined)
  })

  it('makes one of the others, ten seconds after the first', () => {
    const { crowd, shown, releaseAt } = joinAll(noCrowd, runs(6), 0)
    assert.equal(shown.length, 3)
    assert.equal(releaseAt, 10_000)
    const { show, crowd: after } = release(crowd, 10_000)
    assert.deepEqual(show, [{ title: 'Doorward · 3 more runs finished', body: '/3\n/4\n/5' }])
    assert.deepEqual(after.waiting, [])
  })

  it('says how many of them failed', () => {
    const { crowd } = joinAll(noCrowd, [...runs(6), failedRun(6), failedRun(7)], 0)
    const [note] = release(crowd, 10_000).show
    assert.equal(note?.title, 'Doorward · 5 more runs finished, 2 failed')
    assert.equal(note?.failure, true)
  })

  it('does not take what is no run for one', () => {
    const other = { title: 'Doorward · GitHub: log in again', body: 'x', failure: true } as const
    const { crowd } = joinAll(noCrowd, [...runs(4), other], 0)
    const [note] = release(crowd, 10_000).show
    assert.equal(note?.title, 'Doorward · 1 more run finished, 1 other note')
    assert.equal(note?.body, '/3\nGitHub: log in again')
  })

  it('shows a single late one as it is', () => {
    const { crowd } = joinAll(noCrowd, runs(4), 0)
    assert.deepEqual(release(crowd, 10_000).show, [run(3)])
  })

  it('starts anew when ten seconds have passed', () => {
    const { crowd } = joinAll(noCrowd, runs(3), 0)
    assert.deepEqual(join(crowd, run(9), 10_002).show, [run(9)])
  })

  it('counts a flood without keeping it', () => {
    const { crowd } = joinAll(noCrowd, [...runs(503), ...runs(500).map(() => failedRun(0))], 0)
    assert.equal(crowd.waiting.length, 20)
    assert.equal(
      release(crowd, 10_000).show[0]?.title,
      'Doorward · 1000 more runs finished, 500 failed',
    )
  })
})
