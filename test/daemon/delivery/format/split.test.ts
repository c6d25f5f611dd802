import assert from 'node:assert/strict'
import { openFenceIn } from '../../../../daemon/util/markdown-fence.ts'
import { splitText } from '../../../../daemon/delivery/format/split.ts'

const number = /^\(\d+\/\d+\)\n/
const bare = (part: string) => part.replace(number, '')

describe('splitText', () => {
  it('leaves a text that fits as it is', () => {
    for (const text of ['', 'a', '```\nopen', 'x'.repeat(300)])
      assert.deepEqual(splitText(text, { characters: 300, parts: 3 }), [text])
  })

  const borders: readonly [string, string, string[]][] = [
    [
      'a paragraph',
      `${'a'.repeat(150)}\n\n${'b'.repeat(60)}\nc d ${'e'.repeat(90)}`,
      ['a'.repeat(150)],
    ],
    ['a line', `${'a'.repeat(150)}\n${'b'.repeat(60)} c d ${'e'.repeat(90)}`, ['a'.repeat(150)]],
    ['a word', `${'a'.repeat(150)} ${'b'.repeat(160)}`, ['a'.repeat(150)]],
    ['a character', 'a'.repeat(320), ['a'.repeat(230)]],
  ]
  for (const [where, text, [first]] of borders)
    it(`cuts at the end of ${where}`, () => {
      const parts = splitText(text, { characters: 300, parts: 3 })
      assert.equal(bare(parts[0] ?? ''), first)
      assert.equal(parts.map(bare).join('').replaceAll(/\s/g, ''), text.replaceAll(/\s/g, ''))
    })

  it('closes a code fence that it cuts, and opens it again with its language', () => {
    const code = Array.from({ length: 40 }, (_, line) => `  line(${line})`)
    const text = `before\n\n\`\`\`ts\n${code.join('\n')}\n\`\`\`\n\nafter`
    const parts = splitText(text, { characters: 300, parts: 9 })
    assert.ok(parts.length > 2)
    for (const part of parts) {
      assert.equal(openFenceIn(part), undefined, part)
      assert.ok(part.length <= 300)
    }
    for (const part of parts.slice(1, -1)) assert.match(part, /^\(\d\/\d\)\n```ts\n {2}line/)
    const lines = parts.flatMap((part) => part.split('\n')).filter((line) => line.includes('line('))
    assert.deepEqual(lines, code)
  })

  it('keeps the indentation of the first line of a message', () => {
    const list = Array.from({ length: 30 }, (_, at) => `- top ${at}\n    - a${at}\n\n      b${at}`)
    const parts = splitText(list.join('\n'), { characters: 250, parts: 9 })
    const lines = parts.flatMap((part) => bare(part).split('\n')).filter((line) => line !== '')
    assert.deepEqual(
      lines,
      list.flatMap((item) => item.split('\n')).filter((line) => line !== ''),
    )
  })

  it('keeps a fence that contains a shorter one', () => {
    const text = `~~~~md\n${'```js\nx\n```\n'.repeat(60)}~~~~`
    for (const part of splitText(text, { characters: 300, parts: 9 }))
      assert.equal(openFenceIn(part), undefined)
  })

  it('cuts a text that is too long for all parts, and says how much', () => {
    const parts = splitText('x'.repeat(5000), { characters: 500, parts: 2 })
    assert.equal(parts.length, 2)
    const last = parts[1] ?? ''
    const left = Number(/cut here: (\d+) of 5000 characters/.exec(last)?.[1])
    assert.equal(parts.join('').replaceAll(/[^x]/g, '').length, 5000 - left)
  })

  it('says that it cut a text for a single message', () => {
    const [only, second] = splitText('x '.repeat(5000), { characters: 500, parts: 1 })
    assert.match(only ?? '', /^x x.*cut here: \d+ of 10000/s)
    assert.equal(second, undefined)
  })

  it('keeps any text whole and under the limit', () => {
    const pieces = [
      'a',
      ' ',
      '\n',
      '\n\n',
      '😀',
      '```',
      '```js\n',
      '~~~',
      '    ',
      '- ',
      'word',
      '`',
    ]
    let seed = 1
    const random = (below: number) => {
      seed = (seed * 48_271) % 2_147_483_647
      return seed % below
    }
    for (let round = 0; round < 300; round += 1) {
      const text = Array.from({ length: 50 + random(600) }, () => pieces[random(pieces.length)])
        .join('')
        .trim()
      const parts = splitText(text, { characters: 300, parts: 20 })
      for (const part of parts) {
        assert.ok(part.length <= 300)
        assert.doesNotMatch(part, /\p{Surrogate}/u)
      }
      const count = (all: string) => all.split('word').length
      if (!parts.some((part) => part.includes('cut here')))
        assert.ok(Math.abs(count(parts.join('')) - count(text)) <= parts.length)
    }
  })

  it('takes time by the limit, not by the text', () => {
    const started = performance.now()
    splitText('a@b '.repeat(2_000_000), { characters: 2000, parts: 5 })
    splitText('```\n'.repeat(2_000_000), { characters: 2000, parts: 5 })
    assert.ok(performance.now() - started < 1000)
  })
})
