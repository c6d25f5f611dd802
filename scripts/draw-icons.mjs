// Draws assets/icons/icons.svg into assets/icons/<id>.png (22 x 22) and <id>@2x.png (44 x 44):
//   node scripts/draw-icons.mjs
// The drawing uses only <circle>, <polygon> and class="cut", which takes away what is below, so that
// this page of code is enough and the pictures are the same on every machine.
import { readFileSync, writeFileSync } from 'node:fs'
import { crc32 as zlibCrc32, deflateSync } from 'node:zlib'

const folder = new URL('../assets/icons/', import.meta.url)
const side = 22
const samples = 8

const attributesOf = (tag) =>
  Object.fromEntries(
    [...tag.matchAll(/([\w-]+)="([^"]*)"/g)].map(([, name, value]) => [name, value]),
  )

const shapeOf = ([, kind, text]) => {
  const attributes = attributesOf(text)
  const cut = attributes.class === 'cut'
  const color = cut
    ? undefined
    : attributes.fill.match(/[0-9a-f]{2}/gi).map((hex) => parseInt(hex, 16))
  if (kind === 'circle') {
    const [cx, cy, r] = [attributes.cx, attributes.cy, attributes.r].map(Number)
    return { color, covers: (x, y) => (x - cx) ** 2 + (y - cy) ** 2 <= r ** 2 }
  }
  const points = attributes.points
    .trim()
    .split(/\s+/)
    .map((point) => point.split(',').map(Number))
  return { color, covers: (x, y) => isInside(points, x, y) }
}

const isInside = (points, x, y) => {
  let inside = false
  points.forEach(([ax, ay], index) => {
    const [bx, by] = points[(index + 1) % points.length]
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside
  })
  return inside
}

/** RGBA rows of `scale` pixels per unit; every pixel is the mean of 8 x 8 points in it. */
const draw = (shapes, scale) => {
  const size = side * scale
  const pixels = Buffer.alloc(size * (size * 4 + 1))
  for (let row = 0; row < size; row += 1)
    for (let column = 0; column < size; column += 1) {
      const sum = [0, 0, 0]
      let hits = 0
      for (let sample = 0; sample < samples ** 2; sample += 1) {
        const x = (column + ((sample % samples) + 0.5) / samples) / scale
        const y = (row + (Math.floor(sample / samples) + 0.5) / samples) / scale
        const color = shapes.findLast(({ covers }) => covers(x, y))?.color
        if (!color) continue
        hits += 1
        color.forEach((value, index) => (sum[index] += value))
      }
      const at = row * (size * 4 + 1) + 1 + column * 4
      sum.forEach(
        (value, index) => (pixels[at + index] = hits === 0 ? 0 : Math.round(value / hits)),
      )
      pixels[at + 3] = Math.round((hits / samples ** 2) * 255)
    }
  return pixels
}

const crcOf = (bytes) => {
  if (zlibCrc32) return zlibCrc32(bytes)
  let crc = ~0
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0)
  }
  return ~crc >>> 0
}

const chunk = (type, data) => {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const result = Buffer.alloc(body.length + 8)
  result.writeUInt32BE(data.length, 0)
  body.copy(result, 4)
  result.writeUInt32BE(crcOf(body), body.length + 4)
  return result
}

const png = (pixels, size) => {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(size, 0)
  header.writeUInt32BE(size, 4)
  header.set([8, 6, 0, 0, 0], 8)
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(pixels, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

const svg = readFileSync(new URL('icons.svg', folder), 'utf8')
for (const [, id, body] of svg.matchAll(/<g id="([\w-]+)"[^>]*>(.*?)<\/g>/gs)) {
  const shapes = [...body.matchAll(/<(circle|polygon)\s([^>]*)\/>/g)].map(shapeOf)
  for (const [suffix, scale] of [
    ['', 1],
    ['@2x', 2],
  ])
    writeFileSync(new URL(`${id}${suffix}.png`, folder), png(draw(shapes, scale), side * scale))
}
