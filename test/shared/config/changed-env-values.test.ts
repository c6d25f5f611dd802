import assert from 'node:assert/strict'
import { changedValueWarnings, envFileWarnings } from '../../../shared/config/environment.ts'

const found = (text: string) =>
  changedValueWarnings(text).map(({ detail }) =>
    detail.replace(/^\.env: line (\d+): the value of (\w+) (\w+) .*/, '$1 $2 $3'),
  )

describe('values of .env that are not what their lines show', () => {
  it('are those with a # in them', () => {
    const lines = ['CUT=Xk2#9vQ!mZ', 'export EMPTY=#9vQ', 'COLON: a#b']
    for (const end of ['\n', '\r\n'])
      assert.deepEqual(found(lines.join(end)), ['1 CUT ends', '2 EMPTY ends', '3 COLON ends'])
  })

  it('are no values that are meant so', () => {
    const lines = [
      "SINGLE='Xk2#9vQ!mZ'",
      'DOUBLE="Xk2#9vQ!mZ" # a comment',
      'BOTH=`it\'s "x"#y`',
      'NOTE=abc # a comment',
      'BLANK= # fill me in',
      '# OFF=a#b',
      'PLAIN=abc',
    ]
    assert.deepEqual(found(lines.join('\n')), [])
  })

  it('are neither lines that a later one replaces, nor parts of a longer value', () => {
    assert.deepEqual(found('TWICE=a#b\nTWICE=c'), [])
    assert.deepEqual(found("LONG='\nA=a#b\n'"), [])
  })

  it('are warned about without the value', () => {
    const warnings = envFileWarnings('A=Xk2#9vQ!mZ\nB=abc # comment\n')
    assert.deepEqual(
      warnings.map(({ code, detail }) => `${code} ${detail}`),
      ['env-value-changed .env: line 1: the value of A ends at the # in it'],
    )
    assert.match(warnings[0]?.hint ?? '', /^write A='…' .*, or a space before the # of a comment: /)
    assert.doesNotMatch(JSON.stringify(warnings), /Xk2|9vQ/)
  })
})
