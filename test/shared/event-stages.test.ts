import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import { toBars, toStages, describeTargetState } from '../../shared/event-stages.ts'
import type { EventDetail } from '../../shared/api/api.ts'

const event = (changes: Partial<EventDetail>): EventDetail => ({
  id: 'evt_1',
  kind: 'webhook',
  webhook: '/hook',
  receivedAt: '2025-11-20T12:04:05.000Z',
  state: 'done',
  agent: 'echo',
  attempts: 1,
  durations: {},
  targets: [{ target: 'log', state: 'waiting', attempts: 0 }],
  ...changes,
})
const rows = (changes: Partial<EventDetail>): string[] =>
  toStages(event(changes)).map(({ state, ms, note }) =>
    [state, ms, note].filter((word) => word !== undefined).join(' '),
  )

describe('stages of an event', () => {
  const table: readonly (readonly [string, Partial<EventDetail>, string[]])[] = [
    [
      'waits',
      { state: 'queued' },
      ['done passed', 'now waiting', 'ahead not yet', 'ahead not yet'],
    ],
    [
      'runs',
      { state: 'running', durations: { queuedMs: 5 } },
      ['done passed', 'done 5', 'now running', 'ahead not yet'],
    ],
    [
      'is delivered',
      { state: 'delivering', durations: { queuedMs: 5, agentMs: 7 } },
      ['done passed', 'done 5', 'done 7', 'now running'],
    ],
    [
      'is done without a target',
      { targets: [], durations: { queuedMs: 5, agentMs: 7, deliverMs: 0 } },
      ['done passed', 'done 5', 'done 7', 'none no target'],
    ],
    [
      'failed at its agent',
      { state: 'failed', stage: 'agent', durations: { queuedMs: 5, agentMs: 7 } },
      ['done passed', 'done 5', 'failed 7', 'none not reached'],
    ],
    [
      'was dropped before its turn',
      { state: 'dropped', stage: 'queue' },
      ['done passed', 'failed dropped', 'none not reached', 'none not reached'],
    ],
    [
      'was refused for its signature',
      { state: 'rejected', stage: 'verify', code: 'signature-invalid', targets: [] },
      ['failed refused at signature', 'none not reached', 'none not reached', 'none not reached'],
    ],
    [
      'was refused for another reason',
      { state: 'rejected', stage: 'verify', code: 'rate-limited', targets: [] },
      ['failed refused at verify', 'none not reached', 'none not reached', 'none not reached'],
    ],
    [
      'found the queue full',
      { state: 'rejected', stage: 'queue', targets: [] },
      ['done passed', 'failed rejected', 'none not reached', 'none not reached'],
    ],
    [
      'was filtered',
      { state: 'filtered', targets: [] },
      ['done passed over', 'none not reached', 'none not reached', 'none not reached'],
    ],
  ]
  for (const [what, changes, expected] of table)
    it(`are known of one that ${what}`, () => assert.deepEqual(rows(changes), expected))

  it('have bars one after another, in proportion to their times', () => {
    const durations = { queuedMs: 100, agentMs: 700, deliverMs: 200 }
    const bars = toBars(toStages(event({ durations })))
    assert.deepEqual(
      bars.map(({ from, length }) => [from, length]),
      [
        [0, 0],
        [0, 10],
        [10, 70],
        [80, 20],
      ],
    )
  })

  it('have bars that can be seen and stay within the picture, whatever the times', () => {
    for (const durations of [
      { queuedMs: 0, agentMs: 0, deliverMs: 0 },
      { queuedMs: 0, agentMs: 600_000, deliverMs: 0 },
    ])
      for (const state of ['done', 'running'] as const)
        for (const { from, length, row } of toBars(toStages(event({ state, durations })))) {
          if (row.ms === undefined && row.state !== 'now') continue
          assert.ok(
            length > 0 && from >= 0 && from + length <= 100.01,
            JSON.stringify({ from, length }),
          )
        }
  })
})

describe('the word for a target', () => {
  const waiting = { target: 'log', state: 'waiting', attempts: 0 } as const

  it('is that nothing waits once the event is over', () => {
    const words = (
      ['accepted', 'queued', 'running', 'delivering', 'failed', 'dropped'] as const
    ).map((state) => describeTargetState({ state }, waiting))
    assert.deepEqual(words, [...Array<string>(4).fill('waiting'), 'not reached', 'not reached'])
    assert.equal(describeTargetState({ state: 'failed' }, { ...waiting, state: 'done' }), 'done')
  })
})
