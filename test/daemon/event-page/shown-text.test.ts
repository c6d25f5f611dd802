import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import { formatLocalTime } from '../../../shared/text.ts'
import { shownLine, shownText } from '../../../daemon/event-page/page.ts'

describe('text on the page of an event', () => {
  it('is without control and direction characters, and says how many', () => {
    assert.deepEqual(shownText('a\r\nb\u001b[31m\u202ec\u0000'), {
      text: 'a\nbc',
      left: 0,
      hidden: 7,
    })
    assert.deepEqual(shownText('שלום\tb'), { text: 'שלום\tb', left: 0, hidden: 0 })
  })

  it('is cut at 100,000 characters, never through one', () => {
    const { text, left } = shownText('x'.repeat(99_999) + '😀'.repeat(10))
    assert.deepEqual([text.length, left, text.at(-1)], [99_999, 20, 'x'])
    assert.equal(shownLine('y'.repeat(299) + '😀'.repeat(10)), `${'y'.repeat(299)}…`)
    assert.equal(shownLine(' a\n b '), 'a b')
  })

  it('names a moment with its offset', () => {
    const text = formatLocalTime('2025-11-20T12:04:05.678Z')
    assert.match(text, /^2025-11-(19|20|21) \d\d:\d\d:05 [+-]\d\d:\d\d$/)
    assert.equal(
      new Date(text.replace(' ', 'T').replace(' ', '')).toISOString(),
      '2025-11-20T12:04:05.000Z',
    )
  })
})
