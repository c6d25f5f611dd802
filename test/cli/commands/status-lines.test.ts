import assert from 'node:assert/strict'
import { expiryWords, roughly } from '../../../shared/login-words.ts'
import { statusLines } from '../../../cli/commands/status.ts'
import { measureWidth } from '../../../shared/text.ts'
import type { Status, TokenSummary, WebhookSummary } from '../../../shared/api/api.ts'
import { eventWith, statusWith } from '../../support/daemon/fake-daemon.ts'

const now = new Date(2026, 10, 22, 12, 0)
const inMs = (ms: number) => new Date(now.getTime() + ms).toISOString()
const hour = 3_600_000
const plain = (_: unknown, text: string) => text

const token = (more: Partial<TokenSummary> = {}): TokenSummary => ({
  provider: 'github',
  status: 'ok',
  account: { id: '1', name: 'octocat' },
  scopes: ['repo'],
  expiresAt: inMs(41.5 * 60_000),
  refreshable: true,
  obtainedAt: inMs(-hour),
  ...more,
})

describe('expiryWords', () => {
  const cases: readonly (readonly [Partial<TokenSummary>, string])[] = [
    [{}, 'token good for 41 min; login lasts until you log out'],
    [{ loginExpiresAt: inMs(20 * 24 * hour) }, 'token good for 41 min; login lasts until 12 Dec'],
    [
      { loginExpiresAt: inMs(60 * 24 * hour) },
      'token good for 41 min; login lasts until 21 Jan 2027',
    ],
    [{ loginExpiresAt: inMs(2 * hour) }, 'token good for 41 min; login lasts until 14:00'],
    [{ refreshable: false }, 'token good for 41 min, and nothing renews it'],
    [{ expiresAt: null }, 'token does not expire; login lasts until you log out'],
    [
      { status: 'expired', expiresAt: inMs(-5 * hour) },
      'token expired 5 h ago; login lasts until you log out',
    ],
    [{ status: 'needs-login' }, 'a new login is needed'],
    [
      { expiresAt: null, isBot: true },
      'a bot: each token is for one repository, and good for an hour',
    ],
  ]
  for (const [more, words] of cases)
    it(`says "${words}"`, () => assert.equal(expiryWords(token(more), now), words))

  it('says durations in their largest unit', () => {
    assert.deepEqual([1000, 60_000, 119 * 60_000, 3 * hour, 47 * hour, 50 * hour].map(roughly), [
      'less than a minute',
      '1 min',
      '119 min',
      '3 h',
      '47 h',
      '2 days',
    ])
  })
})

const webhook = (more: Partial<WebhookSummary> = {}): WebhookSummary => ({
  path: '/webhook/github',
  url: 'http://127.0.0.1:18789/webhook/github',
  agent: 'reviewer',
  enabled: true,
  scheme: 'github',
  secret: 'set',
  deliverTo: [],
  counts: { accepted: 5, filtered: 0, duplicate: 0, rejected: 0, done: 4, failed: 1, dropped: 0 },
  lastEventAt: inMs(-3.2 * 60_000),
  ...more,
})

describe('cli: the status on one screen', () => {
  const status: Status = statusWith({
    version: '0.0.0',
    startedAt: inMs(-2 * hour),
    publicUrl: 'https://doorward.example.net',
    queue: { running: 1, waiting: 2, bytes: 0 },
    providers: ['github', 'google', 'slack'].map((provider) => ({
      provider,
      clientKnown: false,
      status: 'not-logged-in',
      account: null,
    })),
    tokens: [
      token(),
      token({
        provider: 'google',
        status: 'needs-login',
        account: { id: '2', name: 'somebody.with.a.long.name@example.com' },
      }),
    ],
    webhooks: [webhook(), webhook({ path: '/webhook/open', secret: 'none', lastEventAt: null })],
    events: [
      eventWith({ receivedAt: inMs(-60_000) }),
      eventWith({
        id: 'evt_0123456789abcdef01',
        state: 'failed',
        stage: 'agent',
        detail: 'the program \u001b[31mclaude ended with exit code 1',
        receivedAt: inMs(-hour),
      }),
    ],
    problems: [
      { code: 'x', detail: 'webhook /webhook/open has no secret_env', hint: 'add secret_env' },
    ],
  })
  const lines = (columns: number | undefined) => statusLines(status, now, { columns, paint: plain })

  it('says what runs, who is logged in and for how long, and what failed', () => {
    assert.deepEqual(lines(120), [
      'doorward 0.0.0 at http://127.0.0.1:18789, up for 2h, since 10:00:00',
      'public at https://doorward.example.net',
      'queue 1 running, 2 waiting',
      '',
      'Problems',
      '  ! webhook /webhook/open has no secret_env',
      '    add secret_env',
      '',
      'Logins',
      '  ✓ github octocat                       token good for 41 min; login lasts until you log out',
      '  ✗ google somebody.with.a.long.name@e…  log in again: doorward oauth login google',
      '  not logged in: slack',
      '',
      'Webhooks',
      '  ✓ /webhook/github  runs reviewer, last event 3 min ago (4 done, 1 failed)',
      '  ! /webhook/open    runs reviewer, unsigned, no event yet (4 done, 1 failed)',
      '',
      'Last failures',
      '  ✗ failed 11:00:00 /github at agent: the program claude ended with exit code 1',
      '    doorward events show evt_0123456789abcdef01',
      '',
      'newest event: done at /github, 1 min ago; all events: doorward events',
    ])
  })

  it('calls no address of this machine public, as without a tunnel', () => {
    for (const publicUrl of ['http://127.0.0.1:18790', 'http://[::1]:18790'])
      assert.equal(
        statusLines({ ...status, publicUrl }, now, { columns: 120, paint: plain })[1],
        `webhooks at ${publicUrl}, for a tunnel: no public address is set`,
      )
  })

  it('shows the machines that share the queue', () => {
    const shared = statusWith({
      version: '0.0.0',
      startedAt: inMs(-2 * hour),
      broker: { connected: true, server: 'nats.example:4222', waiting: 3, redelivered: 1 },
      machines: [
        { name: 'edge', role: 'receiver', version: '0.0.0', seenAt: inMs(-2000), agents: [] },
        {
          name: 'tower',
          role: 'worker',
          version: '0.0.1',
          seenAt: inMs(-90_000),
          agents: [
            { name: 'claude', running: 1, free: 1 },
            { name: 'echo', running: 0, free: 4 },
          ],
        },
      ],
    })
    const shown = statusLines(shared, now, { columns: 120, paint: plain })
    assert.deepEqual(shown.slice(2, 7), [
      'broker connected to nats.example:4222, 3 for workers, 1 given to another worker',
      '',
      'Machines',
      '  edge   receiver, seen less than a minute ago',
      '  tower  worker, claude 1 of 2, echo 0 of 4, doorward 0.0.1, seen 1 min ago',
    ])
    const lost = statusWith({ broker: { connected: false, redelivered: 0 } })
    assert.match(
      statusLines(lost, now, { columns: 120, paint: plain }).join(),
      /broker not connected/,
    )
  })

  it('advises a new login only where one mends it', () => {
    const over = ['fake', 'lost', 'torn', 'dir', 'old'].map((provider) =>
      token({ provider, status: 'needs-login', account: null }),
    )
    const problem = (code: string, provider: string, hint: string) => ({
      code,
      detail: `${provider} ${code}`,
      hint,
      about: { provider },
    })
    const problems = [
      problem('token-file-insecure', 'fake', 'chmod 600 /h/tokens/fake.json'),
      problem('needs-login', 'lost', 'doorward oauth login lost'),
      problem('token-file-damaged', 'torn', 'doorward oauth login torn'),
      problem('token-file-insecure', 'dir', 'remove it, then: doorward oauth login dir'),
      // Of an earlier daemon, which does not say what it is about.
      { code: 'token-file-insecure', detail: 'old', hint: 'chmod 600 /h/tokens/old.json' },
    ]
    const shown = statusLines(statusWith({ tokens: over, problems }), now, {
      columns: 120,
      paint: plain,
    })
    assert.deepEqual(
      shown.filter((line) => line.startsWith('  ✗')).map((line) => line.replaceAll(/ +/g, ' ')),
      [
        ' ✗ fake its token file cannot be read: chmod 600 /h/tokens/fake.json',
        ' ✗ lost log in again: doorward oauth login lost',
        ' ✗ torn log in again: doorward oauth login torn',
        ' ✗ dir its token file cannot be read: remove it, then: doorward oauth login dir',
        ' ✗ old log in again: doorward oauth login old',
      ],
    )
  })

  for (const columns of [40, 60, 80])
    it(`fits ${columns} columns, broken between words`, () => {
      const shown = lines(columns)
      // A command stays whole, to be copied.
      for (const line of shown)
        assert.ok(measureWidth(line) <= columns || /^ *doorward /.test(line), line)
      const words = (text: string) => text.split(/\s+/).join(' ')
      assert.equal(words(shown.join(' ')), words(lines(undefined).join(' ')))
    })

  it('says what failed last though much has come since', () => {
    const later = statusWith({
      events: Array.from({ length: 10 }, () => eventWith()),
      failures: [eventWith({ id: 'evt_9', state: 'dropped', detail: 'stopped before it ran' })],
    })
    const text = statusLines(later, now, { columns: 80, paint: plain }).join('\n')
    assert.match(text, /Last failures\n  ✗ dropped .*: stopped before it ran\n.*evt_9\n/)
  })

  it('cuts a path that is wider than the screen', () => {
    const wide = statusWith({ events: [eventWith({ webhook: `/${'long'.repeat(20)}` })] })
    for (const line of statusLines(wide, now, { columns: 40, paint: plain }))
      assert.ok(measureWidth(line) <= 40 || /^ *doorward /.test(line), line)
  })

  it('keeps to one screen when there is much', () => {
    const much = statusWith({
      webhooks: Array.from({ length: 30 }, (_, index) => webhook({ path: `/webhook/${index}` })),
      events: Array.from({ length: 10 }, () => eventWith({ state: 'failed' })),
      problems: Array.from({ length: 30 }, () => ({ code: 'x', detail: 'y', hint: 'z' })),
    })
    const text = statusLines(much, now, { columns: 80, paint: plain })
    assert.match(text.join('\n'), /and 22 more: doorward webhook list/)
    assert.match(text.join('\n'), /and 22 more: doorward doctor/)
    assert.ok(text.length < 45, String(text.length))
  })
})
