import assert from 'node:assert/strict'
import type { ProviderSummary, Status } from '../../../shared/api/api.ts'
import { createAnnouncer } from '../../../tray/notifications/announcer.ts'
import { findStatusAttention } from '../../../tray/attention.ts'
import type { Note } from '../../../tray/notifications/note.ts'
import {
  crashNote,
  nothingAnnounced,
  toStatusNotes,
  startFailureNote,
} from '../../../tray/notifications/state-notes.ts'
import { eventWith, statusWith } from '../../support/daemon/fake-daemon.ts'

const broken = (detail: string) => ({
  code: 'config-invalid' as const,
  detail,
  hint: 'fix it',
  about: { file: 'config/agents.yaml' },
})
const github = (
  status: ProviderSummary['status'],
  account: ProviderSummary['account'] = null,
): ProviderSummary => ({ provider: 'github', clientKnown: true, status, account })
const getTitles = (statuses: readonly Partial<Status>[], isReportingLogin = false): string[][] => {
  let announced = nothingAnnounced
  return statuses.map((status) => {
    const changes = toStatusNotes(statusWith(status), announced, () => isReportingLogin)
    announced = changes.announced
    return changes.notes.map(({ subject }) => subject)
  })
}

describe('the notes for a status', () => {
  it('shows a broken configuration once, whatever its errors, and again after it was valid', () => {
    const first = broken('config/agents.yaml:4:5 kind: unknown')
    const second = broken('config/agents.yaml:9:1 kind: unknown')
    const title = 'configuration broken'
    assert.deepEqual(
      getTitles([
        { problems: [first] },
        { problems: [first] },
        { problems: [second, first] },
        {},
        { problems: [first] },
      ]),
      [[title], [], [], [], [title]],
    )
  })

  it('lists all errors in one note, which opens the file', () => {
    const problems = [broken('config/agents.yaml:4:5 one'), broken('config/agents.yaml:5:5 two')]
    const [note, ...others] = toStatusNotes(
      statusWith({ problems }),
      nothingAnnounced,
      () => false,
    ).notes
    assert.deepEqual(others, [])
    assert.equal(note?.body, 'config/agents.yaml:4:5 one\nconfig/agents.yaml:5:5 two')
    assert.deepEqual(note?.buttons, [
      { label: 'Open', action: { do: 'open-configuration', file: 'config/agents.yaml' } },
    ])
  })

  it('makes one note of problems that appear together, and another of later ones', () => {
    const unset = (path: string) => ({
      code: 'secret-unset',
      detail: `webhook ${path}: GITHUB_SECRET is unset or empty`,
      hint: 'set it',
    })
    const [a, b, c] = [unset('/a'), unset('/b'), unset('/c')]
    assert.deepEqual(
      getTitles([
        { problems: [a, b, broken('config/agents.yaml:4:5 one')] },
        { problems: [a, b, c] },
        { problems: [a, b, c] },
      ]),
      [['configuration broken', '2 things need you'], ['something needs you'], []],
    )
    const { notes } = toStatusNotes(statusWith({ problems: [a, b] }), nothingAnnounced, () => false)
    assert.equal(
      notes[0]?.body,
      'Webhook /a: GITHUB_SECRET is unset or empty\nWebhook /b: GITHUB_SECRET is unset or empty',
    )
    assert.deepEqual(notes[0]?.buttons, [
      { label: 'Open', action: { do: 'open-configuration', file: '.env' } },
    ])
  })

  it('offers to open the broken file and to start a daemon that did not start', () => {
    const start = { label: 'Start daemon', action: { do: 'start-daemon' } }
    assert.deepEqual(
      startFailureNote({ code: 'port-in-use', detail: 'port 18789 is taken' }).buttons,
      [start],
    )
    const note = startFailureNote(broken('config/agents.yaml:4:5 kind: unknown'))
    assert.equal(note.body, 'config/agents.yaml:4:5 kind: unknown')
    assert.deepEqual(note.buttons, [
      { label: 'Open', action: { do: 'open-configuration', file: 'config/agents.yaml' } },
      start,
    ])
  })

  it('leaves advice to the menu', () => {
    const problems = ['webhook-unsigned', 'revocation-pending', 'scheme-differs'].map((code) => ({
      code,
      detail: code,
      hint: '',
    }))
    assert.deepEqual(getTitles([{ problems }]), [[]])
  })

  it('shows once that a login is needed, with the reason, and that it was made', () => {
    const needed = {
      providers: [github('needs-login')],
      problems: [
        {
          code: 'needs-login',
          detail: 'the login to github has ended: revoked',
          hint: 'doorward oauth login github',
          about: { provider: 'github' },
        },
      ],
    }
    const [note] = toStatusNotes(statusWith(needed), nothingAnnounced, () => false).notes
    assert.equal(note?.body, 'The login to github has ended: revoked')
    assert.deepEqual(note?.buttons, [
      { label: 'Log in', action: { do: 'login', provider: 'github' } },
    ])
    const made = { providers: [github('ok', { id: '1', name: 'ada' })] }
    assert.deepEqual(getTitles([needed, needed, made, made]), [
      ['GitHub: log in again'],
      [],
      ['GitHub: logged in'],
      [],
    ])
  })

  it('shows an insecure token file, and no login', () => {
    const open = {
      providers: [github('needs-login')],
      problems: [
        {
          code: 'token-file-insecure',
          detail: '/h/tokens/github.json is open to other users (mode 644)',
          hint: 'chmod 600 /h/tokens/github.json',
          about: { provider: 'github' },
        },
      ],
    }
    const fixed = { providers: [github('ok')] }
    assert.deepEqual(getTitles([open, fixed]), [['something needs you'], []])
  })

  it('shows no login from before, and none that an action reports', () => {
    assert.deepEqual(getTitles([{ providers: [github('ok')] }]), [[]])
    const login = [{ providers: [github('not-logged-in')] }, { providers: [github('ok')] }]
    assert.deepEqual(getTitles(login), [[], ['GitHub: logged in']])
    assert.deepEqual(getTitles(login, true), [[], []])
  })
})

describe('the announcer', () => {
  it('shows only what is for the desktop while notifications are off', () => {
    const shown: Note[] = []
    let isOn = false
    const announcer = createAnnouncer({
      show: (note) => shown.push(note),
      close: () => undefined,
      isOn: () => isOn,
    })
    const targets = [{ target: 'notify:desktop', state: 'done' as const, attempts: 1 }]
    announcer.event(eventWith({ id: '1', resultPreview: 'for a log' }))
    announcer.event(eventWith({ id: '2', resultPreview: 'for the desktop', targets }))
    announcer.event(eventWith({ id: '3', state: 'failed', detail: 'why' }))
    announcer.status(statusWith({ problems: [broken('x')] }))
    assert.deepEqual(
      shown.map(({ body }) => body),
      ['for the desktop'],
    )
    isOn = true
    announcer.event(eventWith({ id: '4', resultPreview: 'for a log' }))
    announcer.event(eventWith({ id: '4', resultPreview: 'for a log' }))
    assert.equal(shown.length, 2)
    announcer.stop()
  })

  it('closes once what no longer applies: a broken configuration, a crashed daemon', () => {
    const closed: string[] = []
    const announcer = createAnnouncer({
      show: () => undefined,
      close: (key) => closed.push(key),
      isOn: () => true,
    })
    announcer.show(crashNote)
    announcer.status(statusWith({ problems: [broken('x')] }))
    assert.deepEqual(closed, ['daemon'])
    announcer.status(statusWith({ problems: [broken('y')] }))
    announcer.status(statusWith({}))
    announcer.status(statusWith({}))
    assert.deepEqual(closed, ['daemon', 'problem config-invalid'])
    announcer.stop()
  })

  it('closes a note about several problems when the last one is solved', () => {
    const shown: Note[] = []
    const closed: string[] = []
    const announcer = createAnnouncer({
      show: (note) => shown.push(note),
      close: (key) => closed.push(key),
      isOn: () => true,
    })
    const unset = (name: string) => ({ code: 'secret-unset', detail: name, hint: 'set it' })
    const [a, b, c] = [unset('a'), unset('b'), unset('c')]
    announcer.status(statusWith({ problems: [a, b] }))
    announcer.status(statusWith({ problems: [a, b, c] }))
    announcer.status(statusWith({ problems: [b, c] }))
    assert.deepEqual(closed, [])
    announcer.status(statusWith({ problems: [c] }))
    announcer.status(statusWith({}))
    assert.deepEqual(
      closed,
      shown.map(({ key }) => key),
    )
    assert.equal(closed.length, 2)
    announcer.stop()
  })

  it('offers to run, show or skip what was missed, and leaves the icon alone', () => {
    const missed = {
      code: 'deliveries-missed',
      detail: '9 missed deliveries of acme/door since 2026-11-26 02:10',
      hint: 'doorward events missed',
    }
    const status = statusWith({ problems: [missed] })
    const [note] = toStatusNotes(status, nothingAnnounced, () => false).notes
    assert.equal(note?.body, missed.detail)
    assert.deepEqual(
      note?.buttons?.map(({ action }) => action.do),
      ['run-missed', 'show-missed', 'skip-missed'],
    )
    assert.deepEqual(findStatusAttention(status), [
      { text: missed.detail, urgent: false, action: { do: 'show-missed' } },
    ])
  })

  it('reports a tunnel that brings nothing once, with a row and another icon', () => {
    const down = {
      code: 'tunnel-down',
      detail: 'cloudflared runs, but nothing arrives at https://a.example: no answer',
      hint: 'doorward tunnel starts it again',
    }
    const status = statusWith({ problems: [down] })
    const { notes, announced } = toStatusNotes(status, nothingAnnounced, () => false)
    assert.equal(
      notes[0]?.body,
      'Cloudflared runs, but nothing arrives at https://a.example: no answer',
    )
    assert.deepEqual(toStatusNotes(status, announced, () => false).notes, [])
    assert.equal(findStatusAttention(status)[0]?.urgent, true)
  })

  it('closes the request to log in when it no longer applies, and keeps the note about a login', () => {
    const closed: string[] = []
    const announcer = createAnnouncer({
      show: () => undefined,
      close: (key) => closed.push(key),
      isOn: () => true,
    })
    announcer.status(statusWith({ providers: [github('needs-login')] }))
    announcer.status(statusWith({ providers: [github('ok')] }))
    assert.deepEqual(closed, [])
    announcer.status(statusWith({ providers: [github('needs-login')] }))
    announcer.status(statusWith({ providers: [github('not-logged-in')] }))
    assert.deepEqual(closed, ['login github'])
    announcer.stop()
  })
})
