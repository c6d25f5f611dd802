import assert from 'node:assert/strict'
import { githubText, slackText } from '../../../../daemon/delivery/format/mentions.ts'

/** Shows a zero width space as ·. */
const shown = (text: string) => text.replaceAll('\u200b', '·')

describe('slackText', () => {
  for (const [given, wanted] of [
    ['<!channel> <!here> <!everyone>', '<·!channel> <·!here> <·!everyone>'],
    ['<!subteam^S1|x>', '<·!subteam^S1|x>'],
    ['<@U0123> <#C0123>', '<·@U0123> <·#C0123>'],
    ['&lt;!here&gt; &#60;!here> &#x3C;@U1>', '&lt;·!here&gt; &#60;·!here> &#x3C;·@U1>'],
    ['<\\!channel> <\\@U1> &commat;here', '<·\\!channel> <·\\@U1> &commat;·here'],
    ['<&#33;here> <&commat;U1>', '<·&#33;here> <·&commat;U1>'],
    ['`<!here>`\n```\n<!here>\n```', '`<·!here>`\n```\n<·!here>\n```'],
    ['@channel @here @everyone @jane', '@·channel @·here @·everyone @jane'],
    ['a <b> c < d, Array<string>, <!-- x -->', 'a <b> c < d, Array<string>, <!-- x -->'],
    ['<!DOCTYPE html> <https://a.b|c>', '<!DOCTYPE html> <https://a.b|c>'],
    ['**bold** [a](https://b.c) me@example.com', '**bold** [a](https://b.c) me@example.com'],
  ] as const)
    it(`makes ${wanted.replaceAll('\n', '⏎')}`, () => assert.equal(shown(slackText(given)), wanted))
})

describe('githubText', () => {
  const quiet: readonly (readonly [string, string])[] = [
    ['@octocat and @org/team', '@·octocat and @·org/team'],
    ['(@a) **@b** _@c_ \\@d', '(@·a) **@·b** _@·c_ \\@·d'],
    ['&#64;a &#x40;b &commat;c &#064a', '&#64;·a &#x40;·b &commat;·c &#·064·a'],
    ['@&#111;ctocat', '@·&#111;ctocat'],
    ['&#32@a &nbsp@b', '&#·32@·a &nbsp@·b'],
    ['#12 o/r#12 GH-12 gh-1', '#·12 o/r#·12 GH-·12 gh-·1'],
    ['&#35;12 &num;3 #&#49;', '&#35;·12 &num;·3 #·&#49;'],
    ['&#12 x', '&#·12 x'],
    ['[x](https://a.b/c/@d/e) http://a.b/@c', '[x](https://a.b/c/%40d/e) http://a.b/%40c'],
    [
      'https://a.b,@c a/@b http://@c xhttps://a.b/@c',
      'https://a.b,@·c a/@·b http://@·c xhttps://a.b/@·c',
    ],
    ['xhttps://a.b/#1 http://#2', 'xhttps://a.b/#·1 http://#·2'],
  ]
  const kept = [
    'me@example.com checkout@v4',
    '# heading\n#hashtag\n## 2 things',
    'a &#123; b &amp; c',
    'https://a.b/c#12 [x](https://a.b/#3)',
    'use `@types/node` and `#1`',
    '```ts\n@Injectable() // #12\n```',
    'text\n```\n@a\n```\nmore `@b` text',
    '~~~~\n```\n@a\n~~~\n@b\n~~~~',
    '<b>x</b>\n\n```\n@a\n```',
    'Array<string> in text\n```\n@a\n```',
    '<!-- sev:high -->\nUse it.\n\n```suggestion\n@Injectable() // see #12\n```',
    '<!--\nsev\n-->\n\n```suggestion\n@a\n```',
    'plain\n\n```suggestion\n@Injectable()\n```',
  ]
  // A blank line before a fence ends HTML, and a fence without indentation ends lists.
  const moved: readonly (readonly [string, string])[] = [
    [
      '<sub>P1</sub> @x\n```suggestion\n@Injectable()\n```',
      '<sub>P1</sub> @·x\n\n```suggestion\n@Injectable()\n```',
    ],
    [
      '- fix:\n  ```suggestion\n  @Input() x\n    y\n\n  ```\n  @x',
      '- fix:\n\n```suggestion\n@Input() x\n  y\n\n```\n  @·x',
    ],
    ['- ```suggestion\n  @a\n  ```', '\n```suggestion\n@a\n```'],
    ['<div>\n```\n@octocat\n```', '<div>\n\n```\n@octocat\n```'],
    ['> <div>\n```\n@octocat', '> <div>\n\n```\n@octocat'],
  ]
  for (const [given, wanted] of moved)
    it(`moves code to ${wanted.replaceAll('\n', '⏎')}`, () =>
      assert.equal(shown(githubText(given)), wanted))
  // Where it is not certain that GitHub shows code, nothing can be applied.
  for (const [given, wanted] of [
    [' ```\nx\n```\n```suggestion\n@a\n```', ' ```\nx\n```\n```\n@·a\n```'],
    ['<!--\n```suggestion\n@a\n```', '<!--\n```\n@·a\n```'],
    ['<pre>\n\n```suggestion\n@a\n```', '<pre>\n\n```\n@·a\n```'],
    ['> ```suggestion\n> @a\n> ```', '> ```\n> @·a\n> ```'],
  ] as const)
    it(`makes plain code of ${given.replaceAll('\n', '⏎')}`, () =>
      assert.equal(shown(githubText(given)), wanted))
  for (const [given, wanted] of quiet)
    it(`makes ${wanted}`, () => assert.equal(shown(githubText(given)), wanted))
  for (const text of kept)
    it(`keeps ${text.replaceAll('\n', '⏎')}`, () => assert.equal(shown(githubText(text)), text))

  // GitHub renders @octocat as text in each of these.
  for (const text of [
    '<!--\n```\nx\n-->\n```\n@octocat\n```',
    '<!--\n\n-->\n\n<pre>\n\n```\n@octocat\n```',
    ' ```\nx\n```\n@octocat',
    '- ```\n  x\n  ```\n@octocat',
    '1. a\n   ```\n   x\n   ```\n@octocat\n```',
    '> ```\n> x\n\n@octocat',
    '    ```\n@octocat',
    '```a`b\n@octocat\n```',
    '```\nx\n```` \n@octocat',
    'a ` b\n`@octocat` `',
    'a\n# ` b\n@octocat ` c',
    '| ` | @octocat ` |\n|-|-|',
    '\\` @octocat `',
    '<a href="`">@octocat `',
    'http://a.b/` @octocat `',
    'www.a.b/` @octocat `',
    '`` ` @octocat `',
    '$a ` b$ @octocat `',
    '<div>\n`@octocat`',
  ])
    it(`mentions no one in ${text.replaceAll('\n', '⏎')}`, () =>
      assert.doesNotMatch(githubText(text), /@octocat/))

  it('takes linear time', () => {
    const started = performance.now()
    for (const text of [
      '@',
      '#1',
      '&#64',
      '`',
      '<',
      'https://a.b/#1',
      'https://a.b/@c',
      '/@a',
      'a',
    ])
      githubText(text.repeat(65_000 / text.length))
    assert.ok(performance.now() - started < 3000)
  })
})
