import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import { formatLocalTime } from '../../shared/text.ts'
import { toShownLine, toShownText } from '../../daemon/page/markup.ts'

describe('text on the page', () => {
  it('has no control and direction characters, and counts them', () => {
    assert.deepEqual(toShownText('a\r\nb\u001b[31m\u202ec\u0000'), {
      text: 'a\nbc',
      cut: 0,
      hidden: 7,
    })
    assert.deepEqual(toShownText('שלום\tb'), { text: 'שלום\tb', cut: 0, hidden: 0 })
  })

  it('is cut at 100,000 characters, never through one', () => {
    const { text, cut } = toShownText('x'.repeat(99_999) + '😀'.repeat(10))
    assert.deepEqual([text.length, cut, text.at(-1)], [99_999, 20, 'x'])
    assert.equal(toShownLine('y'.repeat(299) + '😀'.repeat(10)), `${'y'.repeat(299)}…`)
    assert.equal(toShownLine(' a\n b '), 'a b')
  })

  it('shows a time with its offset', () => {
    const text = formatLocalTime('2025-11-20T12:04:05.678Z')
    assert.match(text, /^2025-11-(19|20|21) \d\d:\d\d:05 [+-]\d\d:\d\d$/)
    assert.equal(
      new Date(text.replace(' ', 'T').replace(' ', '')).toISOString(),
      '2025-11-20T12:04:05.000Z',
    )
  })
})
