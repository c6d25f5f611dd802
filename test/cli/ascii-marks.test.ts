import assert from 'node:assert/strict'
import { asciiMarks, takesUtf8 } from '../../cli/ascii-marks.ts'

describe('cli: marks in ASCII', () => {
  it('are one character for each, so that columns stay where they are', () => {
    const text = '○ queued  ● running  ✓ done  ✗ failed  cut off…  é'
    assert.equal(asciiMarks(text), 'o queued  * running  + done  x failed  cut off~  é')
  })

  const locales: readonly (readonly [boolean, NodeJS.ProcessEnv])[] = [
    [true, {}],
    [true, { LANG: '' }],
    [true, { LANG: 'en_US.UTF-8' }],
    [true, { LANG: 'C.utf8' }],
    [true, { LC_ALL: 'C.UTF-8', LANG: 'C' }],
    [false, { LANG: 'C' }],
    [false, { LANG: 'POSIX' }],
    [false, { LANG: 'de_DE.ISO-8859-1' }],
    [false, { LC_ALL: 'C', LANG: 'en_US.UTF-8' }],
    [false, { LC_CTYPE: 'C', LANG: 'en_US.UTF-8' }],
  ]
  for (const [wanted, env] of locales)
    it(`are ${wanted ? 'not ' : ''}for ${JSON.stringify(env)}`, () => {
      assert.equal(takesUtf8(env), wanted)
    })
})
