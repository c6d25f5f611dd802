import assert from 'node:assert/strict'
import { toProblem } from '../../../daemon/http/respond.ts'
import { problemSchema } from '../../../shared/api/api.ts'
import { DoorwardError } from '../../../shared/errors.ts'

describe('problemOf', () => {
  it('makes an RFC 9457 document of an error of ours', () => {
    const problem = toProblem(new DoorwardError('not-found', 'there is none', { hint: 'look' }))
    assert.deepEqual(problemSchema.parse(problem), {
      type: 'urn:doorward:problem:not-found',
      title: 'Not Found',
      status: 404,
      detail: 'there is none',
      code: 'not-found',
      hint: 'look',
    })
  })

  it('keeps what only the owner may read, and the cause, out of it', () => {
    const cause = new Error('canary')
    const error = new DoorwardError('signature-invalid', 'no', { localDetail: 'canary', cause })
    assert.doesNotMatch(JSON.stringify(toProblem(error)), /canary/)
  })

  it('says nothing of a foreign error', () => {
    for (const thrown of [new Error('canary'), 'canary', { message: 'canary' }, null, undefined]) {
      const problem = toProblem(thrown)
      assert.deepEqual([problem.status, problem.code], [500, 'internal'])
      assert.doesNotMatch(JSON.stringify(problem), /canary/)
    }
  })
})
