import assert from 'node:assert/strict'
import { once, EventEmitter } from 'node:events'
import { afterEach, describe, it } from 'mocha'
import { type Alarms, createAlarms } from '../../../../daemon/oauth/tokens/refresh-scheduler.ts'

describe('alarms', () => {
  const rung = new EventEmitter()
  let alarms: Alarms
  // An alarm keeps no process alive, so something else has to.
  const keepAlive = setInterval(() => undefined, 1000)
  afterEach(() => alarms.close())
  after(() => clearInterval(keepAlive))

  it('ring at their time, one per name', async () => {
    const names: string[] = []
    alarms = createAlarms((name) => {
      names.push(name)
      rung.emit('ring')
    })
    alarms.set('a', Date.now() + 3_600_000)
    alarms.set('a', Date.now() + 20)
    await once(rung, 'ring')
    alarms.set('b', Date.now() - 1000)
    await once(rung, 'ring')
    assert.deepEqual(names, ['a', 'b'])
  })

  it('are taken away', async () => {
    const names: string[] = []
    alarms = createAlarms((name) => {
      names.push(name)
      rung.emit('ring')
    })
    alarms.set('a', Date.now())
    alarms.set('a', undefined)
    alarms.set('b', Date.now() + 5)
    await once(rung, 'ring')
    assert.deepEqual(names, ['b'])
  })

  it('ring when the clock was set back meanwhile, and not when it only goes a little wrong', async () => {
    const names: (string | boolean)[] = []
    let offsetMs = 0
    alarms = createAlarms(
      (name, isDue) => {
        names.push(name, isDue)
        rung.emit('ring')
      },
      () => Date.now() + offsetMs,
    )
    alarms.set('a', Date.now() + 20)
    offsetMs = -24 * 3_600_000
    await once(rung, 'ring')
    alarms.set('b', Date.now() + offsetMs + 20)
    offsetMs -= 50
    await once(rung, 'ring')
    assert.deepEqual(names, ['a', false, 'b', true])
  })
})
