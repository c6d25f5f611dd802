import assert from 'node:assert/strict'
import { firstMismatch } from '../../../../daemon/webhook/rules/choose.ts'
import { filterOf, isOneOf } from '../../../support/filter.ts'
import { scopeOf } from '../../../support/scope.ts'

const payload: unknown = JSON.parse(`{
  "action": "opened", "number": 7, "big": 1e21, "draft": false, "nothing": null, "empty": "",
  "labels": [{"name": "bug"}, {"name": "ui"}], "user": {"login": "octocat"}
}`)
const holds = (path: string, ...expected: string[]) =>
  firstMismatch(scopeOf(payload), [isOneOf(path.split('.'), expected)]) === undefined

describe('firstMismatch', () => {
  const yes: readonly [string, ...string[]][] = [
    ['action', 'opened'],
    ['action', 'closed', 'opened'],
    ['number', '7'],
    ['big', '1e+21'],
    ['draft', 'false'],
    ['empty', ''],
    ['labels.1.name', 'bug', 'ui'],
    ['user.login', 'octocat'],
  ]
  for (const [path, ...expected] of yes)
    it(`holds for ${path} = ${expected.join(' or ')}`, () => assert.ok(holds(path, ...expected)))

  const no: readonly [string, ...string[]][] = [
    ['action', 'Opened'],
    ['action', 'opened '],
    ['number', '07'],
    ['draft', '0'],
    ['nothing', 'null'],
    ['nothing', ''],
    ['missing', ''],
    ['labels', '[object Object],[object Object]'],
    ['labels.length', '2'],
    ['labels.00.name', 'bug'],
    ['action.0', 'o'],
    ['__proto__', '[object Object]'],
    ['labels.-1.name', 'ui'],
    ['constructor.name', 'Object'],
    ['user.constructor.name', 'Object'],
  ]
  for (const [path, ...expected] of no)
    it(`does not hold for ${path} = ${JSON.stringify(expected[0])}`, () =>
      assert.ok(!holds(path, ...expected)))

  it('gives the first condition that does not hold, and none when every one holds', () => {
    const opened = isOneOf(['action'], ['opened'])
    const other = isOneOf(['number'], ['8'])
    assert.equal(firstMismatch(scopeOf(payload), []), undefined)
    assert.equal(firstMismatch(scopeOf(payload), [opened, opened]), undefined)
    assert.equal(firstMismatch(scopeOf(payload), [opened, other]), other)
    assert.equal(firstMismatch(scopeOf(payload), [other, opened]), other)
  })

  it('does not hold for any condition on null', () => {
    assert.ok(firstMismatch(scopeOf(null), [isOneOf(['a'], [''])]))
  })
})

const github: unknown = JSON.parse(`{
  "ref": "refs/heads/release/2.4", "deleted": false, "merged_at": null, "size": 12, "id": "90071992547409931",
  "price": "4.50", "title": "fix: a\\nsecond line", "empty": [], "version": "v1 [beta]",
  "sender": { "login": "dependabot[bot]", "type": "Bot" },
  "labels": [{ "name": "docs" }, { "name": "bug" }, null], "topics": ["ci", 7, true],
  "metadata": { "labels": { "app.kubernetes.io/name": "web" } }, "headers": { "x": "of the payload" },
  "commits": [{ "added": ["a.ts", "docs/b.md"], "size": 3 }, { "added": [], "size": 40 }]
}`)
const scope = scopeOf(github, {
  headers: { 'x-github-event': 'push', 'x-empty': '', 'x-none': undefined },
})
const matches = (filter: string) => firstMismatch(scope, filterOf(filter)) === undefined

describe('a condition', () => {
  const yes = [
    'deleted: false',
    'ref: { is: [x, refs/heads/release/2.4] }',
    'size: { in: [11, 12] }',
    'sender.login: { not: "renovate[bot]" }',
    'sender.login: { not_in: [a, b] }',
    'ref: { glob: refs/heads/release/* }',
    'ref: { glob: ["x*", "**/2.?"] }',
    'sender.login: { glob: "*[bot]" }',
    'version: { glob: "v? [beta]" }',
    'ref: { regex: ^refs/heads/ }',
    'title: { regex: "(?i)FIX" }',
    'title: { regex: ["^x", "(?m)line$"] }',
    'ref: { contains: release }',
    'ref: { contains: [nothing, release] }',
    'topics: { contains: ci }',
    'topics: { contains: [x, true] }',
    'empty: { exists: true }',
    'merged_at: { exists: false }',
    'missing.deeper: { exists: false }',
    'size: { above: 11 }',
    'size: { above: 11, below: 12.5 }',
    'price: { above: 4.4, below: 4.6 }',
    'id: { above: 1000 }',
    'ref: { glob: "refs/**", not: refs/heads/main, contains: release }',
    'metadata.labels["app.kubernetes.io/name"]: web',
    'labels[1].name: bug',
  ]
  for (const filter of yes) it(`matches ${filter}`, () => assert.ok(matches(filter)))

  const no = [
    'ref: { not: refs/heads/release/2.4 }',
    'size: { not_in: [11, 12] }',
    'ref: { glob: refs/heads/* }',
    'ref: { glob: REFS/** }',
    'sender.login: { glob: "[a-z]*" }',
    'ref: { regex: ^heads }',
    'title: { regex: "a.second" }',
    'ref: { contains: Release }',
    'topics: { contains: c }',
    'size: { contains: 1 }',
    'labels: { contains: bug }',
    'merged_at: { exists: true }',
    'missing: { exists: true }',
    'size: { above: 12 }',
    'size: { below: 12 }',
    'size: { above: 5, below: 9 }',
    'ref: { above: 0 }',
    'merged_at: { below: 1 }',
    'topics: ci',
    'labels.name: bug',
    'metadata.labels.app.kubernetes.io/name: web',
    'missing["a.b"].c: x',
    'missing: { glob: "*" }',
    'merged_at: { contains: "" }',
    'constructor: { exists: true }',
    'sender.__proto__.constructor: { exists: true }',
    'topics.length: { above: 0 }',
  ]
  for (const filter of no) it(`does not match ${filter}`, () => assert.ok(!matches(filter)))

  it('that something is not a value also holds where there is none', () => {
    for (const path of [
      'missing',
      'missing.deeper',
      'merged_at',
      'sender',
      'topics',
      'labels[7].name',
    ])
      for (const test of ['not: x', 'not_in: [x, y]']) {
        assert.ok(matches(`${path}: { ${test} }`), path)
        assert.equal(
          matches(`${path}: { ${test}, exists: true }`),
          ['sender', 'topics'].includes(path),
        )
      }
  })
})

describe('a path with [*]', () => {
  it('matches with any item', () => {
    for (const filter of [
      'labels[*].name: bug',
      'labels[*].name: [x, docs]',
      'labels[*].name: { glob: "b*" }',
      'commits[*].added[*]: docs/b.md',
      'commits[*].added: { contains: a.ts }',
      'commits[*].size: { above: 20 }',
      'topics[*]: 7',
    ])
      assert.ok(matches(filter), filter)
    for (const filter of [
      'labels[*].name: ui',
      'labels[*]: bug',
      'missing[*].name: bug',
      'sender[*]: Bot',
      'empty[*]: ""',
      'labels[*].missing: { exists: true }',
      'empty[*]: { exists: true }',
    ])
      assert.ok(!matches(filter), filter)
  })

  it('matches with one item that fits all tests', () => {
    assert.ok(matches('commits[*].size: { above: 20, below: 50 }'))
    assert.ok(!matches('commits[*].size: { above: 5, below: 30 }'))
  })

  it('matches a negation only if no item has the value', () => {
    assert.ok(!matches('labels[*].name: { not: bug }'))
    assert.ok(!matches('labels[*].name: { not: bug, glob: d* }'))
    assert.ok(matches('labels[*].name: { not: ui, glob: d* }'))
    for (const path of ['empty[*]', 'missing[*].name', 'missing.deeper[*]'])
      assert.ok(matches(`${path}: { not: x, exists: false }`), path)
  })
})

describe('any and none', () => {
  it('hold filters of which one or none matches', () => {
    for (const filter of [
      '{ any: [{ size: 1 }, { ref: { contains: release }, deleted: false }] }',
      '{ none: [{ size: 1 }, { ref: { contains: release }, deleted: true }] }',
      '{ size: 12, any: [{ deleted: true }, { any: [{ size: 12 }] }], none: [{ none: [{ size: 12 }] }] }',
    ])
      assert.ok(matches(filter), filter)
    for (const filter of [
      '{ any: [{ size: 1 }, { ref: { contains: release }, deleted: true }] }',
      '{ none: [{ size: 1 }, { deleted: false }] }',
      '{ size: 11, any: [{ size: 12 }] }',
    ])
      assert.ok(!matches(filter), filter)
  })

  it('are names of fields in quotes', () => {
    const payload = scopeOf({ any: 'a', none: 'b' })
    assert.equal(
      firstMismatch(payload, filterOf(`{ '["any"]': a, '["none"]': { not: a } }`)),
      undefined,
    )
  })

  it('are named by the first mismatch', () => {
    const mismatch = firstMismatch(scope, filterOf('{ size: 12, none: [{ size: 12 }] }'))
    assert.equal(mismatch?.text, 'none')
  })
})

describe('a header in a filter', () => {
  it('is read in lower case, and is not a field of the payload', () => {
    assert.ok(matches('headers.x-github-event: push'))
    assert.ok(matches('headers.X-GitHub-Event: { glob: pu* }'))
    assert.ok(matches('headers["x-github-event"]: push'))
    assert.ok(matches('{ headers.x-none: { exists: false }, headers.x-empty: "" }'))
    assert.ok(!matches('headers.x: of the payload'))
    assert.ok(matches(`'["headers"].x': of the payload`))
  })
})

describe('a pattern', () => {
  it('takes a time that grows with its value alone', () => {
    const bombs = ['(a+)+$', '(a|aa)+$', '(a|a)*c', '([a-z]+)*c$', '(.*)(.*)(.*)(.*)(.*)(.*)c']
    const value = `${'a'.repeat(60_000)}!`
    for (const bomb of bombs) {
      const filter = filterOf(`text: { regex: '${bomb}' }`)
      assert.ok(firstMismatch(scopeOf({ text: value }), filter), bomb)
    }
    const stars = filterOf(`text: { glob: '${'*a'.repeat(60)}*c' }`)
    assert.ok(firstMismatch(scopeOf({ text: value }), stars))
    assert.ok(
      firstMismatch(scopeOf({ text: '1'.repeat(1024 * 1024) }), filterOf('text: { above: 1 }')),
    )
  })

  it('reads the beginning of a long value, and a glob all or nothing', () => {
    const long = { text: `a${'b'.repeat(70_000)}c` }
    assert.equal(firstMismatch(scopeOf(long), filterOf('text: { regex: ^ab }')), undefined)
    for (const pattern of ["{ regex: 'c$' }", "{ glob: 'a**' }"])
      assert.ok(firstMismatch(scopeOf(long), filterOf(`text: ${pattern}`)), pattern)
  })
})

describe('conditions on text with line ends', () => {
  const bodies = ['/review', '/review\r\n', '/review\r\nplease', 'hi\r\n/review\r\nthanks']
  const matching = (filter: string) =>
    bodies.map(
      (body) => firstMismatch(scopeOf({ comment: { body } }), filterOf(filter)) === undefined,
    )

  it('find a line in a comment that a browser sent', () =>
    assert.deepEqual(matching("comment.body: { regex: '(?m)^/review$' }"), [
      true,
      true,
      true,
      true,
    ]))

  it('take a last line end for none, with is, not and in', () => {
    assert.deepEqual(matching('comment.body: /review'), [true, true, false, false])
    assert.deepEqual(matching('comment.body: [/review, /fix]'), [true, true, false, false])
    assert.deepEqual(matching('comment.body: { not: /review }'), [false, false, true, true])
    assert.deepEqual(matching('comment.body: |\n  /review\n'), [true, true, false, false])
  })

  it('compare several lines, however they end', () => {
    assert.deepEqual(matching('comment.body: "/review\\nplease"'), [false, false, true, false])
    assert.deepEqual(matching('comment.body: { contains: "/review\\n" }'), [
      false,
      true,
      true,
      true,
    ])
    assert.deepEqual(matching("comment.body: { glob: '/review?please' }"), [
      false,
      false,
      true,
      false,
    ])
  })
})
