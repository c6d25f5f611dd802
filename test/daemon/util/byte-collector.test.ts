import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { createByteCollector } from '../../../daemon/util/byte-budget.ts'

describe('a byte collector', () => {
  it('gives back what came, in order, whatever the sizes of the pieces', () => {
    const all = randomBytes(300_000)
    const collector = createByteCollector()
    const sizes = [0, 1, 7, 1023, 1024, 1025, 70_000, 3, 200_000]
    let from = 0
    for (const size of [...sizes, all.length]) {
      collector.add(all.subarray(from, from + size))
      from = Math.min(from + size, all.length)
      assert.equal(collector.size(), from)
    }
    assert.deepEqual(collector.bytes(), all)
    assert.equal(createByteCollector().bytes().length, 0)
  })

  it('holds no more than twice what came, and just what was announced', () => {
    const rooms = (expected?: number, pieces = 9) => {
      const collector = createByteCollector(expected)
      return Array.from({ length: pieces }, () => {
        collector.add(Buffer.alloc(1000))
        const { length, buffer } = collector.bytes()
        assert.ok(buffer.byteLength <= 2 * length + 1024, `${buffer.byteLength} for ${length}`)
        return buffer.byteLength
      })
    }
    rooms(undefined, 300)
    rooms(Number.NaN)
    // Less came than was said, or more.
    rooms(1_000_000)
    rooms(5000)
    assert.equal(rooms(9000).at(-1), 9000)
  })

  it('copies, so that no piece stays in memory', () => {
    const collector = createByteCollector()
    const piece = Buffer.from('one')
    collector.add(piece)
    piece.fill(0)
    assert.equal(collector.bytes().toString(), 'one')
  })
})
