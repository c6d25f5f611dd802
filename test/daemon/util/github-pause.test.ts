import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import { githubPauseMs } from '../../../daemon/util/http-retry-after.ts'

const now = Date.parse('2026-11-23T12:00:00Z')
const pause = (status: number, headers: Record<string, string> = {}, message: unknown = 'x') =>
  githubPauseMs({ status, header: (name) => headers[name], message }, now)
const reset = (seconds: number) => ({
  'x-ratelimit-remaining': '0',
  'x-ratelimit-reset': String(now / 1000 + seconds),
})

describe('the pause that GitHub asks for', () => {
  const answers: readonly (readonly [string, number | undefined, number | undefined])[] = [
    ['is none for a 403 that is a refusal', pause(403), undefined],
    ['is none while requests are left', pause(403, { 'x-ratelimit-remaining': '1' }), undefined],
    ['is none for another status', pause(404, reset(1800)), undefined],
    ['is so long as Retry-After says', pause(403, { 'retry-after': '30' }), 30_000],
    ['lasts until the limit is reset', pause(403, reset(1800)), 1_800_000],
    ['is a second for a reset that is over', pause(403, reset(-5)), 1000],
    [
      'is what Retry-After says beside a reset',
      pause(403, { ...reset(9), 'retry-after': '5' }),
      5000,
    ],
    ['is a minute for words alone', pause(403, {}, 'a secondary rate limit'), 60_000],
    ['is a minute for no time that can be read', pause(403, { 'retry-after': 'soon' }), 60_000],
    ['is a minute for a 429 that says no more', pause(429, {}, undefined), 60_000],
  ]
  for (const [what, actual, expected] of answers) it(what, () => assert.equal(actual, expected))
})
