import assert from 'node:assert/strict'
import type {
  EventRecord,
  ProviderSummary,
  Status,
  TokenSummary,
  WebhookSummary,
} from '../../shared/api.ts'
import { type Row, menu, statusLine } from '../../tray/menu.ts'
import { type View, iconOf, needsOf } from '../../tray/view.ts'
import { eventWith, statusWith } from '../support/fake-daemon.ts'

const at = { now: Date.parse('2026-01-02T13:00:00Z'), utcOffset: 60 }
const connected = (more: Partial<Status> = {}): View => ({
  daemon: { state: 'connected', status: statusWith(more) },
  ...at,
})
const unreachable: View = {
  daemon: { state: 'unreachable', reason: 'Daemon not running', lastSeen: '2026-01-02T12:04:00Z' },
  ...at,
}
const connecting: View = { daemon: { state: 'connecting' }, ...at }

const provider = (
  name: string,
  status: ProviderSummary['status'],
  account?: string,
): ProviderSummary => ({
  provider: name,
  clientKnown: true,
  status,
  account: account === undefined ? null : { id: '1', name: account },
})
const problem = (code: string, detail: string) => ({ code, detail, hint: '' })
const webhook = (enabled: boolean) => ({ enabled }) as WebhookSummary

const rowsUnder = (view: View, text: string): readonly Row[] =>
  menu(view).find((row) => row.text === text)?.rows ?? []
const shapeOf = (rows: readonly Row[]): unknown =>
  rows.map((row) => (row.rows ? shapeOf(row.rows) : row.separator === true))

describe('menu', () => {
  it('has the same shape for every view', () => {
    const many = Array.from({ length: 30 }, (_, index) => eventWith({ id: String(index) }))
    const providers = Array.from({ length: 30 }, (_, index) => provider(`p${index}`, 'ok'))
    const shape = shapeOf(menu(connecting))
    for (const view of [unreachable, connected(), connected({ events: many, providers })])
      assert.deepEqual(shapeOf(menu(view)), shape)
  })

  it('shows the second row only when something needs the user', () => {
    assert.equal(menu(connected())[1]?.hidden, true)
    const row = menu(
      connected({ problems: [problem('config-invalid', 'agents.yaml is broken')] }),
    )[1]
    assert.deepEqual(row, { text: '! Agents.yaml is broken' })
  })

  it('cannot stop a daemon that is not there', () => {
    assert.equal(menu(unreachable).at(-1)?.action, undefined)
    assert.deepEqual(menu(connected()).at(-1)?.action, { do: 'stop-and-quit' })
  })

  const outcomes: [Partial<EventRecord>, string][] = [
    [{}, '13:04 ✓ /github: done'],
    [{ resultPreview: 'two\nlines' }, '13:04 ✓ /github: two lines'],
    [{ state: 'running' }, '13:04 ● /github: running'],
    [{ state: 'queued' }, '13:04 ○ /github: queued'],
    [{ state: 'filtered' }, '13:04 – /github: filtered'],
    [{ state: 'failed', code: 'agent-timeout' }, '13:04 ! /github: failed, agent-timeout'],
    [{ state: 'rejected', detail: 'no signature' }, '13:04 × /github: rejected, no signature'],
    [{ receivedAt: '2026-01-01T22:59:00Z' }, '01-01 ✓ /github: done'],
    [{ receivedAt: '2026-01-01T23:00:00Z' }, '00:00 ✓ /github: done'],
  ]
  for (const [event, text] of outcomes)
    it(`writes an event as ${text}`, () => {
      const [row] = rowsUnder(connected({ events: [eventWith(event)] }), 'Recent events')
      assert.equal(row?.text, text)
      assert.deepEqual(row?.action, { do: 'show-event', id: 'evt_1' })
    })

  it('shows the ten newest events, newest first, and a dash for what is not there', () => {
    const events = ['10:00', '12:00', '11:00'].map((time) =>
      eventWith({ id: time, receivedAt: `2026-01-02T${time}:00Z` }),
    )
    const rows = rowsUnder(connected({ events }), 'Recent events')
    assert.deepEqual(
      rows.map((row) => (row.action?.do === 'show-event' ? row.action.id : row.text.trim())),
      ['12:00', '11:00', '10:00', ...Array.from({ length: 7 }, () => '—')],
    )
  })

  it('shows one row per provider, for reading only', () => {
    const providers = [
      provider('google', 'ok', 'person@example.com'),
      provider('github', 'not-logged-in'),
      provider('slack', 'needs-login', 'person'),
      provider('own', 'expired'),
    ]
    const rows = rowsUnder(connected({ providers }), 'Accounts').filter((row) => !row.hidden)
    assert.deepEqual(rows, [
      { text: '✓ Google: person@example.com' },
      { text: '○ Github, not logged in' },
      { text: '! Slack: person, log in again' },
      { text: '○ Own, token expired' },
    ])
  })

  it('makes every row fit on one line of 80 characters', () => {
    const long = 'x\n'.repeat(500)
    const view = connected({
      url: `http://${long}`,
      events: [eventWith({ resultPreview: long, webhook: `/${long}` })],
      providers: [provider(long, 'ok', long)],
      problems: [problem('x', long)],
    })
    const flat = (rows: readonly Row[]): Row[] =>
      rows.flatMap((row) => [row, ...flat(row.rows ?? [])])
    for (const { text } of flat(menu(view))) {
      assert.ok(Array.from(text).length <= 80)
      assert.doesNotMatch(text, /\n/)
    }
  })
})

describe('statusLine', () => {
  const queue = (running: number, waiting: number) => ({ running, waiting, bytes: 0 })
  const cases: [View, string][] = [
    [connecting, 'Looking for the daemon…'],
    [unreachable, 'Daemon not running · last seen 13:04'],
    [connected(), 'Ready · 0 webhooks · 127.0.0.1:18789'],
    [
      connected({ webhooks: [webhook(true), webhook(false)] }),
      'Ready · 1 webhook · 127.0.0.1:18789',
    ],
    [connected({ queue: queue(1, 0) }), 'Working · 1 running · 127.0.0.1:18789'],
    [connected({ queue: queue(2, 3) }), 'Working · 2 running · 3 waiting · 127.0.0.1:18789'],
  ]
  for (const [view, text] of cases)
    it(`says ${text}`, () => {
      assert.equal(statusLine(view), text)
    })
})

describe('iconOf', () => {
  const failedRun = eventWith({ state: 'failed' })
  const running = { running: 1, waiting: 0, bytes: 0 }
  const cases: [string, View, string][] = [
    ['a daemon that is looked for', connecting, 'unreachable'],
    ['no daemon', unreachable, 'unreachable'],
    ['nothing to do', connected(), 'idle'],
    ['an agent at work', connected({ queue: running }), 'running'],
    ['a need during a run', connected({ queue: running, events: [failedRun] }), 'needs-you'],
    ['a failed run', connected({ events: [failedRun] }), 'needs-you'],
    ['a login', connected({ providers: [provider('slack', 'needs-login')] }), 'needs-you'],
    [
      'a webhook without secret',
      connected({
        problems: [problem('webhook-unsigned', 'x'), problem('revocation-pending', 'y')],
      }),
      'idle',
    ],
  ]
  for (const [what, view, icon] of cases)
    it(`is ${icon} for ${what}`, () => {
      assert.equal(iconOf(view), icon)
    })
})

describe('needsOf', () => {
  it('asks only about the newest run that has finished', () => {
    const failed = eventWith({ state: 'failed', receivedAt: '2026-01-02T10:00:00Z' })
    const well = eventWith({ receivedAt: '2026-01-02T11:00:00Z' })
    const going = eventWith({ state: 'running', receivedAt: '2026-01-02T12:00:00Z' })
    const refused = eventWith({ state: 'rejected', receivedAt: '2026-01-02T12:30:00Z' })
    assert.deepEqual(needsOf(statusWith({ events: [refused, going, well, failed] })), [])
    assert.equal(needsOf(statusWith({ events: [refused, going, failed] })).length, 1)
  })

  it('does not ask for a login that can renew itself', () => {
    const token = {
      provider: 'google',
      status: 'expired' as const,
      account: null,
      scopes: [],
      expiresAt: null,
      obtainedAt: '2026-01-02T10:00:00Z',
    } satisfies Omit<TokenSummary, 'refreshable'>
    const providers = [provider('google', 'expired')]
    const needs = (refreshable: boolean) =>
      needsOf(statusWith({ providers, tokens: [{ ...token, refreshable }] })).length
    assert.equal(needs(true), 0)
    assert.equal(needs(false), 1)
  })

  it('names the most pressing first', () => {
    const needs = needsOf(
      statusWith({
        problems: [problem('webhook-unsigned', 'unsigned'), problem('config-invalid', 'broken')],
        providers: [provider('slack', 'needs-login')],
      }),
    )
    assert.deepEqual(
      needs.map(({ text }) => text),
      ['Broken', 'Slack: log in again', 'Unsigned'],
    )
  })
})
