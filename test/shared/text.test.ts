import assert from 'node:assert/strict'
import { toPlainTextWithColours, toPlainJson, toPlainLine, toPlainText } from '../../shared/text.ts'

describe('toPlainText', () => {
  const table: readonly [string, string, string][] = [
    ['line breaks and tabs stay', 'a\n\tb\n', 'a\n\tb\n'],
    ['carriage returns go', 'a\r\nb\rc', 'a\nbc'],
    ['colours', '\u001b[1;31mred\u001b[0m', 'red'],
    ['cursor movement', 'a\u001b[2J\u001b[Hb', 'ab'],
    ['private CSI parameters', '\u001b[?1049hx\u001b[?25l', 'x'],
    ['a title, ended by BEL', '\u001b]0;owned\u0007x', 'x'],
    ['a link, ended by ST', '\u001b]8;;http://e.example\u001b\\text\u001b]8;;\u001b\\', 'text'],
    ['a title that never ends', 'a\u001b]0;owned', 'a'],
    ['a device control string', '\u001bPq#0\u001b\\x', 'x'],
    ['a reset', '\u001bcx', 'x'],
    ['a lone escape', 'a\u001b', 'a'],
    ['C1 controls', 'a\u009b31mb\u0085c', 'a31mbc'],
    ['NUL, backspace, bell, delete', 'a\0\b\u0007\u007fb', 'ab'],
    ['direction overrides', 'a\u202eb\u2066c\u200fd\u061ce', 'abcde'],
    ['other writing', 'äß漢字😀', 'äß漢字😀'],
  ]
  for (const [name, text, plain] of table)
    it(`treats ${name}`, () => assert.equal(toPlainText(text), plain))

  it('leaves nothing that could become an escape sequence when sequences are nested', () => {
    for (const text of ['\u001b\u001b[31m[31m', '\u001b[\u001b[31m31m', '\u001b]\u001b]0;x\u0007'])
      assert.doesNotMatch(toPlainText(text), /[\u001b\u009b]/)
  })

  it('is quick on long hostile text', () => {
    const started = performance.now()
    for (const piece of ['\u001b[', '\u001b]', '\u001b[1;', '\u001b]x\u001b'])
      assert.doesNotMatch(toPlainText(piece.repeat(50_000)), /\u001b/)
    assert.ok(performance.now() - started < 5000)
  })
})

describe('toPlainLine', () => {
  it('folds white space onto one line', () => {
    assert.equal(toPlainLine(' a\n\n b\t\u001b[31mc \r\n'), 'a b c')
  })
})

describe('toPlainTextWithColours', () => {
  it('leaves colours, and of everything else what toPlainText leaves', () => {
    const red = '\u001b[31mred\u001b[39m'
    assert.equal(
      toPlainTextWithColours(`${red} \u001b[2J\u001b]0;x\u0007\u009b2J\u202e${red}\n`),
      `${red} 2J${red}\n`,
    )
    const nested = toPlainTextWithColours('\u001b\u001b[31m[2J\u001b[\u001b[0m2J')
    assert.equal(nested.replaceAll(/\u001b\[\d+m/g, ''), '[2J2J')
  })
})

describe('toPlainJson', () => {
  it('means the same, without a character that a terminal acts on', () => {
    const value = { text: '\u001b[2J\u007f\u009b2J\u202eevil\u2066\u200f\u061c ü 日本\n', ü: 1 }
    for (const indent of [0, 2]) {
      const json = toPlainJson(JSON.stringify(value, null, indent))
      assert.doesNotMatch(json, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\p{Cf}]/u)
      assert.deepEqual(JSON.parse(json), value)
      assert.match(json, /ü 日本/)
    }
  })
})
