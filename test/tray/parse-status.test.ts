import assert from 'node:assert/strict'
import { eventSchema, statusSchema } from '../../shared/api/api.ts'
import { readEvent, readStatus } from '../../tray/parse-status.ts'
import { eventWith, statusWith } from '../support/daemon/fake-daemon.ts'

const full = statusWith({
  publicUrl: 'https://hooks.example.com',
  queue: { waiting: 1, running: 2, bytes: 3 },
  broker: { connected: true, server: 'nats.example:4222', waiting: 1, redelivered: 2 },
  machines: [
    {
      name: 'tower',
      role: 'worker',
      version: '0.1.0',
      seenAt: '2026-01-02T03:04:05.000Z',
      agents: [{ name: 'echo', running: 1, free: 3 }],
    },
  ],
  providers: [
    {
      provider: 'github',
      clientKnown: true,
      status: 'needs-login',
      account: { id: '7', name: 'ada' },
    },
  ],
  tokens: [
    {
      provider: 'github',
      status: 'expired',
      account: { id: '7', name: 'ada' },
      scopes: ['repo'],
      missingScopes: ['user'],
      expiresAt: '2026-01-02T03:04:05.000Z',
      refreshable: false,
      obtainedAt: '2026-01-02T03:04:05.000Z',
    },
  ],
  webhooks: [
    {
      path: '/a',
      url: 'http://127.0.0.1:1/a',
      agent: 'echo',
      enabled: false,
      scheme: 'github',
      secret: 'unset',
      deliverTo: ['log'],
      counts: {
        accepted: 1,
        filtered: 2,
        duplicate: 3,
        rejected: 4,
        done: 5,
        failed: 6,
        dropped: 7,
      },
      lastEventAt: '2026-01-02T03:04:05.000Z',
    },
  ],
  events: [
    eventWith({
      rule: 'review',
      subject: {
        key: 'acme/shop#12',
        title: 'acme/shop#12 Add retries',
        url: 'https://github.com/acme/shop/pull/12',
        kind: 'pull request',
      },
      state: 'failed',
      stage: 'agent',
      code: 'agent-failed',
      detail: 'exit code 1',
      deliveryId: 'd',
      size: 5,
      target: 'log',
      durations: { queuedMs: 1, agentMs: 2.5, deliverMs: 3 },
      targets: [{ target: 'log', state: 'failed', attempts: 2, code: 'x', detail: 'y' }],
      links: [{ target: 'github:acme/shop#12', what: 'comment', url: 'https://github.com/c' }],
      resultPreview: 'text',
    }),
  ],
  schedules: [
    {
      name: 'morning',
      agent: 'echo',
      timezone: 'Europe/Berlin',
      nextRuns: ['2026-01-03T08:00:00.000Z'],
      paused: false,
      enabled: true,
      lastRunAt: '2026-01-02T08:00:00.000Z',
      lastState: 'done',
      deliverTo: ['log'],
      missed: { count: 2, newestAt: '2026-01-02T08:00:00.000Z' },
    },
  ],
  lastRun: eventWith(),
  problems: [{ code: 'c', detail: 'd', hint: 'h', about: { provider: 'p', file: '.env' } }],
})

/** Every object in it has one more field, as in a later version. */
const later = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(later)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([key, inner]) => [key, later(inner)] as const)
  return Object.fromEntries([...entries, ['laterField', { deep: true }]])
}

describe('parsing what a daemon sends', () => {
  it('keeps everything that our own version sends', () => {
    assert.deepEqual(readStatus(statusSchema.parse(full)), full)
    const [event] = full.events
    assert.deepEqual(readEvent(JSON.stringify(eventSchema.parse(event))), event)
  })

  it('ignores what a later version adds', () => {
    assert.deepEqual(readStatus(later(full)), full)
    assert.deepEqual(readEvent(JSON.stringify(later(full.events[0]))), full.events[0])
  })

  it('reads a machine that an earlier version calls a door as a receiver', () => {
    const [machine] = full.machines ?? []
    const machines = (role: string) =>
      readStatus({ ...full, machines: [{ ...machine, role }] })?.machines
    assert.deepEqual(machines('door'), machines('receiver'))
  })

  it('replaces an unknown value by the one that claims least', () => {
    const [event] = full.events
    const [target] = event?.targets ?? []
    const { stage: _, ...unstaged } = event ?? eventWith()
    assert.deepEqual(
      readEvent(
        JSON.stringify({
          ...event,
          kind: 'timer',
          state: 'paused',
          stage: 'approve',
          targets: [{ ...target, state: 'asked' }],
        }),
      ),
      {
        ...unstaged,
        kind: 'daemon',
        state: 'accepted',
        targets: [{ ...target, state: 'waiting' }],
      },
    )
    const status = readStatus({
      ...full,
      providers: [
        { ...full.providers[0], status: 'limited' },
        { ...full.providers[0], status: 'limited', account: null },
      ],
      tokens: [{ ...full.tokens[0], status: 'limited' }],
      webhooks: [{ ...full.webhooks[0], secret: 'rotating', counts: { done: 9 } }],
    })
    assert.deepEqual(
      status?.providers.map((provider) => provider.status),
      ['ok', 'not-logged-in'],
    )
    assert.equal(status?.tokens[0]?.status, 'ok')
    assert.equal(status?.webhooks[0]?.secret, 'set')
    assert.deepEqual([status?.webhooks[0]?.counts.done, status?.webhooks[0]?.counts.failed], [9, 0])
  })

  it('fills in what an earlier version does not send', () => {
    const { version, queue } = full
    assert.deepEqual(readStatus({ version, queue }), {
      ...statusWith({ queue }),
      startedAt: '',
      url: '',
    })
  })

  it('drops invalid items and keeps the others', () => {
    const times = ['', 'yesterday', '+275760-09-13T00:00:00.001Z', 5, null]
    const events = [...times.map((receivedAt) => ({ ...eventWith(), receivedAt })), null, 'x', []]
    const status = readStatus({ ...full, events: [...events, eventWith()], webhooks: 'none' })
    assert.deepEqual(status?.events, [eventWith()])
    assert.deepEqual(status?.webhooks, [])
  })

  it('bounds the length of texts and lists', () => {
    const status = readStatus({
      ...full,
      events: Array.from({ length: 5000 }, () => eventWith({ detail: 'x'.repeat(10_000) })),
    })
    assert.equal(status?.events.length, 100)
    assert.equal(status?.events[0]?.detail?.length, 4000)
  })

  it('accepts nothing else as a status or an event', () => {
    for (const value of [
      undefined,
      null,
      'x',
      7,
      [],
      {},
      { version: 3 },
      { version: '1' },
      { version: '1', queue: 5 },
    ])
      assert.equal(readStatus(value), undefined)
    for (const data of ['', 'x', 'null', '[]', '{}', '{"id":5}'])
      assert.equal(readEvent(data), undefined)
  })
})
