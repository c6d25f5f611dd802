import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync, readdirSync } from 'node:fs'
import { inflateSync } from 'node:zlib'
import { packageFolder } from '../../../shared/version.ts'
import type { IconName } from '../../../tray/icon/icon.ts'

const names: Readonly<Record<IconName, true>> = {
  idle: true,
  running: true,
  'needs-you': true,
  unreachable: true,
}
const icons = Object.keys(names)

describe('the icons', () => {
  it('are drawn from the current icons.svg', () => {
    const drawn = JSON.parse(read('drawn.json').toString()) as {
      from: string
      pictures: Record<string, string>
    }
    const hint = 'run: node scripts/draw-icons.mjs'
    assert.equal(hashOf(read('icons.svg')), drawn.from, hint)
    const pictures = readdirSync(folder).filter((name) => /\.(png|ico)$/.test(name))
    assert.deepEqual(
      Object.fromEntries(pictures.map((name) => [name, hashOf(read(name))])),
      drawn.pictures,
      hint,
    )
  })

  it('exist for every state in the sizes that desktops use', () => {
    for (const icon of icons) {
      for (const [name, px] of Object.entries({
        [`${icon}.png`]: 22,
        [`${icon}@2x.png`]: 44,
        [`${icon}-24.png`]: 24,
        [`${icon}-48.png`]: 48,
        [`${icon}Template.png`]: 18,
        [`${icon}Template@2x.png`]: 36,
      }))
        assert.deepEqual(sizeOf(read(name)), [px, px], name)
      assert.deepEqual(
        partsOf(read(`${icon}.ico`)).map(({ px, png }) => [px, ...sizeOf(png)]),
        [16, 24, 32, 48].map((px) => [px, px, px]),
        `${icon}.ico`,
      )
    }
  })

  it('are entirely black as template images', () => {
    for (const icon of icons)
      for (const name of [`${icon}Template.png`, `${icon}Template@2x.png`]) {
        const pixels = pixelsOf(read(name))
        assert.ok(
          pixels.every(([red, green, blue]) => red + green + blue === 0),
          name,
        )
        assert.ok(pixels.some(([, , , alpha]) => alpha === 255) && pixels[0]?.[3] === 0, name)
      }
  })

  it('differ from each other in shape alone', () => {
    for (const [one, two] of pairsOf(icons)) {
      const [a, b] = [one, two].map((icon) => pixelsOf(read(`${icon}Template.png`)))
      const different = a?.filter(([, , , alpha], at) => alpha > 127 !== (b?.[at]?.[3] ?? 0) > 127)
      assert.ok((different?.length ?? 0) >= 18 * 18 * 0.2, `${one} and ${two} look alike`)
    }
  })

  it('stand out from their white rim', () => {
    const inks = [
      ...read('icons.svg')
        .toString()
        .matchAll(/ color="#(\w{6})"/g),
    ]
    assert.equal(new Set(inks.map(([, hex]) => hex)).size, icons.length + 1)
    for (const [, hex = ''] of inks)
      // WCAG 2.2, success criterion 1.4.11: 3 to 1 for graphics.
      assert.ok(1.05 / (luminanceOf(Buffer.from(hex, 'hex')) + 0.05) >= 3, `#${hex} is too light`)
  })
})

const folder = new URL('assets/icons/', packageFolder)
const read = (name: string): Buffer => readFileSync(new URL(name, folder))
const hashOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

const pairsOf = (all: readonly string[]): [string, string][] =>
  all.flatMap((one, index) => all.slice(index + 1).map((two): [string, string] => [one, two]))

const sizeOf = (png: Buffer): [number, number] => {
  assert.equal(png.toString('latin1', 0, 8), '\x89PNG\r\n\x1a\n')
  return [png.readUInt32BE(16), png.readUInt32BE(20)]
}

/** The pictures in a Windows icon file, with the size that its directory gives for each. */
const partsOf = (ico: Buffer): { readonly px: number; readonly png: Buffer }[] => {
  assert.deepEqual([ico.readUInt16LE(0), ico.readUInt16LE(2)], [0, 1])
  return Array.from({ length: ico.readUInt16LE(4) }, (_, index) => {
    const at = 6 + 16 * index
    const offset = ico.readUInt32LE(at + 12)
    return { px: ico[at] ?? 0, png: ico.subarray(offset, offset + ico.readUInt32LE(at + 8)) }
  })
}

type Pixel = readonly [red: number, green: number, blue: number, alpha: number]

/** The pixels of a PNG file of 8-bit RGBA without interlacing, which is what rsvg-convert writes. */
const pixelsOf = (png: Buffer): Pixel[] => {
  const [width, height] = sizeOf(png)
  assert.deepEqual([...png.subarray(24, 29)], [8, 6, 0, 0, 0])
  const data: Buffer[] = []
  for (let at = 8; at < png.length; at += png.readUInt32BE(at) + 12)
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT')
      data.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)))
  const lines = inflateSync(Buffer.concat(data))
  const stride = width * 4
  let above = Buffer.alloc(stride)
  const pixels: Pixel[] = []
  for (let row = 0; row < height; row += 1) {
    const filter = lines[row * (stride + 1)] ?? 0
    const line = Buffer.from(lines.subarray(row * (stride + 1) + 1, (row + 1) * (stride + 1)))
    for (let at = 0; at < stride; at += 1)
      line[at] = (line[at] ?? 0) + predicted(filter, line[at - 4] ?? 0, above, at)
    for (let at = 0; at < stride; at += 4) pixels.push([...line.subarray(at, at + 4)] as never)
    above = line
  }
  return pixels
}

/** What is taken away from a byte by the filters of PNG (specification, section 9.2). */
const predicted = (filter: number, left: number, line: Buffer, at: number): number => {
  const above = line[at] ?? 0
  const corner = line[at - 4] ?? 0
  if (filter === 1) return left
  if (filter === 2) return above
  if (filter === 3) return Math.floor((left + above) / 2)
  if (filter !== 4) return 0
  const [byLeft, byAbove, byCorner] = [left, above, corner].map((value) =>
    Math.abs(left + above - corner - value),
  ) as [number, number, number]
  if (byLeft <= byAbove && byLeft <= byCorner) return left
  return byAbove <= byCorner ? above : corner
}

/** WCAG's relative luminance of a colour of three bytes. */
const luminanceOf = (color: Buffer): number =>
  [0.2126, 0.7152, 0.0722].reduce((sum, weight, index) => {
    const part = (color[index] ?? 0) / 255
    return sum + weight * (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
  }, 0)
