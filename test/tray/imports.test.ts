import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'

/** The packages that a built module and its imports load. */
const packagesOf = (start: URL): Set<string> => {
  const found = new Set<string>()
  const seen = new Set<string>()
  const read = (file: URL): void => {
    if (seen.has(file.href)) return
    seen.add(file.href)
    const source = readFileSync(file, 'utf8')
    for (const [, name = ''] of source.matchAll(/^(?:import|export) [^']*?from '([^']+)'/gm))
      if (name.startsWith('.')) read(new URL(name, file))
      else if (name !== '' && !name.startsWith('node:')) found.add(name)
  }
  read(start)
  return found
}

describe('the modules of the tray', () => {
  it('do without zod, which would take a fifth of its memory and of its start', () => {
    for (const name of ['main.js', 'daemon-follower.js']) {
      const packages = packagesOf(new URL(`../../tray/${name}`, import.meta.url))
      assert.ok(![...packages].some((one) => /^zod\b/.test(one)), [...packages].join(', '))
    }
  })
})
