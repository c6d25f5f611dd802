import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { cliProgram, packageFolder } from '../../shared/version.ts'

/** What a file of the bundle loads when it is loaded itself; what a command needs later is not at the edge. */
const loadedBy = async (name: string): Promise<string[]> => {
  const text = async (end: string) =>
    readFile(new URL(`${cliProgram}/../${name}${end}`, packageFolder), 'utf8')
  // One that is compiled ahead is two files; in a build for coverage none is.
  const both = (await text('.cjs')) + (await text('.code.cjs').catch(() => ''))
  const lines = both.matchAll(/^(?:const|let|var) .*?require\("([^"]+)"\)/gm)
  const names = [...lines].map(([, loaded = '']) => loaded)
  // Node has that one by then itself.
  return [...new Set(names)].filter((loaded) => loaded !== 'node:vm')
}

/*
 * Start-up is most of what a short command costs. What it loads is held here; what that takes, which no
 * test can, is measured by `npm run bench cli`.
 */
describe('cli: a light start', () => {
  it('loads next to nothing for a version: neither parser, nor streams, nor network', async () => {
    assert.deepEqual(await loadedBy('doorward'), ['./always.cjs'])
    assert.deepEqual(await loadedBy('always'), ['node:fs', 'url'])
  })

  it('loads little more for a token: no HTTP, and no library of other commands', async () => {
    assert.deepEqual((await loadedBy('quick-token')).toSorted(), [
      './always.cjs',
      './rolldown-runtime.cjs',
      'node:crypto',
      'node:fs',
      'node:net',
      'node:os',
      'node:path',
      'node:tty',
      'node:util',
    ])
  })
})
