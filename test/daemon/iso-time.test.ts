import assert from 'node:assert/strict'
import { isoTime } from '../../daemon/iso-time.ts'

describe('a time as text', () => {
  it('is ISO 8601 in UTC, whichever was asked for before', () => {
    const times = [0, 0, 1, 1_796_000_000_123, 1_796_000_000_123, 0, -1]
    assert.deepEqual(
      times.map(isoTime),
      times.map((ms) => new Date(ms).toISOString()),
    )
  })
})
