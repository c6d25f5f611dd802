import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import {
  type HelpTopic,
  helpTopics,
  readHelpTopic,
  troubleEntries,
} from '../../../cli/commands/help.ts'
import { renderMarkdown } from '../../../cli/terminal/markdown.ts'
import { measureWidth } from '../../../shared/text.ts'
import { packageFolder } from '../../../shared/version.ts'
import { run } from '../support/cli.ts'

const plain = { paint: (_: unknown, text: string) => text, linked: () => '' }
const painted = {
  paint: (style: unknown, text: string) => `<${String(style)}>${text}</>`,
  linked: () => '',
}

describe('cli: help', () => {
  it('has a topic for every page of the documents that is for users', async () => {
    const names = (await readdir(new URL('docs/', packageFolder))).filter(
      (name) => name.endsWith('.md') && name !== 'threat-model.md',
    )
    assert.deepEqual(
      Object.keys(helpTopics).toSorted(),
      names.map((name) => name.replace(/\.md$/, '')).toSorted(),
    )
  })

  for (const topic of Object.keys(helpTopics))
    it(`prints ${topic} within 80 columns`, async () => {
      const { code, stdout, stderr } = await run(['help', topic])
      assert.deepEqual([code, stderr], [0, ''])
      const lines = stdout.split('\n')
      assert.ok(lines.length > 20)
      // Code and addresses stay whole, to be copied.
      const wide = lines.filter(
        (line) => measureWidth(line) > 80 && !/^ {4}|https?:|^ *\S+$/.test(line),
      )
      assert.deepEqual(wide, [])
      assert.doesNotMatch(stdout, /\*\*\w|\w\*\*|^#+ |^\|/m)
    })

  it('lists commands and topics', async () => {
    const { code, stdout } = await run(['help'])
    assert.equal(code, 0)
    assert.match(stdout, /^Usage: doorward/)
    for (const topic of Object.keys(helpTopics))
      assert.match(stdout, new RegExp(`^  ${topic} `, 'm'))
  })

  it('shows the help of a command, and of one in a group', async () => {
    assert.match((await run(['help', 'events'])).stdout, /^Usage: doorward events/)
    assert.match((await run(['help', 'events', 'retry'])).stdout, /^Usage: doorward events retry/)
  })

  it('explains an error code', async () => {
    const { code, stdout } = await run(['help', 'callback-port-in-use'])
    assert.equal(code, 0)
    assert.match(stdout, /^`callback-port-in-use`\n\nAnother program uses port 53174/)
    assert.doesNotMatch(stdout, /callback-invalid/)
    assert.ok((await troubleEntries()).size > 60)
  })

  it('gives a page as Markdown with --json', async () => {
    const { stdout } = await run(['help', 'targets', '--json'])
    const page = JSON.parse(stdout) as { topic: string; text: string }
    assert.equal(page.topic, 'targets')
    assert.match(page.text, /^# Where answers go\n/)
  })

  const unknown: readonly (readonly [readonly string[], RegExp])[] = [
    [['webhoks'], /no command or topic "webhoks"\nhint: did you mean "webhooks"\?/],
    [['signature-invald'], /did you mean "signature-invalid"\?/],
    [['oauth', 'lgin'], /no command "lgin" of oauth\nhint: did you mean "login"\?/],
    [['nothing', 'like', 'it'], /doorward help lists commands and topics/],
    [['__proto__'], /no command or topic/],
    [['../README'], /no command or topic/],
  ]
  for (const [words, message] of unknown)
    it(`ends with 2 for ${words.join(' ')}, with the nearest`, async () => {
      const { code, stdout, stderr } = await run(['help', ...words])
      assert.deepEqual([code, stdout], [2, ''])
      assert.match(stderr, message)
    })

  it('fits a terminal of 40 columns', async () => {
    for (const topic of Object.keys(helpTopics) as HelpTopic[]) {
      const lines = renderMarkdown(await readHelpTopic(topic), { width: 40, ...plain })
      const wide = lines.filter(
        (line) => measureWidth(line) > 40 && !/^ {4}|https?:|^ *\S+$/.test(line),
      )
      assert.deepEqual(wide, [], topic)
    }
  })
})

describe('cli: Markdown on a terminal', () => {
  const lines = (text: string, width = 30) => renderMarkdown(text, { width, ...plain })

  it('wraps paragraphs and lists, and keeps code as it is', () => {
    assert.deepEqual(
      lines(
        '# Title\n\none two three four five six seven\n\n- alpha beta gamma delta epsilon\n- b\n\n```sh\na   very long line of code that is not wrapped\n```',
      ),
      [
        'Title',
        '',
        'one two three four five six',
        'seven',
        '',
        '- alpha beta gamma delta',
        '  epsilon',
        '- b',
        '',
        '    a   very long line of code that is not wrapped',
      ],
    )
  })

  it('numbers lists and indents what belongs to an item', () => {
    assert.deepEqual(lines('1. one\n2. two\n\n   ```yaml\n   a: 1\n   ```'), [
      '1. one',
      '2. two',
      '',
      '       a: 1',
    ])
  })

  it('shows the rows of a table one after the other', () => {
    const table =
      '| key | type | meaning |\n| --- | --- | --- |\n| `a\\|b` | | the first of all letters |\n| b | text | next |'
    assert.deepEqual(lines(table), [
      '`a|b`',
      '  meaning: the first of all',
      '  letters',
      '',
      'b',
      '  type: text',
      '  meaning: next',
    ])
    assert.deepEqual(lines('| a | what |\n| --- | --- |\n| b | next |'), ['b', '  next'])
  })

  it('paints headings, bold text and code, and marks code where there is no colour', () => {
    assert.deepEqual(renderMarkdown('## A `b`\n\n**c** `d e`', { width: 30, ...painted }), [
      '<bold>A <cyan>b</></>',
      '',
      '<bold>c</> <cyan>d e</>',
    ])
    assert.deepEqual(lines('use `d e`'), ['use `d e`'])
  })

  it('names addresses of links, and leaves pictures and comments out', () => {
    const look = { width: 60, paint: plain.paint, linked: (href: string) => `(${href})` }
    assert.deepEqual(
      renderMarkdown('<!-- made -->\n\n![alt](a.png)\n\n[text](https://example.com)', look),
      ['text (https://example.com)'],
    )
  })
})
