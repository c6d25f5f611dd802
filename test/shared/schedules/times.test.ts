import assert from 'node:assert/strict'
import { parseTimes, type When } from '../../../shared/schedules/times.ts'

const iso = (ms: number | undefined) => (ms === undefined ? undefined : new Date(ms).toISOString())
const at = (text: string) => Date.parse(text)

/** The next times after a moment. */
const nextOf = (when: When, after: string, count: number) => {
  const times = parseTimes(when)
  const found: (string | undefined)[] = []
  for (let time = at(after); found.length < count;) {
    const next = times.next(time, at(after))
    found.push(iso(next))
    if (next === undefined) break
    time = next
  }
  return found
}

describe('the times of a schedule', () => {
  it('are those of cron, in its time zone', () => {
    assert.deepEqual(
      nextOf({ cron: '0 9 * * 1-5', timezone: 'Europe/Berlin' }, '2026-11-27T07:59:59Z', 2),
      ['2026-11-27T08:00:00.000Z', '2026-11-30T08:00:00.000Z'],
    )
    assert.deepEqual(
      nextOf({ cron: '@daily', timezone: 'Asia/Kolkata' }, '2026-11-27T00:00:00Z', 1),
      ['2026-11-27T18:30:00.000Z'],
    )
  })

  it('come once where the clock is set, forward and back, in three zones', () => {
    const rows = [
      [
        'Europe/Berlin',
        '30 2 * * *',
        '2027-03-27T12:00:00Z',
        ['2027-03-28T01:00', '2027-03-29T00:30'],
      ],
      [
        'Europe/Berlin',
        '30 2 * * *',
        '2026-10-24T12:00:00Z',
        ['2026-10-25T00:30', '2026-10-26T01:30'],
      ],
      [
        'America/New_York',
        '30 2 * * *',
        '2027-03-13T12:00:00Z',
        ['2027-03-14T07:00', '2027-03-15T06:30'],
      ],
      [
        'America/New_York',
        '30 1 * * *',
        '2026-10-31T12:00:00Z',
        ['2026-11-01T05:30', '2026-11-02T06:30'],
      ],
      [
        'Australia/Lord_Howe',
        '15 2 * * *',
        '2026-10-03T00:00:00Z',
        ['2026-10-03T15:30', '2026-10-04T15:15'],
      ],
    ] as const
    for (const [timezone, cron, after, expected] of rows)
      assert.deepEqual(
        nextOf({ cron, timezone }, after, 2),
        expected.map((text) => `${text}:00.000Z`),
        `${timezone} ${after}`,
      )
  })

  it('come once with at, with seconds or without', () => {
    const when = { at: '2026-12-01T09:00', timezone: 'America/New_York' }
    assert.deepEqual(nextOf(when, '2026-11-01T00:00:00Z', 2), [
      '2026-12-01T14:00:00.000Z',
      undefined,
    ])
    assert.deepEqual(
      nextOf({ at: '2026-12-01T09:00:07', timezone: 'UTC' }, '2026-11-01T00:00:00Z', 1),
      ['2026-12-01T09:00:07.000Z'],
    )
  })

  it('are as far apart as every says, from the last', () => {
    assert.deepEqual(nextOf({ every: 7_200_000 }, '2026-11-27T00:30:00Z', 2), [
      '2026-11-27T02:30:00.000Z',
      '2026-11-27T04:30:00.000Z',
    ])
  })

  it('are counted where many have passed, without a look at each', () => {
    const minutes = parseTimes({ cron: '* * * * *', timezone: 'UTC' })
    const found = minutes.due(at('2025-01-01T00:00:00Z'), at('2026-11-27T10:00:30Z'))
    assert.deepEqual([iso(found?.newest), found?.count], ['2026-11-27T10:00:00.000Z', 1000])
    const hours = parseTimes({ every: 3_600_000 })
    assert.deepEqual(hours.due(at('2026-11-27T00:00:00Z'), at('2026-11-27T02:59:59Z')), {
      newest: at('2026-11-27T02:00:00Z'),
      count: 2,
    })
    assert.equal(hours.due(at('2026-11-27T00:00:00Z'), at('2026-11-27T00:59:59Z')), undefined)
    // The clock was set back.
    assert.equal(hours.due(at('2026-11-27T00:00:00Z'), at('2026-11-26T00:00:00Z')), undefined)
  })

  it('are refused where they never come, or are no times', () => {
    const wrong: readonly When[] = [
      { cron: '31 2 * *' },
      { cron: '0 0 31 2 *' },
      { cron: '* * * * * *' },
      { cron: '61 * * * *' },
      { cron: 'H 9 * * *' },
      { cron: '' },
      { at: 'tomorrow' },
      { at: '2026-02-31T09:00' },
      { at: '2026-12-01T09:00Z' },
      { cron: '0 9 * * *', timezone: 'Europe/Atlantis' },
    ]
    for (const when of wrong)
      assert.throws(() => parseTimes(when), { code: 'config-invalid' }, JSON.stringify(when))
  })
})
