import assert from 'node:assert/strict'
import { telegramText } from '../../../../daemon/delivery/format/telegram.ts'

/** Each entity as its type and its text. */
const read = (markdown: string) => {
  const { text, entities } = telegramText(markdown)
  return [
    text.replaceAll('\u200b', '·'),
    ...entities.map(({ type, offset, length, url, language }) =>
      [type, text.slice(offset, offset + length), url ?? language].filter(Boolean).join(' '),
    ),
  ]
}

describe('telegramText', () => {
  for (const [given, ...wanted] of [
    ['plain text, 1 < 2 & 3', 'plain text, 1 < 2 & 3'],
    ['**bold** and __too__', 'bold and too', 'bold bold', 'bold too'],
    [
      '*lean* _too_ snake_case_name 2*3*4',
      'lean too snake_case_name 2*3*4',
      'italic lean',
      'italic too',
    ],
    ['~~gone~~', 'gone', 'strikethrough gone'],
    ['`a*b*` ``c ` d``', 'a*b* ``c ` d``', 'code a*b*'],
    ['# A *title*\ntext', 'A title\ntext', 'bold A ', 'bold title', 'italic title'],
    ['[here](https://a.b/c)', 'here', 'text_link here https://a.b/c'],
    ['[x](javascript:alert) [y](tg://user?id=1)', '[x](javascript:alert) [y](tg://user?id=1)'],
    ['a\n```ts\n*x* @b\n  y\n```\nz', 'a\n*x* @b\n  y\nz', 'pre *x* @b\n  y ts'],
    ['```\nnever closed', 'never closed', 'pre never closed'],
    ['😀 **é😀**', '😀 é😀', 'bold é😀'],
    ['hello @octocat, `@code`', 'hello @·octocat, @code', 'code @code'],
    ['@**octocat** @`a` `@`b @_', '@·octocat @·a @·b @·_', 'bold octocat', 'code a', 'code @'],
    ['- a\n- b\n\n> c', '- a\n- b\n\n> c'],
    ['** not bold **', '** not bold **'],
    ['mcp__github__create_issue a__b__', 'mcp__github__create_issue a__b__'],
    ['src/__tests__/a.ts __init__.py', 'src/__tests__/a.ts __init__.py'],
    ['src/**/*.ts and test/**/*.ts', 'src/**/*.ts and test/**/*.ts'],
    ['**snake_case:** **a_b**', 'snake_case: a_b', 'bold snake_case:', 'bold a_b'],
    [
      '**`user_id` is *not* it**',
      'user_id is not it',
      'code user_id',
      'bold  is ',
      'bold not',
      'italic not',
      'bold  it',
    ],
    ['[`a_b`](https://a.b/c)', 'a_b', 'text_link a_b https://a.b/c'],
    ['[`@a`](https://b.c) @\\_b', '@·a @·_b', 'text_link @\u200ba https://b.c'],
    [
      '[`a` *b*](https://a.b/(c)d)',
      'a b',
      'text_link a https://a.b/(c)d',
      'text_link b https://a.b/(c)d',
      'italic b',
    ],
    [
      '[a[0]](https://a.b/) [b](https://c.d "a title")',
      'a[0] b',
      'text_link a[0] https://a.b/',
      'text_link b https://c.d',
    ],
    ['*a **b** c* *d*', 'a b c d', 'italic a ', 'italic b', 'bold b', 'italic  c', 'italic d'],
    ['*a **b c* d', '*a **b c* d'],
    [
      'x\n| a | b |\n|:--|--:|\n| **1** `c` | 23 | 4 |\n| \\| @x | |\ny | z\n\nend',
      'x\na    |  b\n-----|---\n1 c  | 23\n| @x |\ny    |  z\n\nend',
      'pre a    |  b\n-----|---\n1 c  | 23\n| @x |\ny    |  z',
    ],
    ['a | b\nc | d', 'a | b\nc | d'],
    ['| a | b |\n|---|', '| a | b |\n|---|'],
    ['| [a](https://b.c) |\n|---|\n| d |', '| a |\n|---|\n| d |', 'text_link a https://b.c'],
    ['```\n| a |\n|---|\n```', '| a |\n|---|', 'pre | a |\n|---|'],
    ['***both*** ***', 'both ***', 'bold both', 'italic both'],
    ['me@example.com pkg@1.2 é@a', 'me@example.com pkg@1.2 é@·a'],
    ['https://a.b/@c/d https://@e', 'https://a.b/%40c/d https://%40e'],
    ['[x](https://a.b/@c)', 'x', 'text_link x https://a.b/@c'],
    ['https://a.b/_next_/*c* *d*', 'https://a.b/_next_/*c* d', 'italic d'],
    ['\\*a\\* snake\\_case \\d+ `\\_`', '*a* snake_case \\d+ \\_', 'code \\_'],
    ['```\n```', ''],
  ] as const)
    it(`reads ${JSON.stringify(given)}`, () => assert.deepEqual(read(given), wanted))

  it('leaves a table unchanged that is wider than a screen', () => {
    const table = (width: number) => `| ${'a'.repeat(width)} | b |\n|---|---|\n| c | d |`
    assert.equal(read(table(56)).length, 2)
    assert.deepEqual(read(table(57)), [table(57)])
  })

  it('takes linear time', () => {
    const started = performance.now()
    for (const text of [
      '*',
      '_',
      '`',
      '[',
      '~~',
      '**a',
      '**a ',
      '**a* ',
      '[a](',
      '[a](https://b/(',
      '# ',
      ' *a **b** ',
      '*a **b',
      '**b** *',
      '|',
      '|-',
      '|a|\n|-|\n',
      '\\|',
    ])
      telegramText(text.repeat(4096 / text.length))
    assert.ok(performance.now() - started < 1000)
  })
})
