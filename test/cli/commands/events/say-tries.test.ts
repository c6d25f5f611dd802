import assert from 'node:assert/strict'
import type { EventRecord, TargetResult } from '../../../../shared/api/api.ts'
import { printRetries } from '../../../../cli/commands/events/wait.ts'

const event = (...targets: TargetResult[]): EventRecord => ({
  id: 'evt_1',
  kind: 'webhook',
  webhook: '/a',
  agent: 'echo',
  receivedAt: '2026-06-07T10:00:00.000Z',
  state: 'delivering',
  attempts: 1,
  durations: {},
  targets,
})

describe('cli: waiting for an event', () => {
  it('says each try of a target that has failed, once', () => {
    const said: string[] = []
    const changed = printRetries({ say: (text) => said.push(text) })
    const target = 'http:archive'
    const failing = (attempts: number) =>
      event(
        { target: 'log', state: 'done', attempts: 1, detail: 'of no interest' },
        {
          target,
          state: 'waiting',
          attempts,
          detail: 'the server answered 503; it is tried again',
        },
        { target: 'slack:#a', state: 'waiting', attempts: 0 },
        { target: 'slack:#b', state: 'waiting', attempts: 1, detail: 'slack answered 500' },
      )
    changed(failing(1))
    changed(failing(1))
    changed(failing(2))
    assert.deepEqual(said, [
      'try 1: http:archive: the server answered 503; it is tried again',
      'try 1: slack:#b: slack answered 500',
      'try 2: http:archive: the server answered 503; it is tried again',
    ])
  })
})
