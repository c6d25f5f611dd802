import assert from 'node:assert/strict'
import type { ProviderSummary, Status } from '../../../shared/api.ts'
import { noteOnce } from '../../../tray/notifications/dedupe.ts'
import type { Note } from '../../../tray/notifications/note.ts'
import {
  crashNote,
  nothingTold,
  notesOfStatus,
  startFailureNote,
} from '../../../tray/notifications/state-notes.ts'
import { eventWith, statusWith } from '../../support/fake-daemon.ts'

const broken = (detail: string) => ({ code: 'config-invalid', detail, hint: 'mend it' })
const github = (
  status: ProviderSummary['status'],
  account: ProviderSummary['account'] = null,
): ProviderSummary => ({ provider: 'github', clientKnown: true, status, account })
const titlesOf = (statuses: readonly Partial<Status>[], tellsLogin = false): string[][] => {
  let told = nothingTold
  return statuses.map((status) => {
    const news = notesOfStatus(statusWith(status), told, () => tellsLogin)
    told = news.told
    return news.notes.map(({ title }) => title.replace('Doorward · ', ''))
  })
}

describe('notesOfStatus', () => {
  it('tells a broken configuration once, whatever is wrong with it, and again after it was well', () => {
    const first = broken('config/agents.yaml:4:5 kind: unknown')
    const second = broken('config/agents.yaml:9:1 kind: unknown')
    const title = 'configuration broken'
    assert.deepEqual(
      titlesOf([
        { problems: [first] },
        { problems: [first] },
        { problems: [second, first] },
        {},
        { problems: [first] },
      ]),
      [[title], [], [], [], [title]],
    )
  })

  it('lists all that is wrong in one note, which opens the file', () => {
    const problems = [broken('config/agents.yaml:4:5 one'), broken('config/agents.yaml:5:5 two')]
    const [note, ...others] = notesOfStatus(
      statusWith({ problems }),
      nothingTold,
      () => false,
    ).notes
    assert.deepEqual(others, [])
    assert.equal(note?.body, 'config/agents.yaml:4:5 one\nconfig/agents.yaml:5:5 two')
    assert.deepEqual(note?.buttons, [
      { label: 'Open', action: { do: 'open-configuration', file: 'config/agents.yaml' } },
    ])
  })

  it('makes one note of what comes at a time, and of what comes later another', () => {
    const unset = (path: string) => ({
      code: 'secret-unset',
      detail: `webhook ${path}: GITHUB_SECRET is unset or empty`,
      hint: 'set it',
    })
    const [a, b, c] = [unset('/a'), unset('/b'), unset('/c')]
    assert.deepEqual(
      titlesOf([
        { problems: [a, b, broken('config/agents.yaml:4:5 one')] },
        { problems: [a, b, c] },
        { problems: [a, b, c] },
      ]),
      [['configuration broken', '2 things need you'], ['something needs you'], []],
    )
    const { notes } = notesOfStatus(statusWith({ problems: [a, b] }), nothingTold, () => false)
    assert.equal(
      notes[0]?.body,
      'Webhook /a: GITHUB_SECRET is unset or empty\nWebhook /b: GITHUB_SECRET is unset or empty',
    )
    assert.deepEqual(notes[0]?.buttons, [
      { label: 'Open', action: { do: 'open-configuration', file: '.env' } },
    ])
  })

  it('offers to start a daemon that did not start, after a look into the file that is broken', () => {
    const start = { label: 'Start daemon', action: { do: 'start-daemon' } }
    assert.deepEqual(startFailureNote('port 18789 is taken').buttons, [start])
    const note = startFailureNote('config/agents.yaml:4:5 kind: unknown')
    assert.equal(note.body, 'config/agents.yaml:4:5 kind: unknown')
    assert.deepEqual(note.buttons, [
      { label: 'Open', action: { do: 'open-configuration', file: 'config/agents.yaml' } },
      start,
    ])
  })

  it('keeps advice to the menu', () => {
    const problems = ['webhook-unsigned', 'revocation-pending', 'scheme-differs'].map((code) => ({
      code,
      detail: code,
      hint: '',
    }))
    assert.deepEqual(titlesOf([{ problems }]), [[]])
  })

  it('tells that a login is needed once, with why, and that it was made', () => {
    const needed = {
      providers: [github('needs-login')],
      problems: [
        {
          code: 'needs-login',
          detail: 'the login to github has ended: revoked',
          hint: 'doorward oauth login github',
        },
      ],
    }
    const [note] = notesOfStatus(statusWith(needed), nothingTold, () => false).notes
    assert.equal(note?.body, 'The login to github has ended: revoked')
    assert.deepEqual(note?.buttons, [
      { label: 'Log in', action: { do: 'login', provider: 'github' } },
    ])
    const made = { providers: [github('ok', { id: '1', name: 'ada' })] }
    assert.deepEqual(titlesOf([needed, needed, made, made]), [
      ['GitHub: log in again'],
      [],
      ['GitHub: logged in'],
      [],
    ])
  })

  it('tells of a token file that lies open, and of no login', () => {
    const open = {
      providers: [github('needs-login')],
      problems: [
        {
          code: 'token-file-insecure',
          detail: '/h/tokens/github.json is open to other users (mode 644)',
          hint: 'chmod 600 /h/tokens/github.json',
        },
      ],
    }
    const mended = { providers: [github('ok')] }
    assert.deepEqual(titlesOf([open, mended]), [['something needs you'], []])
  })

  it('tells no login that was there before, and none that a click tells already', () => {
    assert.deepEqual(titlesOf([{ providers: [github('ok')] }]), [[]])
    const login = [{ providers: [github('not-logged-in')] }, { providers: [github('ok')] }]
    assert.deepEqual(titlesOf(login), [[], ['GitHub: logged in']])
    assert.deepEqual(titlesOf(login, true), [[], []])
  })
})

describe('noteOnce', () => {
  it('shows only what is for the desktop while notifications are off', () => {
    const shown: Note[] = []
    let isOn = false
    const notes = noteOnce({
      show: (note) => shown.push(note),
      close: () => undefined,
      isOn: () => isOn,
    })
    const targets = [{ target: 'notify:desktop', state: 'done' as const, attempts: 1 }]
    notes.event(eventWith({ id: '1', resultPreview: 'for a log' }))
    notes.event(eventWith({ id: '2', resultPreview: 'for the desktop', targets }))
    notes.event(eventWith({ id: '3', state: 'failed', detail: 'why' }))
    notes.status(statusWith({ problems: [broken('x')] }))
    assert.deepEqual(
      shown.map(({ body }) => body),
      ['for the desktop'],
    )
    isOn = true
    notes.event(eventWith({ id: '4', resultPreview: 'for a log' }))
    notes.event(eventWith({ id: '4', resultPreview: 'for a log' }))
    assert.equal(shown.length, 2)
    notes.stop()
  })

  it('takes away once what is no longer so: a broken configuration, a daemon that was missed', () => {
    const gone: string[] = []
    const notes = noteOnce({
      show: () => undefined,
      close: (key) => gone.push(key),
      isOn: () => true,
    })
    notes.tell(crashNote)
    notes.status(statusWith({ problems: [broken('x')] }))
    assert.deepEqual(gone, ['daemon'])
    notes.status(statusWith({ problems: [broken('y')] }))
    notes.status(statusWith({}))
    notes.status(statusWith({}))
    assert.deepEqual(gone, ['daemon', 'problem config-invalid'])
    notes.stop()
  })

  it('takes away what several things were told in once the last of them is well', () => {
    const shown: Note[] = []
    const gone: string[] = []
    const notes = noteOnce({
      show: (note) => shown.push(note),
      close: (key) => gone.push(key),
      isOn: () => true,
    })
    const unset = (name: string) => ({ code: 'secret-unset', detail: name, hint: 'set it' })
    const [a, b, c] = [unset('a'), unset('b'), unset('c')]
    notes.status(statusWith({ problems: [a, b] }))
    notes.status(statusWith({ problems: [a, b, c] }))
    notes.status(statusWith({ problems: [b, c] }))
    assert.deepEqual(gone, [])
    notes.status(statusWith({ problems: [c] }))
    notes.status(statusWith({}))
    assert.deepEqual(
      gone,
      shown.map(({ key }) => key),
    )
    assert.equal(gone.length, 2)
    notes.stop()
  })

  it('takes away that a login is needed once it is not, and leaves what tells that it was made', () => {
    const gone: string[] = []
    const notes = noteOnce({
      show: () => undefined,
      close: (key) => gone.push(key),
      isOn: () => true,
    })
    notes.status(statusWith({ providers: [github('needs-login')] }))
    notes.status(statusWith({ providers: [github('ok')] }))
    assert.deepEqual(gone, [])
    notes.status(statusWith({ providers: [github('needs-login')] }))
    notes.status(statusWith({ providers: [github('not-logged-in')] }))
    assert.deepEqual(gone, ['login github'])
    notes.stop()
  })
})
