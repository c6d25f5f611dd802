import assert from 'node:assert/strict'
import {
  takeJsonBlock,
  listLines,
  parseReview,
  placeComments,
} from '../../../../daemon/delivery/format/review.ts'

const block = (value: unknown, fence = '```json') =>
  `${fence}\n${JSON.stringify(value, null, 2)}\n\`\`\``
const comment = { path: 'src/a.ts', line: 2, side: 'RIGHT', body: 'Why?' }

describe('the block of JSON in an answer', () => {
  it('is taken out of the text around it', () => {
    const answer = `Good.\n\n${block({ comments: [comment] })}\n\nThat is all.`
    assert.deepEqual(parseReview(answer), {
      text: 'Good.\n\n\nThat is all.',
      comments: [comment],
    })
  })

  it('is the last one with its key, and other code stays in the text', () => {
    const code = '```ts\nconst a = { "comments": [] }\n```\n\n```json\n{"other": 1}\n```'
    const answer = `${code}\n${block({ comments: [comment] }, '```')}`
    assert.deepEqual(parseReview(answer), { text: code, comments: [comment] })
    assert.deepEqual(parseReview(code), { text: code, comments: [] })
  })

  it('may hold code of its own, and lack its end', () => {
    const body = 'Write:\n\n```suggestion\nlet a\n```'
    const whole = block({ comments: [{ ...comment, body }] })
    for (const answer of [whole, whole.slice(0, -4), whole.replaceAll('\n', '\r\n')])
      assert.equal(parseReview(answer).comments[0]?.body, body)
  })

  it('stays in the text when it cannot be read, and the event says so', () => {
    for (const answer of [
      '```json\n{"comments": [}\n```',
      '```json\n{"comments": "none"}\n```',
      '```json\n{"comments": [{"path": "a", "line": 1}]}\n```',
    ]) {
      const { text, comments, note } = parseReview(answer)
      assert.deepEqual([text, comments], [answer, []])
      assert.match(note ?? '', /cannot be read/)
    }
  })

  it('takes a line as text, and a side in small letters', () => {
    const sloppy = [
      { path: 'a', line: '12', side: 'left', body: 'x', severity: 'high' },
      { path: 'a', line: null, body: 'y' },
      { path: 'a', line: 1.5, side: 'middle', body: 'z' },
    ]
    assert.deepEqual(parseReview(block({ comments: sloppy })).comments, [
      { path: 'a', line: 12, side: 'LEFT', body: 'x' },
      { path: 'a', line: undefined, side: 'RIGHT', body: 'y' },
      { path: 'a', line: undefined, side: 'RIGHT', body: 'z' },
    ])
  })

  it('is found in a long answer of fences without an end in little time', () => {
    const answer = '```json\n"comments"\n'.repeat(100_000)
    const start = performance.now()
    assert.equal(takeJsonBlock(answer, 'comments').isUnreadable, true)
    assert.ok(performance.now() - start < 2000)
  })
})

describe('the lines of a diff', () => {
  const patch = [
    '@@ -1,3 +1,4 @@ function a() {',
    ' one',
    '-two',
    '+TWO',
    '+more',
    ' three',
    '@@ -40 +41,0 @@',
    '--- a line with dashes',
    '\\ No newline at end of file',
  ].join('\n')

  it('are those that the new and the old file show', () => {
    assert.deepEqual([...listLines(patch)].toSorted(), [
      'LEFT 1',
      'LEFT 2',
      'LEFT 3',
      'LEFT 40',
      'RIGHT 1',
      'RIGHT 2',
      'RIGHT 3',
      'RIGHT 4',
    ])
  })

  it('take comments, and no other line, file or side does', () => {
    const at = (path: string, line: number | undefined, side: 'LEFT' | 'RIGHT' = 'RIGHT') => ({
      path,
      line,
      side,
      body: 'x',
    })
    const fits = [at('a', 4), at('a', 40, 'LEFT')]
    const others = [at('a', 5), at('a', 40), at('a', undefined), at('b', 1), at('__proto__', 1)]
    const patches = new Map([['a', patch]])
    assert.deepEqual(placeComments([...fits, ...others], patches), { placed: fits, others })
  })

  it('take at most 100 comments', () => {
    const many = Array.from(
      { length: 130 },
      () => ({ path: 'a', line: 1, side: 'RIGHT', body: 'x' }) as const,
    )
    const { placed, others } = placeComments(many, new Map([['a', patch]]))
    assert.deepEqual([placed.length, others.length], [100, 30])
  })
})
