import assert from 'node:assert/strict'
import { once, EventEmitter } from 'node:events'
import { afterEach, describe, it } from 'mocha'
import {
  type Alarms,
  createAlarms,
  createRefreshScheduler,
} from '../../../../daemon/oauth/tokens/refresh-scheduler.ts'
import type { TokenRecord } from '../../../../daemon/oauth/tokens/token-record.ts'
import { resolveHome } from '../../../../shared/home/home.ts'
import { gatewayOf } from '../../../support/oauth-app.ts'

const ignore = (): void => undefined

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
    const names: string[] = []
    let offsetMs = 0
    alarms = createAlarms(
      (name) => {
        names.push(name)
        rung.emit('ring')
      },
      () => Date.now() + offsetMs,
    )
    const end = Date.now() + 20
    alarms.set('a', end)
    offsetMs = -24 * 3_600_000
    await once(rung, 'ring')
    const rangEarly = Date.now() + offsetMs < end
    const later = Date.now() + offsetMs + 20
    alarms.set('b', later)
    offsetMs -= 50
    await once(rung, 'ring')
    assert.deepEqual(names, ['a', 'b'])
    assert.ok(rangEarly)
    assert.ok(Date.now() + offsetMs >= later)
  })

  it('renew a token ahead of its end, but not where a refresh ends the old one', async () => {
    const asked: string[] = []
    const scheduler = createRefreshScheduler(
      {
        gateway: gatewayOf({}),
        home: resolveHome('/nowhere'),
        env: {},
        log: { info: ignore, warn: ignore, error: ignore },
        announce: ignore,
      },
      (provider) => {
        asked.push(provider)
        rung.emit('ring')
        return Promise.resolve({ ...dueRecord(provider), expiresAt: null })
      },
    )
    scheduler.schedule('github', dueRecord('github'))
    scheduler.schedule('google', dueRecord('google'))
    await once(rung, 'ring')
    await scheduler.close()
    assert.deepEqual(asked, ['google'])
  })
})

const dueRecord = (provider: string): TokenRecord => ({
  version: 1,
  provider,
  account: null,
  scopes: [],
  tokenType: 'Bearer',
  accessToken: 'a',
  refreshToken: 'r',
  clientId: 'c',
  obtainedAt: new Date(Date.now() - 3_600_000).toISOString(),
  expiresAt: new Date(Date.now() + 60_000).toISOString(),
})
