import assert from 'node:assert/strict'
import { listLines, placeComments } from '../../../../daemon/delivery/format/place-comments.ts'
import type { LineComment } from '../../../../daemon/delivery/format/review.ts'

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
  const patches = new Map([['a', patch]])
  const at = (path: string, line: number | undefined, side: 'LEFT' | 'RIGHT' = 'RIGHT') => ({
    path,
    line,
    side,
    body: 'x',
  })
  const placed = (comments: readonly LineComment[], given = patches) =>
    placeComments(comments, given).placed.map(({ path, line, side, start, body }) => [
      path,
      ...(start ? [start.side, start.line] : []),
      side,
      line,
      body,
    ])

  it('are those that the new and the old file show', () => {
    assert.deepEqual([...listLines(patch).keys()].toSorted(), [
      'LEFT 1',
      'LEFT 2',
      'LEFT 3',
      'LEFT 40',
      'RIGHT 1',
      'RIGHT 2',
      'RIGHT 3',
      'RIGHT 4',
    ])
    const { left, right } = listLines(patch).get('RIGHT 4') ?? {}
    assert.deepEqual([left, right], [3, 4])
  })

  it('take comments, and no other line, file or side does', () => {
    const fits = [at('a', 4), at('a', 40, 'LEFT')]
    const others = [at('a', 5), at('a', 40), at('a', undefined), at('b', 1), at('__proto__', 1)]
    assert.deepEqual(placed([...fits, ...others]), [
      ['a', 'RIGHT', 4, 'x'],
      ['a', 'LEFT', 40, 'x'],
    ])
    assert.deepEqual(placeComments([...fits, ...others], patches).others, others)
  })

  it('take a comment on several lines of one hunk, in either order', () => {
    const several = (startLine: number, startSide: 'LEFT' | 'RIGHT', line: number) => ({
      ...at('a', line),
      startLine,
      startSide,
    })
    assert.deepEqual(
      placed([several(2, 'RIGHT', 3), several(3, 'RIGHT', 2), several(2, 'LEFT', 3)]),
      [
        ['a', 'RIGHT', 2, 'RIGHT', 3, 'x'],
        ['a', 'RIGHT', 2, 'RIGHT', 3, 'x'],
        ['a', 'LEFT', 2, 'RIGHT', 3, 'x'],
      ],
    )
    assert.deepEqual(placed([several(3, 'RIGHT', 3)]), [['a', 'RIGHT', 3, 'x']])
  })

  it('take one on lines of two hunks at its last line, with plain code', () => {
    const body = 'Write:\n\n```suggestion\nx\n```'
    const plain = 'Write:\n\n```\nx\n```'
    const far = { path: 'a', line: 40, side: 'LEFT', startLine: 2, body } as const
    const unreadable = { path: 'a', line: 3, side: 'RIGHT', startLine: 0, body } as const
    assert.deepEqual(placed([far, unreadable]), [
      ['a', 'LEFT', 40, `lines 2 to 40:\n\n${plain}`],
      ['a', 'RIGHT', 3, `line 3:\n\n${plain}`],
    ])
  })

  it('take a path with a prefix only where it names no other file', () => {
    assert.deepEqual(
      placed([at('b/a', 4), at('./a', 4), at('c/a', 4)]).map(([path]) => path),
      ['a', 'a'],
    )
    const both = new Map([...patches, ['b/a', '']])
    assert.deepEqual(placed([at('b/a', 4)], both), [])
  })

  it('take at most 100 comments', () => {
    const many = Array.from({ length: 130 }, () => at('a', 1))
    const { placed: fitting, others } = placeComments(many, patches)
    assert.deepEqual([fitting.length, others.length], [100, 30])
  })
})
