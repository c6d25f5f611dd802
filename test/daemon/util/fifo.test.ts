import assert from 'node:assert/strict'
import { createFifo } from '../../../daemon/util/fifo.ts'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

describe('a first-in, first-out list', () => {
  it('gives what came first, also after many have come and gone', () => {
    const fifo = createFifo<number>()
    const taken: (number | undefined)[] = []
    for (let number = 0; number < 1000; number += 1) {
      fifo.add(number)
      if (number >= 100) taken.push(fifo.shift())
    }
    assert.deepEqual(taken, [...Array(900).keys()])
    assert.deepEqual([fifo.size(), fifo.first(), fifo.last()], [100, 900, 999])
    assert.deepEqual(
      fifo.values(),
      [...Array(100).keys()].map((number) => number + 900),
    )
  })

  it('is empty in the end', () => {
    const fifo = createFifo<string>()
    fifo.add('a')
    assert.equal(fifo.shift(), 'a')
    assert.deepEqual([fifo.shift(), fifo.first(), fifo.size()], [undefined, undefined, 0])
    assert.equal(fifo.last(), undefined)
    fifo.add('b')
    assert.deepEqual(fifo.values(), ['b'])
  })

  it('takes one out of the middle, and none that is gone', () => {
    const fifo = createFifo<string>()
    for (const name of ['a', 'b', 'c']) fifo.add(name)
    fifo.shift()
    fifo.remove('b')
    fifo.remove('a')
    assert.deepEqual(fifo.values(), ['c'])
  })

  it('does not hold what is gone once none is left', async () => {
    const fifo = createFifo<object>()
    const held = Array.from({ length: 10 }, () => {
      const value = { of: 'somebody' }
      fifo.add(value)
      return new WeakRef(value)
    })
    while (fifo.size() > 0) fifo.shift()
    // What a WeakRef has shown or made in a turn lives to its end.
    await new Promise((resolve) => setImmediate(resolve))
    setFlagsFromString('--expose-gc')
    ;(runInNewContext('gc') as () => void)()
    assert.deepEqual(
      held.filter((value) => value.deref() !== undefined),
      [],
    )
    assert.equal(fifo.size(), 0)
  })
})
