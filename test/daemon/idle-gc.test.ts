import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { type Collection, collectGarbage, createMemoryKeeper } from '../../daemon/idle-gc.ts'

const setUp = (held: () => number, quietMs = { short: 20, long: 60 }) => {
  const collections = new EventEmitter()
  const all: Collection[] = []
  const keeper = createMemoryKeeper({
    quietMs,
    held,
    collect: (what) => {
      all.push(what)
      collections.emit(what)
    },
  })
  return { keeper, collections, all }
}

describe('what a burst has left behind', () => {
  it('is collected where it is young once it is quiet, wholly when it stays so, and not again', async () => {
    let held = 50_000_000
    const { keeper, collections, all } = setUp(() => held)
    held = 150_000_000
    keeper.worked()
    await once(collections, 'young')
    held = 80_000_000
    await once(collections, 'whole')
    held = 60_000_000
    await once(collections, 'whole')
    // Another keeper, which begins later and is quiet as long, is the clock.
    const later = setUp(() => held)
    held += 20_000_000
    later.keeper.worked()
    await once(later.collections, 'whole')
    assert.deepEqual(all, ['young', 'whole', 'whole'])
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
    await once(much.collections, 'young')
    assert.deepEqual(little.all, [])
  })

  it('is young alone before the next burst, and where the rest is little', async () => {
    let held = 50_000_000
    const { keeper, collections, all } = setUp(() => held)
    held = 150_000_000
    keeper.worked()
    await once(collections, 'young')
    keeper.worked()
    await once(collections, 'young')
    held = 60_000_000
    let ofClock = 50_000_000
    const clock = setUp(() => ofClock)
    ofClock = 150_000_000
    clock.keeper.worked()
    await once(clock.collections, 'whole')
    assert.deepEqual(all, ['young', 'young'])
  })

  it('is collected wholly at once where it is much', async () => {
    let held = 50_000_000
    // Nobody waits for an hour here.
    const { keeper, collections, all } = setUp(() => held, { short: 20, long: 3_600_000 })
    held = 150_000_000
    keeper.worked()
    await once(collections, 'whole')
    await once(collections, 'whole')
    assert.deepEqual(all, ['young', 'whole', 'whole'])
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
    await once(busy.collections, 'young')
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
