import assert from 'node:assert/strict'
import { once, EventEmitter } from 'node:events'
import { afterEach, describe, it } from 'mocha'
import {
  RefreshScheduler,
  WallClockTimers,
} from '../../../../daemon/oauth/tokens/refresh-scheduler.ts'
import type { TokenRecord } from '../../../../daemon/oauth/tokens/token-record.ts'
import { resolveHome } from '../../../../shared/home/home.ts'
import { gatewayOf } from '../../../support/providers/oauth-app.ts'

const ignore = (): void => undefined

describe('timers by the wall clock', () => {
  const fired = new EventEmitter()
  let timers: WallClockTimers
  // These timers keep no process alive, so something else must.
  const keepAlive = setInterval(() => undefined, 1000)
  afterEach(() => timers.close())
  after(() => clearInterval(keepAlive))

  it('fire at their time, one per name', async () => {
    const names: string[] = []
    timers = new WallClockTimers((name) => {
      names.push(name)
      fired.emit('fire')
    })
    timers.set('a', Date.now() + 3_600_000)
    timers.set('a', Date.now() + 20)
    await once(fired, 'fire')
    timers.set('b', Date.now() - 1000)
    await once(fired, 'fire')
    assert.deepEqual(names, ['a', 'b'])
  })

  it('can be cleared', async () => {
    const names: string[] = []
    timers = new WallClockTimers((name) => {
      names.push(name)
      fired.emit('fire')
    })
    timers.set('a', Date.now())
    timers.clear('a')
    timers.set('b', Date.now() + 5)
    await once(fired, 'fire')
    assert.deepEqual(names, ['b'])
  })

  it('fire when the clock is set back, but not when it is only a little wrong', async () => {
    const names: string[] = []
    let offsetMs = 0
    timers = new WallClockTimers(
      (name) => {
        names.push(name)
        fired.emit('fire')
      },
      () => Date.now() + offsetMs,
    )
    const end = Date.now() + 20
    timers.set('a', end)
    offsetMs = -24 * 3_600_000
    await once(fired, 'fire')
    const firedEarly = Date.now() + offsetMs < end
    const later = Date.now() + offsetMs + 20
    timers.set('b', later)
    offsetMs -= 50
    await once(fired, 'fire')
    assert.deepEqual(names, ['a', 'b'])
    assert.ok(firedEarly)
    assert.ok(Date.now() + offsetMs >= later)
  })

  it('refresh a token ahead of its end, but not where a refresh ends the old one', async () => {
    const asked: string[] = []
    const scheduler = new RefreshScheduler(
      {
        gateway: gatewayOf({}),
        home: resolveHome('/nowhere'),
        env: {},
        log: { info: ignore, warn: ignore, error: ignore },
        announce: ignore,
      },
      (provider) => {
        asked.push(provider)
        fired.emit('fire')
        return Promise.resolve({ ...dueRecord(provider), expiresAt: null })
      },
    )
    scheduler.schedule('github', dueRecord('github'))
    scheduler.schedule('google', dueRecord('google'))
    await once(fired, 'fire')
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
