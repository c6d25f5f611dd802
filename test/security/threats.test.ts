import assert from 'node:assert/strict'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const page = readFileSync(`${root}docs/threat-model.md`, 'utf8')

const findTests = (text: string): string[] =>
  [...text.matchAll(/`(test\/[\w./-]+)`/g)].map(([, path = '']) => path)

/** Each threat: its heading, what stops it, and its lines of tests and limits. */
const threats = page
  .split(/^### /m)
  .slice(1)
  .map((section) => {
    const [heading = '', ...paragraphs] = section.split(/^## /m, 1).join('').trim().split('\n\n')
    const list = paragraphs.at(-1) ?? ''
    const [tests = '', limits] = list.split('\n')
    return { heading, defence: paragraphs.slice(0, -1).join('\n\n'), tests, limits }
  })

describe('the threat model', () => {
  it('names, for every threat, what stops it and which test shows that', () => {
    assert.ok(threats.length >= 40)
    for (const { heading, defence, tests, limits = '- Limits: none' } of threats) {
      assert.ok(defence.length > 30, heading)
      assert.match(tests, /^- Tests: `/, heading)
      assert.match(limits, /^- Limits: ./, heading)
    }
  })

  it('names only tests that exist, by file and by title', () => {
    for (const { heading, tests } of threats) {
      const files = findTests(tests)
      for (const file of files) assert.ok(existsSync(`${root}${file}`), `${heading}: ${file}`)
      const sources = files.map((file) => readFileSync(`${root}${file}`, 'utf8')).join('\n')
      for (const [, title = ''] of tests.matchAll(/“([^”]+)”/g))
        assert.ok(sources.includes(title), `${heading}: ${title}`)
    }
  })

  it('names every test in test/security', () => {
    const folder = `${root}test/security`
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    const named = findTests(page)
    for (const file of files.filter((name) => name.endsWith('.test.ts')))
      if (file !== 'threats.test.ts')
        assert.ok(named.includes(`test/security/${file.replaceAll('\\', '/')}`), file)
  })
})
