import assert from 'node:assert/strict'
import { oneInATurn } from '../../../daemon/agents/one-in-a-turn.ts'
import { answerAtEndOfTurn } from '../../../daemon/http/turn-batching.ts'
import { countTurns } from '../../support/count-turns.ts'

describe('one in a turn', () => {
  it('lets one go on after the other, a turn for each', async () => {
    const turn = oneInATurn()
    const turns = countTurns()
    const order: string[] = []
    const at: number[] = []
    const go = async (name: string): Promise<void> => {
      await turn()
      order.push(name)
      at.push(turns.now())
    }
    await Promise.all(['a', 'b', 'c', 'd'].map(go))
    turns.end()
    assert.deepEqual(order, ['a', 'b', 'c', 'd'])
    assert.deepEqual(at, [...new Set(at)])
  })

  it('lets nobody go on before the answers of the turn are out', async () => {
    const turn = oneInATurn()
    const order: string[] = []
    const gone = turn().then(() => order.push('start'))
    await Promise.resolve()
    answerAtEndOfTurn(() => order.push('answer'))
    await gone
    assert.deepEqual(order, ['answer', 'start'])
  })

  it('goes on for who comes when nobody waits any more', async () => {
    const turn = oneInATurn()
    await Promise.all([turn(), turn()])
    await turn()
    await Promise.all([turn(), turn()])
  })
})
