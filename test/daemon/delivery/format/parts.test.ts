import assert from 'node:assert/strict'
import { describeLeftOut, toParts } from '../../../../daemon/delivery/format/parts.ts'
import { telegramText } from '../../../../daemon/delivery/format/telegram.ts'

const limits = {
  slack: 12_000,
  telegram: 4096,
  discord: 2000,
  github: 65_536,
  gitlab: 1_000_000,
} as const
const kinds = ['slack', 'telegram', 'discord', 'github', 'gitlab'] as const

describe('toParts', () => {
  it('removes control sequences, lone surrogates and surrounding empty lines', () => {
    for (const kind of [...kinds, 'email'] as const)
      assert.deepEqual(toParts({ kind }, '\n\n\u001b[31mred\u001b[0m\u0000 \ud800\u202e\n\n'), [
        'red \ufffd',
      ])
  })

  it('leaves an answer unchanged for a file, the log, the desktop and an HTTP receiver', () => {
    for (const kind of ['file', 'log', 'notify', 'http'] as const)
      assert.deepEqual(toParts({ kind }, '\u001b[31m@a\n'), ['\u001b[31m@a\n'])
    assert.deepEqual(toParts({ kind: 'invalid' }, 'x'), [])
  })

  it('replaces an empty answer, which every target would reject', () => {
    for (const kind of kinds)
      for (const text of ['', ' \n', '\u001b[0m'])
        assert.deepEqual(toParts({ kind }, text), ['(the answer is empty)'])
  })

  for (const kind of kinds)
    it(`stays under the limit of ${kind}, whatever has to be changed`, () => {
      const mentions = '<!here> @octocat #1 '.repeat(20_000)
      for (const text of [mentions, '😀'.repeat(150_000), '```js\nx\n'.repeat(50_000)]) {
        const parts = toParts({ kind }, text)
        if (kind !== 'gitlab') assert.ok(parts.length > 1)
        for (const part of parts) {
          const { length } = kind === 'telegram' ? telegramText(part).text : part
          assert.ok(length <= limits[kind], `${length}`)
          assert.doesNotMatch(part, /\p{Surrogate}/u)
        }
        if (kind !== 'gitlab') assert.match(parts.at(-1) ?? '', /cut here/)
      }
    })

  it('sends one mail', () => {
    const [mail, second] = toParts({ kind: 'email' }, 'x'.repeat(3_000_000))
    assert.match(mail ?? '', /cut here: \d+ of 3000000/)
    assert.equal(second, undefined)
  })
})

describe('what the agent did not see', () => {
  const leftOut = ['the diff leaves out 2 of 3 files']

  it('is nothing where it saw all', () => assert.equal(describeLeftOut({ leftOut: [] }), ''))

  it('names files as code, on one line', () =>
    assert.equal(
      describeLeftOut({ leftOut, notRead: ['src/a.ts', '`@ada`\n](x'] }),
      '_The agent did not see everything: the diff leaves out 2 of 3 files. Not read, or not to the end: `src/a.ts`, ` @ada  ](x`._',
    ))

  it('names twenty', () => {
    const notRead = Array.from({ length: 30 }, (_, index) => `f${index}`)
    assert.match(describeLeftOut({ leftOut, notRead }), /`f18`, `f19`, and more\._$/)
  })
})
