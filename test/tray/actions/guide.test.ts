import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { packageFolder } from '../../../shared/version.ts'
import { guidePage } from '../../../tray/actions/open.ts'

describe('the page about OAuth clients', () => {
  const page = readFileSync(guidePage, 'utf8')

  it('says what docs/providers.md says today', () => {
    const script = fileURLToPath(new URL('scripts/draw-guide.mjs', packageFolder))
    const { stdout, stderr } = spawnSync(process.execPath, [script, '--print'], {
      encoding: 'utf8',
    })
    assert.equal(page, stdout, `run: node scripts/draw-guide.mjs ${stderr}`)
  })

  it('needs nothing but itself, and leads to each of its chapters', () => {
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
