import assert from 'node:assert/strict'
import type { EventRecord, TokenSummary } from '../../shared/api/api.ts'
import type { ScheduleSummary } from '../../shared/api/schedules.ts'
import { type Row, menu, statusLine } from '../../tray/menu.ts'
import { findStatusAttention } from '../../tray/attention.ts'
import { type View, initialOwnState } from '../../tray/view.ts'
import { eventWith, statusWith } from '../support/daemon/fake-daemon.ts'
import {
  connected,
  connecting,
  problem,
  provider,
  unreachable,
  webhook,
} from '../support/desktop/views.ts'

const rowsUnder = (view: View, text: string): readonly Row[] =>
  menu(view).find((row) => row.text === text)?.rows ?? []
/** A row in one line: its text, whether it has rows under it, and what a click does. */
const written = ({ text, action, rows, hidden, separator }: Row): string => {
  if (separator) return '---'
  if (hidden) return '(hidden)'
  const does = action ? ` = ${Object.values(action).join(' ')}` : ''
  return `${text.trimEnd()}${rows ? ' >' : ''}${does}`
}
const shapeOf = (rows: readonly Row[]): unknown =>
  rows.map((row) => (row.rows ? shapeOf(row.rows) : row.separator === true))

describe('menu', () => {
  it('has the same shape for every view', () => {
    const many = Array.from({ length: 30 }, (_, index) => eventWith({ id: String(index) }))
    const providers = Array.from({ length: 6 }, (_, index) => provider(`p${index}`, 'ok'))
    const shape = shapeOf(menu(connecting))
    for (const view of [unreachable, connected(), connected({ events: many, providers })])
      assert.deepEqual(shapeOf(menu(view)), shape)
  })

  /** The rows while all is well, but for those at these places. */
  const rowsBut = (others: Readonly<Record<number, string>> = {}): string[] =>
    [
      'Ready · 0 webhooks · 127.0.0.1:18789 = open-doorward',
      '(hidden)',
      '(hidden)',
      '---',
      'Accounts >',
      'Recent events >',
      '---',
      '✓ Notifications = set-notifications false',
      '✓ Start at login = set-start-at-login false',
      '---',
      'Open configuration = open-configuration',
      'Open logs = open-logs',
      'Copy diagnostics = copy-diagnostics',
      'Restart daemon = restart-daemon',
      '---',
      'Quit tray = quit',
      'Stop daemon and quit = stop-and-quit',
    ].map((row, place) => others[place] ?? row)
  const table: [string, View, string[]][] = [
    ['a daemon that is well', connected({}, { startAtLogin: true }), rowsBut()],
    [
      'a failed run, with both switches off',
      connected(
        { events: [eventWith({ state: 'failed', code: 'agent-timeout' })] },
        { notifications: false, startAtLogin: false },
      ),
      rowsBut({
        0: 'Needs you · 0 webhooks · 127.0.0.1:18789 = open-doorward',
        1: '! Last run failed: /github, agent-timeout = show-event evt_1',
        7: '\u2003 Notifications = set-notifications true',
        8: '\u2003 Start at login = set-start-at-login true',
      }),
    ],
    [
      'a daemon that is away',
      unreachable,
      rowsBut({
        0: 'Daemon not running · last seen 13:04',
        8: '\u2003 Start at login',
        13: 'Start daemon = start-daemon',
      }),
    ],
    [
      'a daemon that is looked for',
      connecting,
      rowsBut({ 0: 'Looking for the daemon…', 8: '\u2003 Start at login', 13: 'Start daemon' }),
    ],
  ]
  it('has a row for the machines that share the queue', () => {
    const machine = { version: '0.1.0', seenAt: '2026-01-02T03:04:05.000Z' }
    const machines = [
      { ...machine, name: 'edge', role: 'receiver' as const, agents: [] },
      {
        ...machine,
        name: 'tower',
        role: 'worker' as const,
        agents: [{ name: 'echo', running: 2, free: 0 }],
      },
    ]
    const row = (isConnected: boolean) =>
      menu(connected({ broker: { connected: isConnected, redelivered: 0 }, machines }))[2]
    assert.deepEqual(row(true), { text: '2 machines: edge receiver, tower 2 running' })
    assert.deepEqual(row(false), { text: 'Machines: no broker' })
  })

  for (const [what, view, rows] of table)
    it(`has these rows for ${what}`, () => {
      assert.deepEqual(menu(view).map(written), rows)
    })

  it('shows an action in progress, and takes no second click for it', () => {
    const inProgress = new Set(['daemon', 'copy-diagnostics', 'stop-and-quit'])
    const texts = ['Restarting the daemon…', 'Collecting diagnostics…', 'Stopping the daemon…']
    const busy = menu(connected({}, { inProgress })).filter(({ text }) => texts.includes(text))
    assert.deepEqual(busy.map(written).sort(), texts.sort())
    const starting = menu({ ...unreachable, own: { ...initialOwnState, inProgress } })
    assert.ok(starting.some((row) => written(row) === 'Starting the daemon…'))
  })

  const outcomes: [Partial<EventRecord>, string][] = [
    [{}, '13:04 ✓ /github: done'],
    [{ resultPreview: 'two\nlines' }, '13:04 ✓ /github: two lines'],
    [
      {
        resultPreview: 'well',
        links: [{ target: 'github:a/b#1', what: 'review, 3 comments', url: 'file:///x' }],
      },
      '13:04 ✓ /github: review, 3 comments',
    ],
    [
      { state: 'running', subject: { key: 'a/b#1', title: 'a/b#1 Add retries', kind: 'issue' } },
      '13:04 ● a/b#1 Add retries: running',
    ],
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

  const pull = 'https://github.com/acme/shop/pull/12'
  const about = { key: 'a/b#1', title: 'a/b#1 Add retries', kind: 'pull request', url: pull }
  const linkTo = (url: string) => ({ target: 'github:a/b#1', what: 'comment', url })
  for (const [what, event, url] of [
    ['what it made', { subject: about, links: [linkTo(`${pull}#c`)] }, `${pull}#c`],
    ['what it is about, where nothing was made', { subject: about }, pull],
    ['no file of this machine', { links: [linkTo('file:///home/me/a.md')] }, undefined],
    ['no address that is not safe', { links: [linkTo('javascript:alert(1)')] }, undefined],
    ['no page but its own while it runs', { state: 'running', subject: about }, undefined],
    ['no page but its own when it failed', { state: 'failed', subject: about }, undefined],
  ] as const satisfies readonly (readonly [string, Partial<EventRecord>, string | undefined])[])
    it(`opens ${what}, by a click on an event`, () => {
      const [row] = rowsUnder(connected({ events: [eventWith(event)] }), 'Recent events')
      const own = { do: 'show-event', id: 'evt_1' }
      assert.deepEqual(row?.action, url === undefined ? own : { do: 'open-page', id: 'evt_1', url })
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

  it('says that there are no events yet', () => {
    const textsOf = (view: View) => rowsUnder(view, 'Recent events').map(({ text }) => text.trim())
    const dashes = Array.from({ length: 9 }, () => '—')
    assert.deepEqual(textsOf(connected()), ['No events yet', ...dashes])
    assert.deepEqual(textsOf(unreachable), ['—', ...dashes])
  })

  it('offers each account its next step', () => {
    const providers = [
      provider('github', 'not-logged-in'),
      provider('google', 'ok', 'person@example.com'),
      provider('own', 'expired', 'renewable'),
      provider('other', 'expired'),
      provider('slack', 'needs-login', 'person'),
    ]
    const tokens = [{ provider: 'own', refreshable: true } as TokenSummary]
    const rows = rowsUnder(connected({ providers, tokens }), 'Accounts').map(written)
    assert.deepEqual(rows, [
      '○ GitHub: Log in… = login github',
      '✓ Google · person@example.com: Log out = logout google',
      '✓ Own · renewable: Log out = logout own',
      '! Other: Log in again… = login other',
      '! Slack · person: Log in again… = login slack',
      '—',
    ])
  })

  it('has a row for each account of a provider', () => {
    const providers = [
      provider('github', 'ok', 'ann'),
      provider('github@work', 'ok', 'ann-at-work'),
      provider('own@a', 'needs-login', 'person'),
    ]
    const rows = rowsUnder(connected({ providers }), 'Accounts').map(written)
    assert.deepEqual(rows.slice(0, 3), [
      '✓ GitHub · ann: Log out = logout github',
      '✓ GitHub (work) · ann-at-work: Log out = logout github@work',
      '! Own (a) · person: Log in again… = login own@a',
    ])
    const facts = {
      providers,
      problems: [problem('needs-login', 'the login ended', '', { provider: 'own@a' })],
    }
    assert.deepEqual(findStatusAttention(statusWith(facts)), [
      { text: 'Own (a): log in again', urgent: true, action: { do: 'login', provider: 'own@a' } },
    ])
  })

  it('offers no login where the file permissions are the problem', () => {
    const detail = '/h/tokens/slack.json is open to other users (mode 644)'
    const hint = 'chmod 600 /h/tokens/slack.json'
    const facts = {
      providers: [provider('slack', 'needs-login')],
      problems: [problem('token-file-insecure', detail, hint, { provider: 'slack' })],
    }
    const action = { do: 'explain', title: detail, body: hint }
    const [row] = rowsUnder(connected(facts), 'Accounts')
    assert.deepEqual(row, { text: '! Slack: token file cannot be read…', action })
    assert.deepEqual(findStatusAttention(statusWith(facts)), [
      { text: detail, urgent: true, action },
    ])
  })

  it('shows what a login waits for, and opens the page again', () => {
    const providers = ['github', 'google', 'slack'].map((name) => provider(name, 'not-logged-in'))
    const own = {
      logins: new Map([
        ['google', {}],
        ['github', { userCode: 'WDJB-MJHT' }],
      ]),
      inProgress: new Set(['account google', 'account github', 'account slack']),
    }
    const rows = rowsUnder(connected({ providers }, own), 'Accounts').map(written)
    assert.deepEqual(rows.slice(0, 3), [
      '… GitHub: enter WDJB-MJHT in the browser = login github',
      '… Google: waiting for you in the browser = login google',
      '… Slack: one moment',
    ])
  })

  it('has a row for each account, however many, and no fewer while there is no daemon', () => {
    const names = Array.from({ length: 12 }, (_, index) => `p${index}`)
    const providers = names.map((name) => provider(name, 'not-logged-in'))
    const view = { ...connected({ providers }), accountRows: 12 }
    const rows = rowsUnder(view, 'Accounts').map(written)
    assert.deepEqual(
      rows,
      names.map((name) => `○ ${name.toUpperCase()}: Log in… = login ${name}`),
    )
    assert.deepEqual(shapeOf(menu({ ...unreachable, accountRows: 12 })), shapeOf(menu(view)))
  })

  it('has the schedules where there are some: the last run, the next, and a click for now', () => {
    const schedule = (name: string, more: Partial<ScheduleSummary> = {}): ScheduleSummary => ({
      name,
      agent: 'echo',
      timezone: 'Europe/Berlin',
      nextRuns: ['2026-01-02T15:30:00.000Z'],
      paused: false,
      enabled: true,
      lastRunAt: null,
      deliverTo: [],
      ...more,
    })
    const schedules = [
      schedule('digest', { lastState: 'done' }),
      schedule('weekly', { lastState: 'failed', nextRuns: ['2026-01-05T08:00:00.000Z'] }),
      schedule('held', { paused: true, nextRuns: [] }),
      schedule('asked', { missed: { count: 2, newestAt: '2026-01-02T08:00:00.000Z' } }),
      schedule('once', { nextRuns: [] }),
      schedule('none', { enabled: false, nextRuns: [] }),
      schedule('busy'),
    ]
    const inProgress = new Set(['run-schedule busy'])
    const view = { ...connected({ schedules }, { inProgress }), scheduleRows: 7 }
    assert.deepEqual(rowsUnder(view, 'Schedules').map(written), [
      '✓ digest · 16:30: Run now = run-schedule digest',
      '! weekly · 01-05 09:00: Run now = run-schedule weekly',
      '○ held · paused: Run now = run-schedule held',
      '○ asked · 2 missed: Run now = run-schedule asked',
      '○ once · over: Run now = run-schedule once',
      '○ none · off',
      '○ busy · 16:30: one moment',
    ])
    assert.deepEqual(shapeOf(menu({ ...unreachable, scheduleRows: 7 })), shapeOf(menu(view)))
    assert.deepEqual(rowsUnder(connected(), 'Schedules'), [])
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
    [
      connected({
        today: { runs: 2, inputTokens: 900, outputTokens: 90, cachedTokens: 0, costUsd: 0.42 },
      }),
      'Ready · 0 webhooks · $0.42 today · 127.0.0.1:18789',
    ],
    [
      connected({}, { trouble: 'notifications cannot be shown' }),
      'Ready · 0 webhooks · notifications cannot be shown',
    ],
    [
      connected({ problems: [problem('config-invalid', 'x')], queue: queue(1, 0) }),
      'Needs you · 1 running · 127.0.0.1:18789',
    ],
    [
      connected({ problems: [problem('webhook-unsigned', 'x')] }),
      'Ready · 0 webhooks · 127.0.0.1:18789',
    ],
    [connected({ stopping: true, queue: queue(1, 0) }), 'Stopping · 1 running · 127.0.0.1:18789'],
    [connected({ queue: queue(2, 3) }), 'Working · 2 running · 3 waiting · 127.0.0.1:18789'],
  ]
  for (const [view, text] of cases)
    it(`says ${text}`, () => {
      assert.equal(statusLine(view), text)
    })
})
