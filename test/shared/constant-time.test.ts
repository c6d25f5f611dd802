import assert from 'node:assert/strict'
import { constantTimeEqual } from '../../shared/constant-time.ts'

describe('two secrets', () => {
  it('are the same or not, whatever their lengths and characters', () => {
    for (const text of ['', 'a', 'ü', '\0', 'x'.repeat(100_000)]) {
      assert.equal(constantTimeEqual(text, text), true)
      assert.equal(constantTimeEqual(text, `${text}a`), false)
      const bytes = Buffer.from(text)
      assert.equal(constantTimeEqual(bytes, Buffer.from(text)), true)
      assert.equal(constantTimeEqual(bytes, Buffer.from(`${text}a`)), false)
    }
    assert.equal(constantTimeEqual('a', 'A'), false)
    assert.equal(constantTimeEqual(Buffer.from('a'), Buffer.from('A')), false)
  })
})
