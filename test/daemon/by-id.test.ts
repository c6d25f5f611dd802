import assert from 'node:assert/strict'
import { createById } from '../../daemon/by-id.ts'

describe('values by id', () => {
  it('are found by their id, until it is deleted', () => {
    const values = createById<{ name: string }>()
    values.set('a', { name: 'first' })
    values.set('b', { name: 'second' })
    values.delete('a')
    values.delete('never there')
    assert.deepEqual([values.get('a'), values.get('b')?.name], [undefined, 'second'])
  })

  it('stand in the order in which the ids came, wherever they lie', () => {
    const values = createById<number>()
    for (const [place, id] of ['a', 'b', 'c'].entries()) values.set(id, place)
    values.delete('a')
    values.set('d', 3)
    values.set('b', 10)
    values.set('a', 4)
    assert.deepEqual(values.values(), [10, 2, 3, 4])
    assert.deepEqual(values.entries(), [
      ['b', 10],
      ['c', 2],
      ['d', 3],
      ['a', 4],
    ])
  })

  it('take no more room than there were at once', () => {
    const values = createById<number>()
    for (let i = 0; i < 10_000; i += 1) {
      values.set(`id ${i}`, i)
      values.delete(`id ${i - 5}`)
    }
    assert.deepEqual(values.values(), [9995, 9996, 9997, 9998, 9999])
  })
})
