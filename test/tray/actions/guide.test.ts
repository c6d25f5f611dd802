import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { packageFolder } from '../../../shared/version.ts'
import { guidePage } from '../../../tray/actions/open.ts'

describe('the page about OAuth clients', () => {
  const page = readFileSync(guidePage, 'utf8')

  it('matches docs/providers.md', () => {
    const script = fileURLToPath(new URL('scripts/draw-guide.mjs', packageFolder))
    const { stdout, stderr } = spawnSync(process.execPath, [script, '--print'], {
      encoding: 'utf8',
    })
    assert.equal(page, stdout, `run: node scripts/draw-guide.mjs ${stderr}`)
  })

  it('is self-contained, and links to each of its sections', () => {
    assert.doesNotMatch(page, /<script|<img|\bsrc=|@import|url\(/)
    const chapters = new Set([...page.matchAll(/id="([^"]+)"/g)].map(([, id]) => id))
    const links = [...page.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id)
    assert.ok(links.length >= 6)
    assert.deepEqual(
      links.filter((id) => !chapters.has(id)),
      [],
    )
  })
})
