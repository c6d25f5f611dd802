import assert from 'node:assert/strict'
import { oneInATurn } from '../../../daemon/agents/one-in-a-turn.ts'
import { countTurns } from '../../support/count-turns.ts'

describe('one in a turn', () => {
  it('lets the first go on at once, and the others one after the other, a turn for each', async () => {
    const turn = oneInATurn()
    const turns = countTurns()
    const order: string[] = []
    const at: number[] = []
    const go = async (name: string): Promise<void> => {
      await turn()
      order.push(name)
      at.push(turns.now())
    }
    const all = Promise.all(['a', 'b', 'c', 'd'].map(go))
    await Promise.resolve()
    assert.deepEqual(order, ['a'])
    await all
    turns.end()
    assert.deepEqual(order, ['a', 'b', 'c', 'd'])
    assert.deepEqual(at, [...new Set(at)])
  })

  it('lets go on at once again when nobody waits any more', async () => {
    const turn = oneInATurn()
    await Promise.all([turn(), turn()])
    await new Promise((resolve) => setImmediate(resolve))
    await new Promise((resolve) => setImmediate(resolve))
    let isIn = false
    void turn().then(() => (isIn = true))
    await Promise.resolve()
    assert.ok(isIn)
  })
})
