import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import { namesInMarkdown } from '../../../../daemon/webhook/mentions/markdown.ts'

const named = (text: string, flavour: 'github' | 'gitlab' = 'github') =>
  namesInMarkdown(text, 'doorward', flavour)

/** Texts that ask doorward something. */
const asks: Readonly<Record<string, string>> = {
  plain: '@doorward why?',
  'any case': 'Hey @DoorWard, why?',
  'the end of a sentence': 'I ask @doorward.',
  possessive: "@doorward's review is wrong",
  'in brackets': 'Could somebody (@doorward) look?',
  'emphasised by lines': '_@doorward_ please',
  'emphasised by stars': '**@doorward**: please',
  heading: '# @doorward fix this',
  'item of a list': '- one\n- @doorward do two',
  'task of a list': '- [ ] @doorward do it',
  'text in an item, after a blank line': '- one\n\n  @doorward do it',
  'deep item': '1. one\n   - two\n     - @doorward three',
  table: '| who | what |\n| --- | --- |\n| @doorward | fix |',
  'after a quote': '> He said so.\n\n@doorward is that right?',
  'the line below a quote': '> He said so.\n@doorward is that right?',
  'after a fence': '```\ncode\n```\n@doorward explain',
  'after a fence with more marks': '````\n```\n````\n@doorward explain',
  'after a fence in an item': '- ```\n  code\n  ```\n- @doorward explain',
  'after an item with an open fence': '- ```\n  code\n\n@doorward explain',
  'after code': 'See `a.ts`: @doorward explain',
  'after an open backtick': 'A ` is no code: @doorward explain',
  'after code with more backticks': '``a ` b`` @doorward',
  'after an escaped backtick': '\\` @doorward \\`',
  'a wrapped line that is indented': 'I ask\n     @doorward to explain',
  'after a comment': '<!-- template --> @doorward explain',
  'after a comment of several lines': '<!--\n```\n-->\n@doorward explain',
  'after an open comment in a line': 'a <!-- b @doorward',
  'below a link': '[docs](https://example.com/)\n@doorward explain',
  'brackets that are no link': '[@doorward] explain',
  'brackets before it': '[1] @doorward explain',
  'details of HTML': '<details>\n\n@doorward explain\n\n</details>',
  'after HTML that is code': '<code>x</code> @doorward',
  'after a quote of HTML': '<blockquote>a</blockquote>\n\n@doorward explain',
  'after an entity': '&amp;@doorward explain',
  'line breaks of Windows': '> quoted\r\n\r\n@doorward why?\r\n',
  footnote: 'See[^1].\n\n[^1]: @doorward explain',
}

/** Texts that do not. */
const silent: Readonly<Record<string, string>> = {
  nothing: 'why?',
  'without the sign': 'doorward why?',
  'a longer name': '@doorward-bot why?',
  'a name with a line': '@doorward_bot why?',
  'a name that goes on': '@doorwards why?',
  'a name with other letters': '@doorwardé why?',
  'a name with an invisible letter': '@doorward\u200dbot why?',
  'a name that goes on as an entity': '@doorward&#45;bot why?',
  'a team': '@doorward/team why?',
  'mail of a person': 'write to me@doorward',
  'mail with a domain': 'write to x-@doorward.com',
  'mail after a line': 'write to me_@doorward',
  'mail after an entity': 'write to m&#101;@doorward',
  'two signs': '@@doorward why?',
  escaped: '\\@doorward why?',
  'the sign as an entity': '&#64;doorward &commat;doorward &#x40;doorward why?',
  'broken by what nobody sees': '@\u200bdoorward why?',
  code: 'write `@doorward` to ask',
  'code with more backticks': 'write `` a ` @doorward `` to ask',
  'code over two lines': 'write `a\n@doorward` to ask',
  fence: '```\n@doorward why?\n```',
  'fence of tildes': '~~~ts\n@doorward why?\n~~~',
  'fence without an end': 'so:\n\n```\n@doorward why?',
  'fence that a shorter one does not end': '````\n```\n@doorward\n````',
  'fence that another mark does not end': '```\n~~~\n@doorward\n```',
  'fence in an item': '- so:\n\n  ```\n  @doorward\n  ```',
  'fence as an item': '1. ```\n   @doorward\n   ```',
  'indented code': 'so:\n\n    @doorward why?',
  'code that a tab indents': 'so:\n\n\t@doorward why?',
  'indented code in an item': '- so:\n\n      @doorward why?',
  quote: '> @doorward why?',
  'nested quotes': '> > @doorward why?\n>\n> because\n\nI agree.',
  'quote in an item': '- > @doorward why?',
  'item in a quote': '> - @doorward why?',
  'quote with a fence': '> ```\n> @doorward\n> ```',
  'quote that is indented': '   > @doorward',
  comment: '<!-- @doorward why? -->',
  'comment in a line': 'a <!-- @doorward --> b',
  'comment of several lines': '<!--\n\n@doorward\n\n-->\nb',
  'comment without an end': 'a\n\n<!--\n@doorward',
  link: '[@doorward](https://example.com)',
  'link with brackets': '[a [b] @doorward](<https://example.com/a b> "title")',
  'link by reference': '[@doorward][1] said so\n\n[1]: https://example.com',
  'link by its own name': '[@doorward] said so\n\n[@Doorward]: https://example.com',
  'title of a link': '[a](https://example.com "@doorward")',
  image: '![@doorward](a.png)',
  'definition of a link': '[a]: https://example.com/ "@doorward"',
  'address of a page': 'see https://example.com/@doorward and https://example.com/?a=@doorward',
  'address without a scheme': 'see www.example.com/@doorward',
  'address in brackets': 'see <https://example.com/@doorward>',
  path: 'node_modules/@doorward is there',
  'HTML code': 'a <code>@doorward</code> b',
  'HTML block': '<pre>\n\n@doorward\n</pre>',
  'HTML link': '<a href="https://example.com">@doorward</a>',
  'HTML attribute': '<img alt="@doorward" src="a.png">',
  'HTML quote': '<blockquote>\n\n<blockquote>a</blockquote>\n\n@doorward\n\n</blockquote>',
}

describe('a mention in Markdown', () => {
  for (const [what, text] of Object.entries(asks))
    it(`counts: ${what}`, () => assert.equal(named(text), true))
  for (const [what, text] of Object.entries(silent))
    it(`does not count: ${what}`, () => assert.equal(named(text), false))

  it('does not count in a quote of several lines at GitLab', () => {
    const text = '>>>\n@doorward why?\n\n```\n>>>\n'
    assert.equal(named(text, 'gitlab'), false)
    assert.equal(named('>>>\nquoted\n>>>\n\n@doorward why?', 'gitlab'), true)
    assert.equal(named(text, 'github'), true)
  })

  it('is found in a time that grows with the length of the text only', () => {
    const most = 1_000_000
    for (const part of [
      '`',
      '` `` ',
      '[',
      '[a](',
      '[]',
      '][',
      '<!--',
      '<a "',
      `<b '`,
      '<code>',
      '@doorward-',
      '\\',
      '&#1',
      '***_',
      '- ',
      '\n- ',
      '> ',
      '\n```\n',
      '(',
      '[a](b "',
      '[a](((',
      'https://',
    ]) {
      const text = `${part.repeat(most / part.length)} @doorward-x`
      const before = performance.now()
      named(text)
      const tookMs = performance.now() - before
      assert.ok(tookMs < 3000, `${JSON.stringify(part)} took ${Math.round(tookMs)} ms`)
    }
  })
})
