import assert from 'node:assert/strict'
import { firstMismatch } from '../../../daemon/webhook/filter.ts'

const payload: unknown = JSON.parse(`{
  "action": "opened", "number": 7, "big": 1e21, "draft": false, "nothing": null, "empty": "",
  "labels": [{"name": "bug"}, {"name": "ui"}], "user": {"login": "octocat"}
}`)
const holds = (path: string, ...expected: string[]) =>
  firstMismatch(payload, [{ text: path, path: path.split('.'), expected }]) === undefined

describe('firstMismatch', () => {
  const yes: readonly [string, ...string[]][] = [
    ['action', 'opened'],
    ['action', 'closed', 'opened'],
    ['number', '7'],
    ['big', '1e+21'],
    ['draft', 'false'],
    ['empty', ''],
    ['labels.0.name', 'bug'],
    ['labels.1.name', 'bug', 'ui'],
    ['user.login', 'octocat'],
  ]
  for (const [path, ...expected] of yes)
    it(`holds for ${path} = ${expected.join(' or ')}`, () => assert.ok(holds(path, ...expected)))

  const no: readonly [string, ...string[]][] = [
    ['action', 'Opened'],
    ['action', 'opened '],
    ['action', 'open'],
    ['number', '7.0'],
    ['number', '07'],
    ['draft', ''],
    ['draft', '0'],
    ['nothing', 'null'],
    ['nothing', ''],
    ['missing', 'undefined'],
    ['missing', ''],
    ['missing.deeper', ''],
    ['labels', 'bug'],
    ['labels', '[object Object],[object Object]'],
    ['labels.length', '2'],
    ['labels.2.name', 'bug'],
    ['labels.-1.name', 'ui'],
    ['labels.00.name', 'bug'],
    ['user', '[object Object]'],
    ['action.length', '6'],
    ['action.0', 'o'],
    ['__proto__', '[object Object]'],
    ['constructor.name', 'Object'],
    ['user.constructor.name', 'Object'],
  ]
  for (const [path, ...expected] of no)
    it(`does not hold for ${path} = ${JSON.stringify(expected[0])}`, () =>
      assert.ok(!holds(path, ...expected)))

  it('gives the first condition that does not hold, and none when every one holds', () => {
    const opened = { text: 'action', path: ['action'], expected: ['opened'] }
    const other = { text: 'number', path: ['number'], expected: ['8'] }
    assert.equal(firstMismatch(payload, []), undefined)
    assert.equal(firstMismatch(payload, [opened, opened]), undefined)
    assert.equal(firstMismatch(payload, [opened, other]), other)
    assert.equal(firstMismatch(payload, [other, opened]), other)
  })

  it('does not hold for any condition on null', () => {
    assert.ok(firstMismatch(null, [{ text: 'a', path: ['a'], expected: [''] }]))
  })
})
