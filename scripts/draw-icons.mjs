// Draws each icon of assets/icons/icons.svg in the formats that desktops need, with `rsvg-convert` (Debian:
// librsvg2-bin), and records the sources in drawn.json:
//   node scripts/draw-icons.mjs
// The results are committed, so the program is needed only to change the drawing.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('../assets/icons/', import.meta.url))
const source = join(folder, 'icons.svg')
const svg = readFileSync(source, 'utf8')
const ids = [...svg.matchAll(/<g id="([\w-]+)"/g)].map(([, id]) => id)
const scratch = mkdtempSync(join(tmpdir(), 'doorward-icons-'))

const inColor = ''
/** macOS uses only the opacity and applies the colour of the menu bar. */
const asTemplate = '* { color: #000 !important } .rim { display: none !important }'

/** Makes the PNG of an icon. 24 and 48 pixels are 22 and 44 with a margin, which stays sharp. */
const draw = (id, px, style) => {
  const stylesheet = join(scratch, 'style.css')
  const only = `g { display: none !important } #${id} { display: inline !important }`
  writeFileSync(stylesheet, `${only} ${style}`)
  const margin = px % 24 === 0 ? px / 24 : 0
  const art = ['-w', px - 2 * margin, '-h', px - 2 * margin]
  const page = [`--page-width=${px}`, `--page-height=${px}`, `--left=${margin}`, `--top=${margin}`]
  return execFileSync('rsvg-convert', ['-s', stylesheet, ...art, ...page, source].map(String))
}

/** Makes a Windows icon of PNG files, which Windows reads since Vista, by their sizes. */
const icoOf = (pictures) => {
  const header = Buffer.alloc(6 + 16 * pictures.length)
  header.writeUInt16LE(1, 2)
  header.writeUInt16LE(pictures.length, 4)
  let offset = header.length
  pictures.forEach(({ px, png }, index) => {
    const at = 6 + 16 * index
    header.set([px, px, 0, 0], at)
    header.writeUInt16LE(1, at + 4)
    header.writeUInt16LE(32, at + 6)
    header.writeUInt32LE(png.length, at + 8)
    header.writeUInt32LE(offset, at + 12)
    offset += png.length
  })
  return Buffer.concat([header, ...pictures.map(({ png }) => png)])
}

const picturesOf = (id) => [
  [`${id}.png`, draw(id, 22, inColor)],
  [`${id}@2x.png`, draw(id, 44, inColor)],
  [`${id}-24.png`, draw(id, 24, inColor)],
  [`${id}-48.png`, draw(id, 48, inColor)],
  [`${id}Template.png`, draw(id, 18, asTemplate)],
  [`${id}Template@2x.png`, draw(id, 36, asTemplate)],
  [`${id}.ico`, icoOf([16, 24, 32, 48].map((px) => ({ px, png: draw(id, px, inColor) })))],
]

const hashOf = (bytes) => createHash('sha256').update(bytes).digest('hex')

try {
  const pictures = ids.flatMap(picturesOf)
  for (const name of readdirSync(folder)) if (/\.(png|ico)$/.test(name)) rmSync(join(folder, name))
  for (const [name, bytes] of pictures) writeFileSync(join(folder, name), bytes)
  const drawn = {
    from: hashOf(svg),
    pictures: Object.fromEntries(pictures.map(([name, bytes]) => [name, hashOf(bytes)])),
  }
  writeFileSync(join(folder, 'drawn.json'), `${JSON.stringify(drawn, null, 2)}\n`)
} finally {
  rmSync(scratch, { recursive: true })
}
