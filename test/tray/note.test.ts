import assert from 'node:assert/strict'
import type { EventRecord } from '../../shared/api.ts'
import { type Crowd, join, noCrowd, release } from '../../tray/coalesce.ts'
import { bodyOf, keyOf, noteOf, resultNoteOf } from '../../tray/note.ts'
import { optionsOf } from '../../tray/notify.ts'
import { eventWith } from '../support/fake-daemon.ts'

const onDesktop = (state: 'waiting' | 'done' | 'failed') => [
  { target: 'log', state: 'done' as const, attempts: 1 },
  { target: 'notify:desktop', state, attempts: 1 },
]

describe('noteOf', () => {
  const cases: [what: string, event: Partial<EventRecord>, note: unknown][] = [
    [
      'shows the answer that is for the desktop',
      { targets: onDesktop('done'), resultPreview: 'well' },
      { title: 'Doorward · /github', body: 'well' },
    ],
    ['shows nothing for other targets', { resultPreview: 'well' }, undefined],
    [
      'waits until the event is finished',
      { state: 'delivering', targets: onDesktop('done') },
      undefined,
    ],
    ['shows nothing that was not delivered', { targets: onDesktop('waiting') }, undefined],
    [
      'shows why an event failed',
      { state: 'failed', code: 'agent-failed', detail: 'agent "a" ended with 2' },
      { title: 'Doorward · /github: failed', body: 'agent "a" ended with 2', failure: true },
    ],
    [
      'shows the answer too when only another target failed',
      { state: 'failed', detail: 'disk full', targets: onDesktop('done'), resultPreview: 'well' },
      { title: 'Doorward · /github: failed', body: 'disk full\nwell', failure: true },
    ],
    ['shows nothing of what was refused', { state: 'rejected', detail: 'no signature' }, undefined],
    [
      'has a text for an empty answer',
      { targets: onDesktop('done') },
      { title: 'Doorward · /github', body: '(no text)' },
    ],
  ]
  for (const [what, event, note] of cases)
    it(what, () => {
      assert.deepEqual(noteOf(eventWith(event)), note)
    })

  it('tells a retry from the same record sent twice', () => {
    const failed = eventWith({ state: 'failed' })
    assert.equal(keyOf(failed), keyOf({ ...failed }))
    assert.notEqual(keyOf(failed), keyOf({ ...failed, attempts: 2 }))
  })
})

describe('resultNoteOf', () => {
  it('prefers the whole result to its beginning', () => {
    const note = resultNoteOf({ ...eventWith({ resultPreview: 'be' }), result: 'beginning' })
    assert.deepEqual(note, { title: 'Doorward · /github: done', body: 'beginning' })
  })
})

describe('bodyOf', () => {
  it('keeps the first six lines that say something', () => {
    assert.equal(bodyOf('\n1\n\n2\n3\n4\n5\n6\n7'), '1\n2\n3\n4\n5\n6 …')
  })

  it('cuts a long line and makes dots of list marks', () => {
    assert.equal(bodyOf(`- ${'x'.repeat(500)}`), `• ${'x'.repeat(398)} …`)
  })
})

describe('optionsOf', () => {
  const note = { title: '--help <i>', body: '-u critical & <b>' }

  it('lets nothing become an option or markup on Linux', () => {
    assert.deepEqual(optionsOf(note, '/icon.png', 'linux'), {
      title: ' --help ‹i›',
      message: ' -u critical &amp; &lt;b&gt;',
      icon: '/icon.png',
      'app-name': 'Doorward',
      timeout: 15,
    })
  })

  it('leaves markup alone where it is only text', () => {
    assert.deepEqual(optionsOf({ title: 'a < b', body: 'a & b' }, 'i', 'darwin'), {
      title: 'a < b',
      message: 'a & b',
      icon: 'i',
    })
  })
})

describe('coalescing', () => {
  const note = (index: number) => ({ title: `Doorward · /${index}`, body: 'x' })
  const joinAll = (crowd: Crowd, count: number, now: number) => {
    let step = { crowd, show: [] as readonly unknown[], releaseAt: undefined as number | undefined }
    const shown: unknown[] = []
    for (let index = 0; index < count; index += 1) {
      const next = join(step.crowd, note(index), now + index)
      step = { ...next, releaseAt: next.releaseAt }
      shown.push(...next.show)
    }
    return { ...step, shown }
  }

  it('shows three at once', () => {
    const { shown, releaseAt } = joinAll(noCrowd, 3, 0)
    assert.equal(shown.length, 3)
    assert.equal(releaseAt, undefined)
  })

  it('makes one of the others, ten seconds after the first', () => {
    const { crowd, shown, releaseAt } = joinAll(noCrowd, 6, 0)
    assert.equal(shown.length, 3)
    assert.equal(releaseAt, 10_000)
    const { show, crowd: after } = release(crowd, 10_000)
    assert.deepEqual(show, [{ title: 'Doorward · 3 more events', body: '/3\n/4\n/5' }])
    assert.deepEqual(after.waiting, [])
  })

  it('shows a single late one as it is', () => {
    const { crowd } = joinAll(noCrowd, 4, 0)
    assert.deepEqual(release(crowd, 10_000).show, [note(3)])
  })

  it('starts anew when ten seconds have passed', () => {
    const { crowd } = joinAll(noCrowd, 3, 0)
    assert.deepEqual(join(crowd, note(9), 10_002).show, [note(9)])
  })

  it('counts a flood without keeping it', () => {
    const { crowd } = joinAll(noCrowd, 1003, 0)
    assert.equal(crowd.waiting.length, 20)
    assert.match(release(crowd, 10_000).show[0]?.title ?? '', /1000 more events/)
  })
})
