import assert from 'node:assert/strict'
import { secretsOf } from '../../../shared/config/environment.ts'

describe('secretsOf', () => {
  it('gives the values that are set, in the order of the names', () => {
    const env = { A: 'a', B: ' b\n', EMPTY: '', BLANK: ' \t\n' }
    assert.deepEqual(secretsOf(['B', 'EMPTY', 'NOTHING', 'BLANK', 'A'], env), [' b\n', 'a'])
  })

  it('takes no property that all objects have for a variable', () => {
    assert.deepEqual(secretsOf(['constructor', 'toString', '__proto__'], {}), [])
  })
})
