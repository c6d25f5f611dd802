import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync, readdirSync } from 'node:fs'
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
})

const folder = new URL('assets/icons/', packageFolder)
const read = (name: string): Buffer => readFileSync(new URL(name, folder))
const hashOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

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
