import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import { renderMarkdown } from '../../daemon/page/markdown.ts'

const html = (text: string): string =>
  renderMarkdown(text)
    .html.replace(/^<div class="prose" dir="auto">|<\/div>$/g, '')
    .replaceAll(/ class="lines"/g, '')

describe('Markdown of an answer', () => {
  const table: readonly (readonly [string, string, string])[] = [
    ['a paragraph', 'a\nb\n\nc', '<p>a\nb</p><p>c</p>'],
    ['a heading', '# a #\n### b', '<h3>a</h3><h4>b</h4>'],
    ['a rule', 'a\n\n---', '<p>a</p><hr>'],
    ['a list', '- a\n- b\n  c', '<ul><li><p>a</p></li><li><p>b\nc</p></li></ul>'],
    [
      'a list in a list',
      '- a\n  - b\n- c',
      '<ul><li><p>a</p><ul><li><p>b</p></li></ul></li><li><p>c</p></li></ul>',
    ],
    [
      'a list that begins at 3',
      '3. a\n\n4. b\n\nc',
      '<ol start="3"><li><p>a</p></li><li><p>b</p></li></ol><p>c</p>',
    ],
    [
      'a quote',
      '> a\n> - b\n\nc',
      '<blockquote><p>a</p><ul><li><p>b</p></li></ul></blockquote><p>c</p>',
    ],
    ['code', '```js\n<b>\n# a\n```\nb', '<pre>\n<code>&#60;b&#62;\n# a</code></pre><p>b</p>'],
    ['code without an end', '~~~\na', '<pre>\n<code>a</code></pre>'],
    [
      'code in an item',
      '- a\n  ```\n  b\n  ```',
      '<ul><li><p>a</p><pre>\n<code>b</code></pre></li></ul>',
    ],
    [
      'marks',
      '**a** *b* _c_ `**d**` 2*3*4 snake_case_x \\*e\\*',
      '<p><strong>a</strong> <em>b</em> <em>c</em> <code>**d**</code> 2*3*4 snake_case_x *e*</p>',
    ],
    [
      'HTML',
      '<img src=x> <!-- a --> &amp;',
      '<p>&#60;img src=x&#62; &#60;!-- a --&#62; &#38;amp;</p>',
    ],
  ]
  for (const [what, text, expected] of table)
    it(`shows ${what}`, () => assert.equal(html(text), expected))

  it('shows where each link leads, and links to pages of the web alone', () => {
    const link = (url: string) =>
      `<a href="${url}" rel="noopener noreferrer" target="_blank">${url}</a>`
    const text = (address: string) => `<bdi>${address}</bdi>`
    for (const [written, expected] of [
      ['[a](https://x.example/)', `a (${link('https://x.example/')})`],
      ['https://x.example/a.', `${link('https://x.example/a')}.`],
      ['<https://x.example/>', link('https://x.example/')],
      [
        '[https://bank.example/](https://x.example/)',
        `${link('https://bank.example/')} (${link('https://x.example/')})`,
      ],
      ['[a](https://аpple.example/)', `a (${link('https://xn--pple-43d.example/')})`],
      ['![a](https://x.example/p.png)', `a (${link('https://x.example/p.png')})`],
      ['[a](javascript:alert`1`)', `a (${text('javascript:alert&#96;1&#96;')})`],
      ['[a](https://u:p@x.example/)', `a (${text('https://u:p@x.example/')})`],
      ['[a](http://127.0.0.1:1/)', `a (${text('http://127.0.0.1:1/')})`],
      ['[a](/ui/events)', `a (${text('/ui/events')})`],
    ] as const)
      assert.equal(html(written), `<p>${expected}</p>`, written)
  })

  it('takes no longer for a text that is made to be slow', () => {
    const hostile = [
      '[',
      '](',
      '**',
      '*a ',
      '_a ',
      '`',
      '<',
      '> ',
      '- ',
      '|',
      ' #',
      '# ',
      '\n- ',
      '\n> > ',
      '\n|-',
      ' ',
      '![',
      '\\',
      '\n  1. ',
      'https://',
    ]
    const startedAt = performance.now()
    for (const mark of hostile) {
      renderMarkdown(mark.repeat(100_000 / mark.length))
      renderMarkdown(`a|\n${mark.repeat(50_000 / mark.length)}x`)
    }
    const ms = performance.now() - startedAt
    assert.ok(ms < 20_000, String(ms))
  })
})
