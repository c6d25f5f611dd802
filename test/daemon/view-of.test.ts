import assert from 'node:assert/strict'
import { viewOf } from '../../daemon/view-of.ts'

describe('viewOf', () => {
  it('shows what there is at every look', () => {
    let now: Record<string, string> = { a: '1' }
    const view = viewOf(() => now)
    assert.deepEqual([view['a'], 'b' in view, Object.keys(view)], ['1', false, ['a']])
    now = { a: '2', b: '3' }
    assert.deepEqual([view['a'], Object.hasOwn(view, 'b'), { ...view }], ['2', true, now])
  })

  it('looks at own names as such: what it shows may have no prototype', () => {
    const view = viewOf(() => Object.assign(Object.create(null) as object, { a: '1' }))
    assert.deepEqual([Object.hasOwn(view, 'toString'), Object.hasOwn(view, 'a')], [false, true])
  })

  it('cannot be written to', () => {
    const now = { a: '1' }
    const view = viewOf(() => now)
    assert.throws(() => (view.a = '2'), TypeError)
    assert.equal(Reflect.deleteProperty(view, 'a'), false)
    assert.deepEqual(now, { a: '1' })
  })
})
