import assert from 'node:assert/strict'
import { DoorwardError } from '../../shared/errors.ts'
import { each, formatBelow, formatPath, parsePath } from '../../shared/paths.ts'

const refused = (text: string, message: RegExp) =>
  assert.throws(
    () => parsePath(text),
    (error: unknown) => {
      assert.ok(error instanceof DoorwardError)
      assert.equal(error.code, 'config-invalid')
      assert.match(error.message, message)
      return true
    },
  )

const cannotBeRead = /cannot be read: paths are written like /

describe('a path', () => {
  it('is made of names, items and any item', () => {
    for (const [text, path] of [
      ['a', ['a']],
      ['pull_request.head.sha', ['pull_request', 'head', 'sha']],
      ['commits.0.id', ['commits', '0', 'id']],
      ['commits[0].id', ['commits', '0', 'id']],
      ['labels[*].name', ['labels', each, 'name']],
      ['commits[*].added[*]', ['commits', each, 'added', each]],
      ['[*].a', [each, 'a']],
      ['labels["app.kubernetes.io/name"]', ['labels', 'app.kubernetes.io/name']],
      ["a['b.c'].d", ['a', 'b.c', 'd']],
      ['["say \\"x\\" \\\\"].b', ['say "x" \\', 'b']],
      ['["*"]["-1"]["a|b"][""]', ['*', '-1', 'a|b', '']],
      ['app.kubernetes.io/name', ['app', 'kubernetes', 'io/name']],
      ['first name.ü.x-y', ['first name', 'ü', 'x-y']],
      ['headers.x-github-event', ['headers', 'x-github-event']],
      ['toString.hasOwnProperty', ['toString', 'hasOwnProperty']],
    ] as const) {
      assert.deepEqual(parsePath(text), path)
      assert.deepEqual(parsePath(formatPath(path)), path)
    }
  })

  it('has no empty name', () => {
    refused('', /^the path is empty$/)
    for (const text of ['.', '.a', 'a.', 'a..b', 'a[0].']) refused(text, cannotBeRead)
  })

  it('is refused as other languages write it', () => {
    for (const text of [
      'labels.*.name',
      'a.*',
      'labels[].name',
      'list.-1.name',
      'list[-1]',
      'labels[bug]',
      'a[?(@.b)]',
      'a[1:2]',
      'a["b]',
      'a[0',
      'a]b',
      'a[0]b',
      'a."b.c"',
      'a.["b.c"]',
      'a | default: x',
      'ref*',
      '$.a.b',
    ])
      refused(text, cannotBeRead)
  })

  it('is written below a root', () => {
    assert.equal(formatBelow('event', []), 'event')
    assert.equal(formatBelow('event', ['a', '0', 'b.c', each]), 'event.a.0["b.c"][*]')
  })

  it('is read in a time that grows with its length alone', () => {
    assert.equal(parsePath('a[0]'.repeat(2000).replaceAll('a', '.a').slice(1)).length, 4000)
    refused(`a[${'"'.repeat(20_000)}`, cannotBeRead)
  })
})
