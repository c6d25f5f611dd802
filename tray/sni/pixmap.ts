import { inflateSync } from 'node:zlib'

/** A picture for StatusNotifierItem: 4 bytes a pixel, alpha, red, green, blue. */
export type Pixmap = { readonly width: number; readonly height: number; readonly argb: Buffer }

const signature = Buffer.from('89504e470d0a1a0a', 'hex')
const maxSide = 512
/** Bytes of a pixel. */
const pixelSize = 4

/**
 * Decodes a PNG as in `assets/icons`: RGBA, 8 bits a sample, not interlaced (PNG specification, third
 * edition). Throws on others.
 */
export const toPixmap = (png: Buffer): Pixmap => {
  const chunks = parseChunks(png)
  const header = chunks.find(({ type }) => type === 'IHDR')?.data
  if (!header || header.length < 13) throw new Error('the icon is not a PNG')
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)]
  const [depth, colourType, , , interlace] = header.subarray(8)
  if (depth !== 8 || colourType !== 6 || interlace !== 0 || Math.max(width, height) > maxSide)
    throw new Error('the icon is not an RGBA PNG of 8 bits, not interlaced, at most 512 pixels')
  const data = Buffer.concat(chunks.filter(({ type }) => type === 'IDAT').map(({ data }) => data))
  const maxOutputLength = (width * pixelSize + 1) * height
  const argb = unfilter(inflateSync(data, { maxOutputLength }), width * pixelSize, height)
  for (let at = 0; at < argb.length; at += pixelSize) {
    const [red = 0, green = 0, blue = 0, alpha = 0] = argb.subarray(at, at + pixelSize)
    argb.set([alpha, red, green, blue], at)
  }
  return { width, height, argb }
}

/** The picture at half its size, each pixel the mean of four; undefined when a side is odd. */
export const halved = ({ width, height, argb }: Pixmap): Pixmap | undefined => {
  if (width % 2 === 1 || height % 2 === 1) return undefined
  const half = { width: width / 2, height: height / 2, argb: Buffer.alloc(argb.length / 4) }
  for (let y = 0; y < half.height; y += 1) {
    for (let x = 0; x < half.width; x += 1) {
      const from = [0, 1, width, width + 1].map((step) => (2 * y * width + 2 * x + step) * 4)
      const alphas = from.map((at) => argb[at] ?? 0)
      const alpha = alphas.reduce((sum, one) => sum + one, 0)
      const to = (y * half.width + x) * 4
      half.argb[to] = Math.round(alpha / 4)
      // Weighted by alpha, so that invisible pixels do not colour their neighbours.
      for (const part of [1, 2, 3])
        half.argb[to + part] =
          alpha === 0
            ? 0
            : Math.round(
                from.reduce((sum, at, i) => sum + (argb[at + part] ?? 0) * (alphas[i] ?? 0), 0) /
                  alpha,
              )
    }
  }
  return half
}

type Chunk = { readonly type: string; readonly data: Buffer }

const parseChunks = (png: Buffer): Chunk[] => {
  if (!png.subarray(0, 8).equals(signature)) return []
  const chunks: Chunk[] = []
  for (let at = 8; at + 12 <= png.length;) {
    const length = png.readUInt32BE(at)
    const type = png.toString('latin1', at + 4, at + 8)
    chunks.push({ type, data: png.subarray(at + 8, at + 8 + length) })
    at += 12 + length
  }
  return chunks
}

/** Undoes the filter of each line, which begins with the filter's number (section 9). */
const unfilter = (filtered: Buffer, stride: number, height: number): Buffer => {
  if (filtered.length !== (stride + 1) * height) throw new Error('the icon is truncated')
  const out = Buffer.alloc(stride * height)
  for (let y = 0; y < height; y += 1) {
    const filter = filtered[y * (stride + 1)] ?? 0
    for (let x = 0; x < stride; x += 1) {
      const at = y * stride + x
      const left = x >= pixelSize ? (out[at - pixelSize] ?? 0) : 0
      const up = y > 0 ? (out[at - stride] ?? 0) : 0
      const corner = x >= pixelSize && y > 0 ? (out[at - stride - pixelSize] ?? 0) : 0
      const guess = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter]
      if (guess === undefined) throw new Error('the icon has an unknown filter')
      out[at] = (filtered[y * (stride + 1) + 1 + x] ?? 0) + guess
    }
  }
  return out
}

/** The one of the three that is nearest to left + up - corner. */
const paeth = (left: number, up: number, corner: number): number => {
  const toLeft = Math.abs(up - corner)
  const toUp = Math.abs(left - corner)
  const toCorner = Math.abs(left + up - 2 * corner)
  if (toLeft <= toUp && toLeft <= toCorner) return left
  return toUp <= toCorner ? up : corner
}
