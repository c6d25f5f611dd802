import assert from 'node:assert/strict'
import { deliveredEnd } from '../../../daemon/webhook/targets.ts'

describe('the end of a delivery', () => {
  it('is the reason of the first target that failed, which is named once', () => {
    const endOf = (target: string, detail?: string) =>
      deliveredEnd([
        { target: 'log', state: 'done', attempts: 1 },
        { target, state: 'failed', attempts: 2, ...(detail !== undefined && { detail }) },
      ]).detail
    assert.equal(endOf('http:a', 'the server answered 404'), 'http:a: the server answered 404')
    assert.equal(endOf('slack:#a', 'slack answered 404'), 'slack:#a: slack answered 404')
    assert.equal(endOf('slack:#a'), 'slack:#a: not delivered')
  })
})
