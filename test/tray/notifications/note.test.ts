import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import type { EventRecord } from '../../../shared/api/api.ts'
import { toOptions } from '../../../tray/notifications/node-notifier.ts'
import { bodyArgument, bodyMarkup, titleText } from '../../../tray/text.ts'
import {
  type Note,
  toBody,
  toKey,
  toNote,
  toResultNote,
  toTitle,
} from '../../../tray/notifications/note.ts'
import { eventWith } from '../../support/daemon/fake-daemon.ts'

const onDesktop = (state: 'waiting' | 'done' | 'failed') => [
  { target: 'log', state: 'done' as const, attempts: 1 },
  { target: 'notify:desktop', state, attempts: 1 },
]

describe('toNote', () => {
  it('asks whether an answer may leave, with both buttons, also with notifications off', () => {
    const approval = {
      state: 'waiting' as const,
      digest: 'd',
      askedAt: '2026-01-01T10:00:00.000Z',
      expiresAt: '2026-01-02T10:00:00.000Z',
      asked: ['desktop'],
    }
    const event = eventWith({ state: 'waiting', approval, resultPreview: 'well' })
    const note = toNote(event, false)
    assert.deepEqual(
      note?.buttons?.map(({ label, action }) => [label, action.do]),
      [
        ['Look', 'show-event'],
        ['Send', 'approve-event'],
        ['Do not send', 'reject-event'],
      ],
    )
    assert.match(note?.body ?? '', /well/)
    const elsewhere = { ...approval, asked: ['slack:#ops'] }
    assert.equal(toNote({ ...event, approval: elsewhere }, true), undefined)
  })

  const cases: [
    what: string,
    event: Partial<EventRecord>,
    off: Partial<Note> | null,
    on: unknown,
  ][] = [
    [
      'shows the answer that is for the desktop, even with notifications off',
      { targets: onDesktop('done'), resultPreview: 'well' },
      { subject: '/github', body: 'well' },
      { subject: '/github', body: 'well' },
    ],
    [
      'shows the answer for other targets only with notifications on',
      { resultPreview: 'well' },
      null,
      { subject: '/github', body: 'well' },
    ],
    [
      'waits until the event is finished',
      { state: 'delivering', targets: onDesktop('done') },
      null,
      null,
    ],
    ['shows no answer that was not delivered', { targets: onDesktop('waiting') }, null, null],
    [
      'shows why an event failed, with notifications off only if it is for the desktop',
      { state: 'failed', code: 'agent-failed', detail: 'agent "a" ended with 2' },
      null,
      { subject: '/github: failed', body: 'agent "a" ended with 2' },
    ],
    [
      'shows nothing of an event that its owner cancelled',
      { state: 'dropped', code: 'event-cancelled', targets: onDesktop('waiting') },
      null,
      null,
    ],
    [
      'shows the answer too when only another target failed',
      { state: 'failed', detail: 'disk full', targets: onDesktop('done'), resultPreview: 'well' },
      { subject: '/github: failed', body: 'disk full\nwell' },
      { subject: '/github: failed', body: 'disk full\nwell' },
    ],
    [
      'shows nothing of what was refused',
      { state: 'rejected', detail: 'no signature' },
      null,
      null,
    ],
    ['shows nothing of what the filter passed over', { state: 'filtered' }, null, null],
    [
      'shows nothing of a token that was given to a program',
      { kind: 'oauth', webhook: null, detail: 'google: token issued to git' },
      null,
      null,
    ],
    [
      'has a text for an empty answer',
      { targets: onDesktop('done') },
      { subject: '/github', body: '(no text)' },
      { subject: '/github', body: '(no text)' },
    ],
  ]
  const textOf = (note: Note | undefined) =>
    note ? { subject: note.subject, body: note.body } : null
  for (const [what, event, off, on] of cases)
    it(what, () => {
      assert.deepEqual(textOf(toNote(eventWith(event), false)), off)
      assert.deepEqual(textOf(toNote(eventWith(event), true)), on)
    })

  const labels = (event: Partial<EventRecord>) =>
    toNote(eventWith(event), true)?.buttons?.map(({ label }) => label)

  it('has a button that opens the event', () => {
    assert.deepEqual(toNote(eventWith({ id: 'evt_9' }), true)?.buttons, [
      { label: 'Open', action: { do: 'show-event', id: 'evt_9' } },
    ])
  })

  it('opens what the event made by a click, and the event by a button of its own', () => {
    const url = 'https://github.com/acme/shop/pull/40'
    const links = [{ target: 'pull-request:acme/shop', what: 'pull request #40', url }]
    assert.deepEqual(toNote(eventWith({ links }), true)?.buttons, [
      { label: 'Open', action: { do: 'open-page', id: 'evt_1', url } },
      { label: 'Details', action: { do: 'show-event', id: 'evt_1' } },
    ])
  })

  it('has a retry button where a retry is possible', () => {
    assert.deepEqual(labels({ state: 'failed', stage: 'agent' }), ['Open', 'Retry'])
    assert.deepEqual(labels({ state: 'failed', stage: 'deliver' }), ['Open', 'Retry'])
    assert.deepEqual(labels({ state: 'failed', stage: 'expand' }), ['Open'])
    assert.deepEqual(labels({ state: 'dropped', stage: 'queue' }), ['Open'])
  })

  it('replaces the note about an earlier attempt', () => {
    const before = toNote(eventWith({ state: 'failed', attempts: 1 }), true)
    assert.equal(before?.key, toNote(eventWith({ state: 'done', attempts: 2 }), true)?.key)
    assert.notEqual(before?.key, toNote(eventWith({ id: 'evt_2' }), true)?.key)
  })

  it('distinguishes a retry from the same record sent twice', () => {
    const failed = eventWith({ state: 'failed' })
    assert.equal(toKey(failed), toKey({ ...failed }))
    assert.notEqual(toKey(failed), toKey({ ...failed, attempts: 2 }))
  })
})

describe('toResultNote', () => {
  it('prefers the whole result to its beginning', () => {
    const note = toResultNote({ ...eventWith({ resultPreview: 'be' }), result: 'beginning' })
    assert.equal(note.subject, '/github: done')
    assert.equal(note.body, 'beginning')
  })

  it('never retries by a click on the note itself', () => {
    const note = toResultNote(eventWith({ state: 'failed', stage: 'agent' }))
    assert.deepEqual(
      note.buttons?.map(({ label }) => label),
      ['Open', 'Retry'],
    )
  })

  it('offers to run once more what is done', () => {
    const { buttons } = toResultNote(eventWith({ state: 'done' }))
    assert.deepEqual(
      buttons?.map(({ label }) => label),
      ['Open', 'Run again'],
    )
  })
})

describe('toBody', () => {
  it('keeps the first six lines that are not empty', () => {
    assert.equal(toBody('\n1\n\n2\n3\n4\n5\n6\n7'), '1\n2\n3\n4\n5\n6 …')
  })

  it('cuts a long line and turns list marks into dots', () => {
    assert.equal(toBody(`- ${'x'.repeat(5000)}`), `• ${'x'.repeat(398)} …`)
  })
})

describe('the text of a note', () => {
  it('cannot become markup', () => {
    assert.equal(titleText('a <i> & b'), 'a ‹i› ＆ b')
    assert.equal(bodyMarkup('<a href="x">1 & 2</a>'), '&lt;a href="x"&gt;1 &amp; 2&lt;/a&gt;')
  })

  it('cannot become markup after notify-send has resolved its backslashes', () => {
    assert.equal(bodyArgument(String.raw`\074b\076 C:\new`), String.raw`\\074b\\076 C:\\new`)
  })

  it('contains nothing that reorders or hides other text', () => {
    assert.equal(titleText('a\u202Eb\u200Bc\u001B[31md\u0000'), 'abcd')
    assert.equal(bodyMarkup('one\u2066\ntwo'), 'one\ntwo')
    assert.equal(toTitle('one\ntwo'), 'Doorward · one two')
  })

  it('leaves emoji and other scripts alone', () => {
    assert.equal(bodyMarkup('🚀 שלום 你好'), '🚀 שלום 你好')
  })
})

describe('toOptions', () => {
  const note = { title: '--help <i>', body: String.raw`-u critical & <b> \074`, icon: '/icon.png' }

  it('lets nothing become an option or markup on Linux', () => {
    assert.deepEqual(toOptions({ ...note, shownMs: 15_000 }, 'linux'), {
      title: ' --help ‹i›',
      message: String.raw` -u critical &amp; &lt;b&gt; \\074`,
      icon: '/icon.png',
      'app-name': 'Doorward',
      timeout: 15,
    })
  })

  it('leaves markup alone where it is plain text', () => {
    assert.deepEqual(
      toOptions({ title: 'a < b', body: 'a & b', icon: 'i', shownMs: 1 }, 'darwin'),
      {
        title: 'a < b',
        message: 'a & b',
        icon: 'i',
        timeout: false,
      },
    )
    assert.ok(!('timeout' in toOptions({ ...note, shownMs: 1 }, 'win32')))
  })

  it('keeps the program of macOS from waiting for a click', () => {
    const require = createRequire(import.meta.url)
    const { mapToMac } = require('node-notifier/lib/utils') as {
      mapToMac: (options: object) => Record<string, unknown>
    }
    assert.equal(mapToMac({ title: 'a', message: 'b' })['timeout'], 10)
    assert.equal(
      mapToMac({ ...toOptions({ ...note, shownMs: 1 }, 'darwin') })['timeout'],
      undefined,
    )
  })
})
