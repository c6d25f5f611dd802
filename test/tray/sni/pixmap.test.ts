import assert from 'node:assert/strict'
import { deflateSync } from 'node:zlib'
import { halved, toPixmap } from '../../../tray/sni/pixmap.ts'

const chunk = (type: string, data: Buffer): Buffer => {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(data.length)
  return Buffer.concat([length, Buffer.from(type), data, Buffer.alloc(4)])
}

type Parts = { width: number; height: number; colour?: number; depth?: number; interlaced?: number }

const pngOf = (
  { width, height, colour = 6, depth = 8, interlaced = 0 }: Parts,
  lines: number[][],
): Buffer => {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([depth, colour, 0, 0, interlaced], 8)
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(Buffer.from(lines.flat()))),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

describe('a picture for the panel', () => {
  it('has alpha first, then red, green and blue', () => {
    const png = pngOf({ width: 1, height: 1 }, [[0, 1, 2, 3, 4]])
    assert.deepEqual(toPixmap(png), { width: 1, height: 1, argb: Buffer.from([4, 1, 2, 3]) })
  })

  it('is read through each filter of PNG', () => {
    const first = [10, 20, 30, 255, 40, 50, 60, 128]
    const second = [200, 100, 50, 0, 7, 9, 11, 13]
    // The second line, encoded by each filter of the specification (section 9).
    const filtered: readonly [number, number[]][] = [
      [0, second],
      [1, [200, 100, 50, 0, 63, 165, 217, 13]],
      [2, [190, 80, 20, 1, 223, 215, 207, 141]],
      [3, [195, 90, 35, 129, 143, 190, 212, 205]],
      [4, [190, 80, 20, 1, 63, 165, 207, 13]],
    ]
    for (const [filter, line] of filtered) {
      const png = pngOf({ width: 2, height: 2 }, [
        [0, ...first],
        [filter, ...line],
      ])
      const expected = [255, 10, 20, 30, 128, 40, 50, 60, 0, 200, 100, 50, 13, 7, 9, 11]
      assert.deepEqual([...toPixmap(png).argb], expected, `filter ${filter}`)
    }
  })

  it('is refused when it is not a PNG, truncated, too large or of another kind', () => {
    const whole = pngOf({ width: 1, height: 1 }, [[0, 1, 2, 3, 4]])
    const refused: readonly Buffer[] = [
      Buffer.alloc(0),
      Buffer.from('GIF89a'),
      whole.subarray(0, 40),
      pngOf({ width: 2, height: 2 }, [[0, 1, 2, 3, 4]]),
      pngOf({ width: 1, height: 1 }, [[9, 1, 2, 3, 4]]),
      pngOf({ width: 1, height: 1, depth: 16 }, [[0, 1, 2, 3, 4]]),
      pngOf({ width: 1, height: 1, interlaced: 1 }, [[0, 1, 2, 3, 4]]),
      pngOf({ width: 1, height: 1, colour: 2 }, [[0, 1, 2, 3]]),
      pngOf({ width: 60_000, height: 60_000 }, [[0]]),
      pngOf({ width: 1, height: 1 }, [Array.from({ length: 100_000 }, () => 0)]),
    ]
    for (const png of refused) assert.throws(() => toPixmap(png))
  })

  it('is halved by the mean of the visible pixels', () => {
    const [red, clear] = [
      [255, 200, 0, 0],
      [0, 0, 255, 0],
    ]
    const argb = Buffer.from([red, red, clear, clear].flat())
    assert.deepEqual(halved({ width: 2, height: 2, argb }), {
      width: 1,
      height: 1,
      argb: Buffer.from([128, 200, 0, 0]),
    })
    assert.equal(halved({ width: 1, height: 1, argb: Buffer.alloc(4) }), undefined)
  })
})
