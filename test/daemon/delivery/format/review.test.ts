import assert from 'node:assert/strict'
import { parseAnswer } from '../../../../daemon/delivery/format/review.ts'

const block = (value: unknown, fence = '```json') =>
  `${fence}\n${JSON.stringify(value, null, 2)}\n\`\`\``
const comment = { path: 'src/a.ts', line: 2, side: 'RIGHT', body: 'Why?' }
const json = JSON.stringify(comment)

describe('the blocks of JSON in an answer', () => {
  it('are taken out of the text around them', () => {
    const answer = `Good.\n\n${block({ comments: [comment] })}\n\nThat is all.`
    assert.deepEqual(parseAnswer(answer), {
      text: 'Good.\n\n\n\nThat is all.',
      comments: [comment],
    })
  })

  it('are those with their key, and other code stays in the text', () => {
    const code =
      '```ts\nconst a = { "comments": [] }\n```\n\n```json\n{"other": 1}\n```\n[a](b)\n[ ] c\n{d'
    const answer = `${code}\n${block({ comments: [comment] }, '```')}`
    assert.deepEqual(parseAnswer(answer), { text: code, comments: [comment] })
    assert.deepEqual(parseAnswer(code), { text: code, comments: [] })
  })

  it('may hold code of their own, and lack their end', () => {
    const body = 'Write:\n\n```suggestion\nlet a\n```'
    const whole = block({ comments: [{ ...comment, body }] })
    for (const answer of [
      whole,
      whole.slice(0, -4),
      whole.replaceAll('\n', '\r\n'),
      whole.replaceAll(String.raw`\n`, '\n'),
    ]) {
      const { text, comments } = parseAnswer(answer)
      assert.deepEqual([text, comments[0]?.body], ['', body])
    }
  })

  for (const [what, answer, text = ''] of [
    ['without a fence', `{"comments": [${json}]}`],
    ['without a fence, after text', `Fine.\n\n{"comments": [${json}]}`, 'Fine.'],
    [
      'in a fence in the middle of a line',
      `Fine.\`\`\`json\n{"comments": [${json}]}\n\`\`\``,
      'Fine.',
    ],
    ['in a fence on one line', `\`\`\`json {"comments": [${json}]} \`\`\``],
    ['with comments', `\`\`\`jsonc\n// Mine\n{"comments": [/* a */ ${json}] // b\n}\n\`\`\``],
    ['with trailing commas', `\`\`\`json5\n{"comments": [${json},],}\n\`\`\``],
    ['as a list', block([comment])],
    ['as a list without a fence', `[${json}]`],
    [
      'with a backslash too little',
      block({ comments: [{ ...comment, body: '!' }] }).replace('!', String.raw`Why?`),
    ],
    [
      'beside one that is wrong',
      block({ comments: [comment, { path: 'a', line: 1 }] }),
      '',
      '1 of 2',
    ],
    [
      'beside one with a quote too much',
      block({ comments: [comment, { ...comment, body: 'x' }] }).replace('"x"', '"x" y"'),
      '',
      '1 of 2',
    ],
    ['in a block that is cut', `\`\`\`json\n{"comments": [${json}, {"path": "b`, '', '1 of 2'],
  ] as const)
    it(`are read ${what}`, () => {
      const parsed = parseAnswer(answer)
      assert.deepEqual([parsed.text, parsed.comments], [text, [comment]])
    })

  it('are read together, with the verdict of a check', () => {
    const other = { ...comment, line: 3 }
    const verdict = block({ conclusion: 'failure' })
    const answer = `A\n${block({ comments: [comment] })}\nB\n${block([other])}\n${verdict}`
    assert.deepEqual(parseAnswer(answer), {
      text: 'A\n\nB',
      comments: [comment, other],
      conclusion: 'failure',
    })
  })

  it('are left out where they cannot be read, and the event says so', () => {
    for (const answer of [
      '```json\n{"comments": [}\n```',
      '```json\n{"comments": "none"}\n```',
      '{"comments": [{"path": "a", "line": 1}]}',
      '[{"path": "a", "line": 1, "body": "x"',
    ]) {
      const { text, comments, note } = parseAnswer(answer)
      assert.deepEqual([text, comments], ['', []])
      assert.equal(note, '1 of 1 comments cannot be read: left out')
    }
  })

  it('take a line as text, and a side in small letters', () => {
    const sloppy = [
      { path: 'a', line: '12', side: 'left', body: 'x', severity: 'high' },
      { path: 'a', line: null, body: 'y' },
      { path: 'a', line: 1.5, side: 'middle', body: 'z', start_line: null },
      { path: 'a', line: 3, body: 'z', start_line: '2' },
      { path: 'a', line: 3, body: 'z', start_line: 'two', start_side: 'left' },
    ]
    assert.deepEqual(parseAnswer(block({ comments: sloppy })).comments, [
      { path: 'a', line: 12, side: 'LEFT', body: 'x' },
      { path: 'a', line: undefined, side: 'RIGHT', body: 'y' },
      { path: 'a', line: undefined, side: 'RIGHT', body: 'z' },
      { path: 'a', line: 3, side: 'RIGHT', body: 'z', startLine: 2, startSide: 'RIGHT' },
      { path: 'a', line: 3, side: 'RIGHT', body: 'z', startLine: 0, startSide: 'LEFT' },
    ])
  })

  it('are looked for in a long hostile answer in little time', () => {
    const start = performance.now()
    for (const piece of [
      '```json\n"comments"\n',
      '```json\n{"comments": [\n```\n',
      'x ```json [\n',
      '{"comments": [\n',
      '{"',
      '[/*\n',
      '[\n',
    ])
      parseAnswer(piece.repeat(100_000 / piece.length))
    assert.ok(performance.now() - start < 3000)
  })
})
