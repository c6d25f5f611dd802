import assert from 'node:assert/strict'
import { cutText, cutTo } from '../../../daemon/agents/answer.ts'

describe('cutTo', () => {
  it('leaves a text that fits as it is, to the byte', () => {
    for (const text of ['', 'abc', '€', '\ufeffabc'])
      assert.deepEqual(cutTo(text, Buffer.byteLength(text)), { text, cut: false })
  })

  it('cuts by bytes of UTF-8, never through a character, and adds a mark', () => {
    const mark = (limit: number) => `\n[cut: longer than ${limit} bytes]`
    assert.deepEqual(cutTo('abcd', 3), { text: `abc${mark(3)}`, cut: true })
    assert.equal(cutTo('a€b', 3).text, `a${mark(3)}`)
    assert.equal(cutTo('a€b', 4).text, `a€${mark(4)}`)
    assert.equal(cutTo('😀😀', 7).text, `😀${mark(7)}`)
  })
})

describe('cutText', () => {
  it('replaces invalid UTF-8 and does not throw', () => {
    assert.match(cutText(Buffer.from([0x61, 0xff, 0x62]), 3), /^a\ufffdb\n\[cut/)
  })
})
