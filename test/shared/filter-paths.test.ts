import assert from 'node:assert/strict'
import { matchesPaths, parseGlobs } from '../../shared/filter/paths.ts'

describe('paths of changed files', () => {
  const matches = (only: string[] | undefined, ignored: string[], ...files: string[]) =>
    matchesPaths({ only, ignored }, files)

  it('match as globs of GitHub Actions do', () => {
    assert.ok(matches(['docs/**/*.md'], [], 'docs/a.md'))
    assert.ok(matches(['docs/**/*.md'], [], 'docs/a/b/c.md'))
    assert.ok(matches(['**/*.md'], [], 'README.md'))
    assert.ok(matches(['*.md'], [], 'README.md'))
    assert.ok(!matches(['*.md'], [], 'docs/README.md'))
    assert.ok(matches(['services/api/**'], [], 'web/a', 'services/api/a/b'))
    assert.ok(!matches(['services/api/**'], [], 'services/api2/a'))
  })

  it('count no file that is ignored, and match none where there is none', () => {
    assert.ok(!matches(undefined, ['**/*.md'], 'a.md', 'b/c.md'))
    assert.ok(matches(undefined, ['**/*.md'], 'a.md', 'b/c.ts'))
    assert.ok(!matches(undefined, ['**/*.md']))
    assert.ok(!matches(['a/**'], ['a/b/**'], 'a/b/c'))
  })

  it('are refused where they can match nothing', () => {
    const hintOf = (glob: string, isIgnored = false) => {
      try {
        parseGlobs([glob], isIgnored)
        return undefined
      } catch (error) {
        return (error as { hint?: string }).hint
      }
    }
    assert.equal(hintOf('!a'), 'write a into paths_ignore')
    assert.equal(hintOf('!a', true), 'write it without !, into paths')
    assert.equal(hintOf('/a/**'), 'write a/**')
    assert.equal(hintOf('./a/**'), 'write a/**')
    assert.equal(hintOf('a/**'), undefined)
  })
})
