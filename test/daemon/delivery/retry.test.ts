import assert from 'node:assert/strict'
import { DeliveryError, type Retryability } from '../../../daemon/delivery/delivery-error.ts'
import { retryAfterIn } from '../../../daemon/util/http-retry-after.ts'
import { retry } from '../../../daemon/delivery/retry.ts'
import { quickRules } from '../../support/servers/deliver.ts'

const failed = (retryability: Retryability, retryAfterMs?: number) =>
  new DeliveryError(retryability, `it was ${retryability}`, { retryAfterMs, hint: 'do this' })

/** Attempts with these outcomes in order; the last outcome repeats. */
const play = async (
  ways: readonly (Error | 'done')[],
  {
    isIdempotent = false,
    signal = new AbortController().signal,
    rules = quickRules,
  }: { isIdempotent?: boolean; signal?: AbortSignal; rules?: typeof quickRules } = {},
) => {
  const tries: boolean[] = []
  let again = 0
  const end = await retry(
    async (mayHaveArrived) => {
      tries.push(mayHaveArrived)
      const way = ways[Math.min(tries.length, ways.length) - 1]
      if (way instanceof Error) throw way
      return way
    },
    { isIdempotent, signal, onRetry: () => (again += 1) },
    rules,
  ).catch((error: unknown) => error)
  return { tries, again, end }
}

describe('retry', () => {
  it('retries at most 5 times, and throws the last failure with its hint', async () => {
    const { tries, again, end } = await play([failed('retryable')])
    assert.deepEqual([tries.length, again], [6, 5])
    assert.ok(end instanceof DeliveryError)
    assert.deepEqual(
      [end.message, end.hint, end.retryability],
      ['it was retryable', 'do this', 'retryable'],
    )
  })

  it('says whether the daemon stopped or the event was cancelled', async () => {
    for (const [reason, before, during] of [
      [undefined, /the daemon stopped before/, /it was retryable; the daemon stops$/],
      ['cancelled', /the event was cancelled before/, /it was retryable; the event was cancelled$/],
    ] as const) {
      const control = new AbortController()
      const attempt = async (): Promise<never> => {
        control.abort(reason)
        throw failed('retryable')
      }
      const options = { signal: control.signal, isIdempotent: true, onRetry: () => undefined }
      await assert.rejects(retry(attempt, options, quickRules), { message: during })
      await assert.rejects(retry(attempt, options, quickRules), { message: before })
    }
  })

  it('stops at a permanent failure', async () => {
    const { tries, end } = await play([failed('retryable'), failed('permanent')])
    assert.equal(tries.length, 2)
    assert.match(String(end), /it was permanent$/)
  })

  it('repeats an indeterminate attempt only where that is idempotent, and reports it', async () => {
    assert.deepEqual((await play([failed('indeterminate'), 'done'])).tries, [false])
    const known = await play([failed('indeterminate'), failed('retryable'), 'done'], {
      isIdempotent: true,
    })
    assert.deepEqual([known.tries, known.end], [[false, true, true], 'done'])
    const never = await play([failed('indeterminate'), failed('retryable')], { isIdempotent: true })
    assert.match(String(never.end), /it was retryable; outcome unknown: it may have arrived$/)
    assert.equal((never.end as DeliveryError).retryability, 'indeterminate')
  })

  it('remembers that an attempt answered 5xx may have arrived, and reports it', async () => {
    const inTrouble = new DeliveryError('retryable', 'it answered 502', { mayHaveArrived: true })
    const { tries, end } = await play([failed('retryable'), inTrouble, failed('retryable'), 'done'])
    assert.deepEqual([tries, end], [[false, false, true, true], 'done'])
    const never = await play([inTrouble])
    assert.equal(never.tries.length, 6)
    assert.match(String(never.end), /it answered 502; outcome unknown: it may have arrived$/)
    assert.equal((never.end as DeliveryError).mayHaveArrived, true)
  })

  it('starts no attempt after the time limit', async () => {
    const rules = { ...quickRules, totalMs: 50, firstWaitMs: 30, maxWaitMs: 30 }
    const { tries } = await play([failed('retryable')], { rules })
    assert.ok(tries.length >= 2 && tries.length <= 3)
    const asked = await play([failed('retryable', 60_000)], { rules })
    assert.equal(asked.tries.length, 1)
    assert.match(String(asked.end), /it asks for a pause of 60 s/)
  })

  it('does not wait once the daemon stops', async () => {
    for (const wait of [undefined, 5000]) {
      const stop = new AbortController()
      const rules = { ...quickRules, firstWaitMs: 5000, maxWaitMs: 5000 }
      setImmediate(() => stop.abort('immediately'))
      const started = performance.now()
      const { tries, end } = await play([failed('retryable', wait)], { signal: stop.signal, rules })
      assert.ok(performance.now() - started < 2000)
      assert.equal(tries.length, 1)
      assert.match(String(end), /it was retryable; the daemon stops$/)
    }
    const { tries, end } = await play(['done'], { signal: AbortSignal.abort() })
    assert.equal(tries.length, 0)
    assert.equal((end as DeliveryError).code, 'stopping')
  })

  it('returns a success even if the daemon stops at that moment', async () => {
    const stop = new AbortController()
    const done = await retry(
      async () => {
        stop.abort()
        return 'done'
      },
      { isIdempotent: false, signal: stop.signal, onRetry: () => undefined },
      quickRules,
    )
    assert.equal(done, 'done')
  })

  it('does not retry an internal error', async () => {
    const fault = new TypeError('x is not a function')
    const { tries, end } = await play([failed('retryable'), fault])
    assert.deepEqual([tries.length, end], [2, fault])
  })
})

describe('retryAfterIn', () => {
  const now = Date.UTC(2026, 0, 1)
  for (const [text, ms] of [
    ['3', 3000],
    ['0', 0],
    ['0.5', 500],
    ['Thu, 01 Jan 2026 00:00:05 GMT', 5000],
    ['Wed, 31 Dec 2025 00:00:05 GMT', undefined],
    ['soon', undefined],
    ['-1', undefined],
    ['99999999999', undefined],
    [undefined, undefined],
  ] as const)
    it(`reads ${text} as ${ms}`, () => assert.equal(retryAfterIn(text, now), ms))
})
