import assert from 'node:assert/strict'
import { valueAt } from '../../../daemon/util/payload-path.ts'
import { each } from '../../../shared/paths.ts'

const payload: unknown = JSON.parse(`{
  "a": {"b": [10, {"c": "text"}, [20]]}, "n": null, "f": false, "z": 0, "e": "",
  "0": "zero", "length": "own", "__proto__": {"x": "own proto"}, "a.b": "dotted", "": "empty"
}`)

describe('valueAt', () => {
  const found: readonly [readonly string[], unknown][] = [
    [['a', 'b', '0'], 10],
    [['a', 'b', '1', 'c'], 'text'],
    [['a', 'b', '2', '0'], 20],
    [['n'], null],
    [['f'], false],
    [['z'], 0],
    [['e'], ''],
    [['0'], 'zero'],
    [['length'], 'own'],
    [[''], 'empty'],
    // Refused when a definition is loaded; even so only what the sender wrote can be reached.
    [['__proto__', 'x'], 'own proto'],
  ]
  for (const [path, value] of found)
    it(`finds ${JSON.stringify(path)}`, () => assert.equal(valueAt(payload, path), value))

  const missing: readonly (readonly string[])[] = [
    ['nothing'],
    ['a', 'nothing', 'more'],
    ['a', 'b', '3'],
    ['a', 'b', '-1'],
    ['a', 'b', '00'],
    ['a', 'b', '01'],
    ['a', 'b', '+1'],
    ['a', 'b', '1.0'],
    ['a', 'b', '1e0'],
    ['a', 'b', ' 1'],
    ['a', 'b', ''],
    ['a', 'b', '４'],
    ['a', 'b', '4294967295'],
    ['a', 'b', '99999999999999999999'],
    ['a', 'b', 'length'],
    ['a', 'b', 'map'],
    ['a', 'b', 'constructor'],
    ['a', 'b', '1', 'c', '0'],
    ['a', 'b', '1', 'c', 'length'],
    ['a', 'b', '0', 'toFixed'],
    ['n', 'x'],
    ['f', 'valueOf'],
    ['a', 'toString'],
    ['a', 'hasOwnProperty'],
    ['a', 'constructor', 'name'],
    ['a', '__proto__'],
    ['a', '__proto__', 'toString'],
    ['constructor', 'prototype'],
  ]
  for (const path of missing)
    it(`finds nothing at ${JSON.stringify(path)}`, () =>
      assert.equal(valueAt(payload, path), undefined))

  it('gives the whole payload for the empty path', () => {
    assert.equal(valueAt(payload, []), payload)
  })

  it('finds all values of the items of a list', () => {
    const push = {
      commits: [{ id: 1, added: ['a', 'b'] }, { added: [] }, null, { id: null, added: ['c'] }],
      map: { x: { id: 1 } },
    }
    assert.deepEqual(valueAt(push, ['commits', each, 'id']), [1, null])
    assert.deepEqual(valueAt(push, ['commits', each, 'added', each]), ['a', 'b', 'c'])
    assert.deepEqual(valueAt(push, ['commits', each, 'added']), [['a', 'b'], [], ['c']])
    assert.deepEqual(valueAt(push, ['commits', each, 'constructor']), [])
    for (const path of [['map', each], [each]] as const) assert.deepEqual(valueAt(push, path), [])
    assert.equal(valueAt(push, ['missing', each]), undefined)
    assert.deepEqual(valueAt([[1], [2]], [each, each]), [1, 2])
  })

  it('finds nothing inside a payload that is no object', () => {
    for (const value of [null, 'text', 5, true]) assert.equal(valueAt(value, ['length']), undefined)
  })
})
