import assert from 'node:assert/strict'
import { listSecrets } from '../../../shared/config/environment.ts'

describe('secretsOf', () => {
  it('gives the values that are set, in the order of the names', () => {
    const env = { A: 'a', B: ' b\n', EMPTY: '', BLANK: ' \t\n' }
    assert.deepEqual(listSecrets(['B', 'EMPTY', 'NOTHING', 'BLANK', 'A'], env), [' b\n', 'a'])
  })

  it('takes no property that all objects have for a variable', () => {
    assert.deepEqual(listSecrets(['constructor', 'toString', '__proto__'], {}), [])
  })
})
