import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import {
  type PollResult,
  nextPace,
  toPace,
  getWaitMs,
} from '../../../../daemon/oauth/login/device-authorization.ts'

/** The waits before each poll, in seconds, when the polls before were answered so. */
const waits = (seconds: number | undefined, signs: readonly PollResult[]): number[] => {
  const paces = [toPace(seconds)]
  for (const sign of signs) paces.push(nextPace(paces.at(-1) ?? toPace(), sign))
  return paces.map((pace) => getWaitMs(pace) / 1000)
}

describe('pace of polling', () => {
  it('keeps the interval of the provider, and 5 s where it names none', () => {
    assert.deepEqual(waits(7, ['authorization_pending', 'authorization_pending']), [7, 7, 7])
    assert.deepEqual(waits(undefined, ['authorization_pending']), [5, 5])
  })

  it('is 5 s slower after each slow_down', () =>
    assert.deepEqual(
      waits(5, ['slow_down', 'authorization_pending', 'slow_down', 'authorization_pending']),
      [5, 10, 10, 15, 15],
    ))

  it('backs off without an answer, and recovers', () =>
    assert.deepEqual(
      waits(5, [
        ...Array<PollResult>(5).fill('unreachable'),
        'authorization_pending',
        'authorization_pending',
      ]),
      [5, 10, 20, 40, 60, 60, 5, 5],
    ))

  it('is never faster than once a second, and starts no slower than once a minute', () => {
    assert.deepEqual(waits(0.001, []), [1])
    assert.deepEqual(waits(1e12, ['slow_down']), [60, 65])
  })

  it('is never faster without an answer than before', () =>
    assert.deepEqual(waits(60, ['slow_down', 'unreachable']), [60, 65, 65]))

  it('does not grow without end', () =>
    assert.equal(waits(5, Array<PollResult>(2000).fill('unreachable')).at(-1), 60))
})
