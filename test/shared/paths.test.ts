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
    for (const text of ['.', '.a', 'a.', 'a..b', 'a[0].'])
      refused(text, /has an empty name between its dots$/)
  })

  it('is refused with the right form for what other languages write', () => {
    for (const [text, message] of [
      ['labels.*.name', /: write labels\[\*\]\.name$/],
      ['a.*', /: write a\[\*\]$/],
      ['labels[].name', /: labels\[\*\]\.name is any item$/],
      ['list.-1.name', /cannot count from the end/],
      ['list[-1]', /cannot count from the end/],
      ['labels[bug]', /needs quotes: \["bug"\]$/],
      ['a[?(@.b)]', /nothing else$/],
      ['a[1:2]', /nothing else$/],
      ['a["b]', /nothing else$/],
      ['a[0', /has a \[ without its \]: a name with .* is written \["name"\]$/],
      ['a]b', /needs a dot or a \[ before "\]b"$/],
      ['a[0]b', /needs a dot or a \[ before "b"$/],
      ['a."b.c"', /cannot be read from "b\.c" on: a name with .* is written \["name"\]$/],
      ['a.["b.c"]', /has a dot before a \[: write a\["b\.c"\]$/],
      ['a | default: x', /cannot have \| in it/],
      ['ref*', /can have \* only as \[\*\]/],
      ['$.a.b', /needs no \$: write a\.b$/],
    ] as const)
      refused(text, message)
  })

  it('is written below a root', () => {
    assert.equal(formatBelow('event', []), 'event')
    assert.equal(formatBelow('event', ['a', '0', 'b.c', each]), 'event.a.0["b.c"][*]')
  })

  it('is read in a time that grows with its length alone', () => {
    assert.equal(parsePath('a[0]'.repeat(2000).replaceAll('a', '.a').slice(1)).length, 4000)
    refused(`a[${'"'.repeat(20_000)}`, /nothing else|without/)
  })
})
