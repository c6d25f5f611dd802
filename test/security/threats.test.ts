import assert from 'node:assert/strict'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const text = readFileSync(`${root}SECURITY.md`, 'utf8')

const testsIn = (part: string): string[] =>
  [...part.matchAll(/`(test\/[\w./-]+)`/g)].map(([, path = '']) => path)

/** The cells of each row of the table under a heading, without its own first two rows. */
const tableUnder = (heading: string): string[][] => {
  const [, section = ''] = text.split(`\n## ${heading}\n`)
  const lines = section.split('\n## ', 1)[0]?.split('\n') ?? []
  const rows = lines.filter((line) => line.startsWith('|'))
  return rows.slice(2).map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  )
}

describe('SECURITY.md', () => {
  const threats = tableUnder('Threats')

  it('names no test that is not there', () => {
    const named = testsIn(text)
    assert.ok(named.length > 80)
    for (const path of named) assert.ok(existsSync(`${root}${path}`), path)
  })

  it('says of every threat what stops it, and which test holds that, by its name where it is one', () => {
    assert.ok(threats.length >= 30)
    for (const [threat = '', stop = '', held = '', ...rest] of threats) {
      assert.ok(threat !== '' && stop !== '' && rest.length === 1, threat)
      const files = testsIn(held)
      assert.ok(files.length > 0, threat)
      for (const file of files) assert.match(file, /\.test\.ts$/)
      const sources = files.map((file) => readFileSync(`${root}${file}`, 'utf8')).join('\n')
      for (const [, title = ''] of held.matchAll(/“([^”]+)”/g))
        assert.ok(sources.includes(title), `${threat}: ${title}`)
    }
  })

  it('names every test of threats', () => {
    const folder = `${root}test/security`
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    const named = testsIn(text)
    for (const file of files.filter((name) => name.endsWith('.test.ts')))
      if (file !== 'threats.test.ts')
        assert.ok(named.includes(`test/security/${file.replaceAll('\\', '/')}`), file)
  })
})
