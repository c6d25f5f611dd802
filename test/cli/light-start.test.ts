import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { cliProgram, packageFolder } from '../../shared/version.ts'

/** The files of the bundle that these load when they are loaded, themselves included, and modules of Node. */
const loadedBy = async (...names: readonly string[]) => {
  const files = new Map<string, string>()
  const builtin = new Set<string>()
  const load = async (name: string): Promise<void> => {
    if (files.has(name)) return
    const text = await readFile(new URL(`${cliProgram}/../${name}.cjs`, packageFolder), 'utf8')
    files.set(name, text)
    for (const [, id = ''] of text.matchAll(/^(?:(?:const|let|var) .*?)?require\("([^"]+)"\)/gm))
      if (id.startsWith('./')) await load(id.replace(/^\.\/(.*)\.cjs$/, '$1'))
      else builtin.add(id.replace(/^node:/, ''))
  }
  for (const name of names) await load(name)
  return { count: files.size, bytes: [...files.values()].join('').length, builtin }
}

/*
 * Start-up is most of what a short command costs. `npm run bench cli` measures the time; this test limits
 * what is loaded.
 */
describe('cli: a light start', () => {
  it('loads the argument parser and no more for a version: no network, no configuration', async () => {
    const { bytes, builtin } = await loadedBy('doorward', 'program')
    for (const name of ['http', 'crypto', 'fs/promises']) assert.ok(!builtin.has(name), name)
    assert.ok(bytes < 150_000, `${bytes} bytes`)
  })

  it('loads little more for a token, from few files: no library of other commands', async () => {
    const { count, bytes, builtin } = await loadedBy('doorward', 'program', 'client')
    assert.ok(bytes < 180_000, `${bytes} bytes`)
    assert.ok(count <= 4, `${count} files`)
    assert.ok(!builtin.has('fs/promises'))
  })
})
