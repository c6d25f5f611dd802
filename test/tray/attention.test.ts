import assert from 'node:assert/strict'
import type { EventRecord, StatusProblem, TokenSummary } from '../../shared/api/api.ts'
import type { Action } from '../../tray/view.ts'
import { findStatusAttention, findAttention } from '../../tray/attention.ts'
import { eventWith, statusWith } from '../support/daemon/fake-daemon.ts'
import { broken, problem, provider, unreachable } from '../support/desktop/views.ts'

describe('what needs the user', () => {
  it('asks only about the newest run that has finished', () => {
    const failed = eventWith({ state: 'failed', receivedAt: '2026-01-02T10:00:00Z' })
    const well = eventWith({ receivedAt: '2026-01-02T11:00:00Z' })
    const going = eventWith({ state: 'running', receivedAt: '2026-01-02T12:00:00Z' })
    const refused = eventWith({ state: 'rejected', receivedAt: '2026-01-02T12:30:00Z' })
    assert.deepEqual(
      findStatusAttention(statusWith({ events: [refused, going, well, failed] })),
      [],
    )
    assert.equal(findStatusAttention(statusWith({ events: [refused, going, failed] })).length, 1)
  })

  it('asks about the last run even when it is not among the newest events', () => {
    const refused = eventWith({ id: 'evt_2', state: 'rejected' })
    const events = Array.from({ length: 10 }, () => refused)
    const textOf = (lastRun: EventRecord) =>
      findStatusAttention(statusWith({ events, lastRun })).map(({ text, action }) => [text, action])
    assert.deepEqual(textOf(eventWith({ state: 'failed', code: 'agent-timeout' })), [
      ['Last run failed: /github, agent-timeout', { do: 'show-event', id: 'evt_1' }],
    ])
    assert.deepEqual(textOf(eventWith()), [])
    assert.deepEqual(textOf(eventWith({ state: 'failed', code: 'event-cancelled' })), [])
    // As a state is read that only a later version has.
    assert.deepEqual(textOf(eventWith({ state: 'accepted' })), [])
  })

  it('names each answer that waits for an approval', () => {
    const waiting = eventWith({ id: 'evt_3', state: 'waiting' })
    assert.deepEqual(findStatusAttention(statusWith({ approvals: [waiting] })), [
      {
        text: 'Waits for you: /github',
        urgent: true,
        action: { do: 'show-event', id: 'evt_3' },
      },
    ])
  })

  it('does not ask for a login that refreshes automatically', () => {
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
      findStatusAttention(statusWith({ providers, tokens: [{ ...token, refreshable }] })).length
    assert.equal(needs(true), 0)
    assert.equal(needs(false), 1)
  })

  it('names the most pressing first', () => {
    const needs = findStatusAttention(
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

  it('asks once for a login that the daemon names twice', () => {
    const needs = findStatusAttention(
      statusWith({
        problems: [
          problem('needs-login', 'the login to slack has ended', '', { provider: 'slack' }),
          problem('needs-login', 'the login to gone has ended', '', { provider: 'gone' }),
        ],
        providers: [provider('slack', 'needs-login')],
      }),
    )
    assert.deepEqual(
      needs.map(({ text, action }) => [text, action]),
      [
        ['The login to gone has ended', { do: 'login', provider: 'gone' }],
        ['Slack: log in again', { do: 'login', provider: 'slack' }],
      ],
    )
  })

  const fixes: [string, string, string, Action, StatusProblem['about']?][] = [
    [
      'config-invalid',
      'config/agents.yaml:3:1 agents: not a map',
      'doorward config check',
      { do: 'open-configuration', file: 'config/agents.yaml' },
      { file: 'config/agents.yaml' },
    ],
    [
      'config-invalid',
      '/home/ada/.doorward/.env is open to other users (mode 644)',
      'chmod 600 /home/ada/.doorward/.env',
      {
        do: 'explain',
        title: '/home/ada/.doorward/.env is open to other users (mode 644)',
        body: 'chmod 600 /home/ada/.doorward/.env',
      },
    ],
    [
      'secret-unset',
      'webhook /x: X is unset',
      'set X in .env',
      { do: 'open-configuration', file: '.env' },
    ],
    [
      'webhook-unsigned',
      'webhook /config/agents.yaml has no secret_env',
      'add it',
      { do: 'open-configuration', file: 'config/webhooks.yaml' },
    ],
    ['restart-needed', 'server.port is 1 now', 'doorward daemon restart', { do: 'restart-daemon' }],
    [
      'token-file-damaged',
      'the token file of own could not be read',
      'doorward oauth login own',
      { do: 'login', provider: 'own' },
      { provider: 'own' },
    ],
    [
      'deliveries-unread',
      'it cannot be read',
      'doorward oauth login github --scopes a,b',
      {
        do: 'explain',
        title: 'it cannot be read',
        body: 'doorward oauth login github --scopes a,b',
      },
      { webhook: '/github' },
    ],
    [
      'agent-program-missing',
      'claude is not installed',
      'install it with: x',
      { do: 'explain', title: 'claude is not installed', body: 'install it with: x' },
    ],
  ]
  for (const [code, detail, hint, action, about] of fixes)
    it(`fixes ${code} by ${Object.values(action).slice(0, 2).join(' ')}`, () => {
      const problems = [problem(code, detail, hint, about)]
      const [need] = findStatusAttention(statusWith({ problems }))
      assert.deepEqual(need?.action, action)
    })

  it('shows a problem of an earlier daemon, which does not say what it is about', () => {
    const detail = '/home/ada/.doorward/config/agents.yaml:3:1 agents: not a map'
    const [need] = findStatusAttention(
      statusWith({ problems: [problem('config-invalid', detail, 'fix it')] }),
    )
    assert.equal(need?.text, detail)
    assert.deepEqual(need.action, { do: 'explain', title: detail, body: 'fix it' })
  })

  it('opens the file that keeps the daemon from starting', () => {
    assert.deepEqual(findAttention(broken), [
      {
        text: 'Fix config/agents.yaml, then start the daemon',
        urgent: true,
        action: { do: 'open-configuration', file: 'config/agents.yaml' },
      },
    ])
    assert.deepEqual(findAttention(unreachable), [])
  })
})
