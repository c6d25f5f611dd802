import assert from 'node:assert/strict'
import { findIgnoredLines, ignoredEnvLines } from '../../../shared/config/environment.ts'

describe('lines of .env that set nothing', () => {
  it('are known by their numbers', () => {
    const lines = [
      '# a comment',
      '',
      'A=1',
      'GITHUB_WEBHOOK_SECRET of-github',
      'export B=2',
      'export C',
      'D: 3',
      'TWICE=1',
      'TWICE=2',
      '   # another',
      'my secret=x',
      'EMPTY=',
    ]
    for (const end of ['\n', '\r\n'])
      assert.deepEqual(findIgnoredLines(lines.join(end)), [4, 6, 11])
  })

  it('are none of those that a value of several lines has', () => {
    const key = ['KEY="-----BEGIN', '', 'abc def', '-----END"', "OTHER='a", "b'", 'stray', 'Z=1']
    assert.deepEqual(findIgnoredLines(key.join('\n')), [7])
    assert.deepEqual(findIgnoredLines(''), [])
    assert.deepEqual(findIgnoredLines('x\n'.repeat(20_000)), [1, 2, 3, 4, 5])
  })

  it('are not looked for in a file that is not UTF-8, which is said with its line', () => {
    for (const [bytes, line] of [
      [Buffer.from('A=1\nSECRET=gr\u00fcn\n', 'latin1'), 2],
      [Buffer.from('\ufeffSECRET=x\n', 'utf16le'), 1],
    ] as const) {
      const problem = ignoredEnvLines(bytes.toString('utf8'))
      assert.match(problem?.detail ?? '', new RegExp(`^line ${line} is not UTF-8`))
      assert.match(problem?.hint ?? '', /config edit env/)
    }
    assert.equal(ignoredEnvLines('\ufeffSECRET=gr\u00fcn\n'), undefined)
  })
})
