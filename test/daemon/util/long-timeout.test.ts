import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { longTimeout } from '../../../daemon/util/abort.ts'

describe('a long timeout', () => {
  const clock = new EventEmitter()

  it('of 30 days does not ring at once, as setTimeout would', async () => {
    const rung: string[] = []
    const month = longTimeout(() => rung.push('month'), 30 * 86_400_000)
    longTimeout(() => clock.emit('short'), 20)
    await once(clock, 'short')
    month.clear()
    assert.deepEqual(rung, [])
  })

  it('rings once, after all of its steps', async () => {
    const start = performance.now()
    let rings = 0
    longTimeout(
      () => {
        rings += 1
        clock.emit('rung')
      },
      35,
      10,
    )
    await once(clock, 'rung')
    assert.ok(performance.now() - start >= 34)
    longTimeout(() => clock.emit('later'), 20)
    await once(clock, 'later')
    assert.equal(rings, 1)
  })

  it('is cleared in any of its steps', async () => {
    const rung: string[] = []
    const cleared = longTimeout(() => rung.push('cleared'), 30, 5)
    setTimeout(() => cleared.clear(), 12)
    longTimeout(() => clock.emit('past'), 60)
    await once(clock, 'past')
    assert.deepEqual(rung, [])
  })
})
