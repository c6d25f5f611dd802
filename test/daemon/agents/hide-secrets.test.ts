import assert from 'node:assert/strict'
import { hideSecrets, collectSecrets } from '../../../daemon/agents/environment.ts'

const secrets = new Map([
  ['gho_abcdef', 'token of github'],
  ['gho_abcdef-and-more', 'value of LONGER'],
])

describe('hideSecrets', () => {
  const cases: readonly (readonly [string, string])[] = [
    ['nothing here', 'nothing here'],
    ['a gho_abcdef b gho_abcdef.', 'a <token of github> b <token of github>.'],
    ['gho_abcdef-and-more', '<value of LONGER>'],
    // Cut at the start, at the end, and too short to disclose anything.
    ['ho_abcdef: no', '<token of github>: no'],
    ['\ufffdcdef: no', '<token of github>: no'],
    ['def: no', 'def: no'],
    ['and-more: no', '<value of LONGER>: no'],
    ['it is gho_abcdef-and-mor', 'it is <value of LONGER>'],
    ['it is gho_a', 'it is <token of github>'],
    ['it is gho', 'it is gho'],
    ['', ''],
  ]
  for (const [text, shown] of cases)
    it(`shows ${JSON.stringify(text)} as ${JSON.stringify(shown)}`, () => {
      assert.equal(hideSecrets(text, secrets), shown)
    })
})

describe('collectSecrets', () => {
  it('collects tokens and the long lines of variables, and no literal value of the entry', () => {
    const ours = { KEY: 'first-line \nshort\nsecond-line', MODE: 'fast', PATH: '/usr/local/bin' }
    const added = {
      A: 'env:KEY',
      B: 'env:MODE',
      C: 'env:UNSET',
      D: 'a literal value',
      E: 'oauth:x',
    }
    assert.deepEqual(
      [...collectSecrets(ours, added, new Map([['x', 'tok']]))],
      [
        ['first-line', 'value of KEY'],
        ['second-line', 'value of KEY'],
        ['tok', 'token of x'],
      ],
    )
  })
})
