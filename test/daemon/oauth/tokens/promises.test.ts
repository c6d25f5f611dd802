import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import {
  createPromises,
  isRenewedFirst,
  toPromise,
} from '../../../../daemon/oauth/tokens/promises.ts'

const minute = 60_000
const hour = 60 * minute
const start = Date.parse('2026-11-23T12:00:00.000Z')
const at = (ms: number): string => new Date(start + ms).toISOString()
/** Of GitHub: eight hours. By itself it is renewed 5 to 5.5 minutes before its end. */
const record = { obtainedAt: at(0), expiresAt: at(8 * hour), refreshToken: 'r' }

describe('the promise that a token is handed out with', () => {
  it('lasts as long as asked, by default a minute', () => {
    assert.equal(toPromise(record, 10 * minute, start), start + 10 * minute)
    assert.equal(toPromise(record, undefined, start), start + minute)
    assert.equal(toPromise(record, 0, start), start)
  })

  it('never lasts longer than the token', () => {
    const now = start + 8 * hour - 10_000
    assert.equal(toPromise(record, 10 * minute, now), start + 8 * hour)
    assert.equal(toPromise(record, undefined, now), start + 8 * hour)
    assert.equal(toPromise(record, minute, start + 9 * hour), start + 9 * hour)
  })

  it('is the usual one where no token lives as long as asked', () =>
    assert.equal(toPromise(record, 9 * hour, start), start + minute))

  it('is a third of the life of a short token', () =>
    assert.equal(toPromise({ ...record, expiresAt: at(6000) }, undefined, start), start + 2000))
})

describe('a token whose renewal ends it is renewed before it is handed out', () => {
  const isFirst = (
    now: number,
    minValidityMs: number | undefined,
    promisedUntil = 0,
    token: Parameters<typeof isRenewedFirst>[0] = record,
  ) => isRenewedFirst(token, minValidityMs, { aheadMs: 5 * minute, promisedUntil }, now)
  const late = start + 8 * hour - 12 * minute

  it('where it is asked for beyond its planned renewal', () => {
    assert.equal(isFirst(late, 10 * minute), true)
    assert.equal(isFirst(late, 6 * minute), false)
    assert.equal(isFirst(late, undefined), false)
    assert.equal(isFirst(late + 6 * minute, undefined), true)
  })

  it('but not while somebody was promised it', () => {
    assert.equal(isFirst(late, 10 * minute, late + 1), false)
    assert.equal(isFirst(late, 10 * minute, late), true)
  })

  it('but not where a new one would be renewed too soon as well', () => {
    assert.equal(isFirst(start, 8 * hour - 6 * minute), false)
    assert.equal(isFirst(start + minute, 8 * hour - 6 * minute), true)
    assert.equal(isFirst(start + minute, 8 * hour - 5 * minute), false)
  })

  it('but not where it never ends or nothing can renew it', () => {
    assert.equal(isFirst(late, 10 * minute, 0, { ...record, expiresAt: null }), false)
    const ended = { at: at(1), cause: 'revoked' }
    assert.equal(isFirst(late, 10 * minute, 0, { ...record, ended }), false)
  })
})

describe('the promises of a provider', () => {
  it('are open until the latest of them is over, or a new token is there', () => {
    const promises = createPromises()
    assert.equal(promises.untilOf('github'), 0)
    promises.note('github', 5000)
    promises.note('github', 2000)
    promises.note('work', 9000)
    assert.equal(promises.untilOf('github'), 5000)
    promises.forget('github')
    assert.deepEqual([promises.untilOf('github'), promises.untilOf('work')], [0, 9000])
  })
})
