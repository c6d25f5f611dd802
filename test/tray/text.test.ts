import assert from 'node:assert/strict'
import { escapeLabel, toLabel } from '../../tray/text.ts'

describe('toLabel', () => {
  const cases: [what: string, text: string, label: string][] = [
    ['keeps plain text', 'main · 12:04 ✓', 'main · 12:04 ✓'],
    ['makes one line of several', 'a\r\nb\tc\u2028d\u0085e', 'a b cde'],
    ['drops control characters', 'a\u0000b\u007fc', 'abc'],
    ['drops what would colour a terminal', 'a\u001b[31mb\u001b[0mc', 'abc'],
    ['drops what changes the direction', 'a\u202eb\u2066c\u200f', 'abc'],
    ['drops invisible characters', 'a\u200bb\u00adc\ufeffd\u3164', 'abcd'],
    ['drops half characters', 'a\ud800b', 'ab'],
    [
      'keeps accents but not piles of them',
      `e\u0301 e${'\u0301'.repeat(50)}`,
      'e\u0301 e\u0301\u0301',
    ],
    ['keeps 80 characters', 'x'.repeat(80), 'x'.repeat(80)],
    ['cuts the 81st', 'x'.repeat(81), `${'x'.repeat(79)}…`],
    ['does not cut a character in two', '😀'.repeat(90), `${'😀'.repeat(79)}…`],
    ['makes nothing of nothing', ' \n\u200b ', ''],
  ]
  for (const [what, text, label] of cases)
    it(what, () => {
      assert.equal(toLabel(text), label)
    })
})

describe('escapeLabel', () => {
  it('escapes underscores and ampersands where a desktop would drop them', () => {
    assert.equal(escapeLabel('run_done & more', 'linux'), 'run__done & more')
    assert.equal(escapeLabel('run_done & more', 'win32'), 'run_done && more')
    assert.equal(escapeLabel('run_done & more', 'darwin'), 'run_done & more')
  })
})
