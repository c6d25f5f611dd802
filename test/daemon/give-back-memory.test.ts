import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { collectGarbage, createMemoryKeeper } from '../../daemon/give-back-memory.ts'

const setUp = (held: () => number) => {
  const collections = new EventEmitter()
  let count = 0
  const keeper = createMemoryKeeper({
    quietMs: 20,
    held,
    collect: () => {
      count += 1
      collections.emit('one')
    },
  })
  return { keeper, collections, count: () => count }
}

describe('what a burst has left behind', () => {
  it('is collected twice once it is quiet, and not again', async () => {
    let held = 50_000_000
    const { keeper, collections, count } = setUp(() => held)
    held = 150_000_000
    keeper.worked()
    await once(collections, 'one')
    held = 60_000_000
    await once(collections, 'one')
    // Another keeper, which begins later and is quiet as long, is the clock.
    const later = setUp(() => held)
    held += 20_000_000
    later.keeper.worked()
    await once(later.collections, 'one')
    assert.equal(count(), 2)
  })

  it('is left where it is little', async () => {
    let held = 50_000_000
    const little = setUp(() => held)
    held += 10_000_000
    little.keeper.worked()
    held -= 30_000_000
    const much = setUp(() => held)
    held += 30_000_000
    much.keeper.worked()
    // Its time began later, and ends later.
    await once(much.collections, 'one')
    assert.equal(little.count(), 0)
  })

  it('waits for as long as there is work', async () => {
    let held = 50_000_000
    const busy = setUp(() => held)
    held = 150_000_000
    const ends = performance.now() + 100
    const work = setInterval(() => {
      busy.keeper.worked()
      if (performance.now() > ends) clearInterval(work)
    }, 5)
    busy.keeper.worked()
    await once(busy.collections, 'one')
    assert.ok(performance.now() > ends)
  })

  it('is really collected', async () => {
    const left = new WeakRef({ by: 'a burst' })
    // What a reference shows is kept until the turn ends.
    await new Promise((resolve) => void setImmediate(resolve))
    collectGarbage()
    assert.equal(left.deref(), undefined)
  })
})
