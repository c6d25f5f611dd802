import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'mocha'
import type { OAuthEvent } from '../../../../daemon/oauth/dependencies.ts'
import { AccessLog } from '../../../../daemon/oauth/tokens/token-broker.ts'

describe('the access log', () => {
  let events: OAuthEvent[]
  let now: number
  let log: AccessLog

  beforeEach(() => {
    events = []
    now = Date.parse('2026-11-21T12:00:00.000Z')
    log = new AccessLog(
      (event) => events.push(event),
      () => now,
    )
  })
  const lines = () => events.map(({ provider, detail }) => `${provider}: ${detail}`)

  it('has one line a minute for each provider and asker', () => {
    for (let count = 0; count < 5; count += 1) log.add('github', 'gh')
    log.add('slack', 'gh')
    log.add('github', 'agent')
    now += 59_999
    log.add('github', 'gh')
    now += 1
    log.add('github', 'gh')
    assert.deepEqual(lines(), [
      'github: token issued to gh',
      'slack: token issued to gh',
      'github: token issued to agent',
      'github: token issued to gh',
    ])
  })

  it('is not flooded by an asker that has a new name each time', () => {
    for (let count = 0; count < 1000; count += 1) log.add('github', `run ${count}`)
    assert.equal(events.length, 20)
    log.add('slack', 'run 1001')
    assert.equal(events.length, 21)
    now += 60_000
    log.add('github', 'gh')
    assert.equal(events.length, 22)
  })

  it('continues when the clock was set back', () => {
    log.add('github', 'gh')
    now -= 3_600_000
    log.add('github', 'gh')
    assert.equal(events.length, 2)
  })
})
