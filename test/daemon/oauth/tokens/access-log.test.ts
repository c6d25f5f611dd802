import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'mocha'
import type { OAuthEvent } from '../../../../daemon/oauth/dependencies.ts'
import { createAccessLog } from '../../../../daemon/oauth/tokens/access-log.ts'

describe('hand-outs of tokens', () => {
  let events: OAuthEvent[]
  let now: number
  let due: { readonly at: number; readonly ring: () => void }[]
  let note: (provider: string, asker: string) => void

  beforeEach(() => {
    events = []
    now = Date.parse('2026-11-21T12:00:00.000Z')
    due = []
    ;({ note } = createAccessLog((event) => events.push(event), {
      now: () => now,
      later: (ms, then) => due.push({ at: now + ms, ring: then }),
    }))
  })
  const pass = (ms: number) => {
    now += ms
    for (const { at, ring } of due.splice(0)) {
      if (at <= now) ring()
      else due.push({ at, ring })
    }
  }
  const details = () => events.map(({ detail }) => detail)

  it('are told of once a minute for each asker, with how many there were', () => {
    for (let count = 0; count < 5; count += 1) note('github', 'gh')
    note('slack', 'gh')
    now += 60_000
    note('github', 'gh')
    assert.deepEqual(details(), [
      'token given to gh',
      'token given to gh',
      'token given to gh, and 4 more since the last such line',
    ])
  })

  it('do not flood the list by an asker that has a new name each time', () => {
    for (let count = 0; count < 1000; count += 1) note('github', `run ${count}`)
    assert.equal(events.length, 20)
    note('slack', 'run 1001')
    assert.equal(events.length, 21)
    now += 60_000
    note('github', 'gh')
    assert.equal(
      details().at(-1),
      'token given to gh; before that 980 more, not told of one by one',
    )
    now += 60_000
    note('github', 'gh')
    assert.equal(details().at(-1), 'token given to gh')
  })

  it('are all told of in the end, also when nobody asks again', () => {
    for (let count = 0; count < 3; count += 1) note('github', 'gh')
    for (let count = 0; count < 21; count += 1) note('slack', `run ${count}`)
    pass(59_999)
    assert.equal(events.length, 21)
    pass(1)
    assert.deepEqual(details().slice(21), [
      'token given to gh 2 times more',
      'token given away once more, not told of one by one',
    ])
    // That began another minute.
    note('github', 'gh')
    pass(60_000)
    assert.equal(details().at(-1), 'token given to gh once more')
    pass(600_000)
    assert.equal(events.length, 24)
    note('github', 'gh')
    assert.equal(details().at(-1), 'token given to gh')
  })

  it('are told of again at once when the clock was set back', () => {
    note('github', 'gh')
    now -= 3_600_000
    note('github', 'gh')
    assert.equal(events.length, 2)
  })
})
