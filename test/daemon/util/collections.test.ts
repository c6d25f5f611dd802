import assert from 'node:assert/strict'
import { BoundedMap } from '../../../daemon/util/collections.ts'

describe('a bounded map', () => {
  it('forgets its oldest entry; one that is set again is the newest', () => {
    const map = new BoundedMap<string, number>(2)
    map.set('a', 1).set('b', 2).set('a', 3).set('c', 4)
    assert.deepEqual(
      [...map],
      [
        ['a', 3],
        ['c', 4],
      ],
    )
    map.delete('a')
    map.set('d', 5)
    assert.deepEqual([...map.keys()], ['c', 'd'])
  })

  it('forgets many at a time where it may hold more for a while', () => {
    const map = new BoundedMap<number, true>(10, 12)
    for (let at = 1; at <= 12; at += 1) map.set(at, true)
    assert.equal(map.size, 12)
    map.set(13, true)
    assert.deepEqual([...map.keys()], [4, 5, 6, 7, 8, 9, 10, 11, 12, 13])
  })
})
