import assert from 'node:assert/strict'
import { once } from 'node:events'
import { collectWhenIdle } from '../../daemon/state.ts'

describe('the garbage collection of an idle daemon', () => {
  it('comes once after the last delivery of each burst', async () => {
    const events = new EventTarget()
    let collections = 0
    const activity = collectWhenIdle(30, () => {
      collections += 1
      events.dispatchEvent(new Event('collected'))
    })
    const endsAt = performance.now() + 100
    const work = setInterval(() => {
      activity()
      if (performance.now() > endsAt) clearInterval(work)
    }, 5)
    activity()
    await once(events, 'collected')
    assert.ok(performance.now() > endsAt)
    activity()
    await once(events, 'collected')
    assert.equal(collections, 2)
  })
})
