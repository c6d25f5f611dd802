import assert from 'node:assert/strict'
import type { ProviderSummary, Status } from '../../shared/api.ts'
import { noteOnce } from '../../tray/note-once.ts'
import type { Note } from '../../tray/note.ts'
import { nothingTold, notesOfStatus } from '../../tray/state-notes.ts'
import { eventWith, statusWith } from '../support/fake-daemon.ts'

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
    const title = 'the configuration cannot be used'
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
    const notes = noteOnce({ show: (note) => shown.push(note), isOn: () => isOn })
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
})
