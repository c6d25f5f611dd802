import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { isSameText, proofOf } from '../../shared/identity.ts'

describe('the proof of a daemon', () => {
  it('is an HMAC of the challenge under the token, and holds neither', () => {
    const challenge = 'ab'.repeat(32)
    const expected = createHmac('sha256', 'token')
      .update(`doorward-health:${challenge}`)
      .digest('hex')
    assert.equal(proofOf('token', challenge), expected)
  })

  it('differs with the token and with the challenge', () => {
    const proofs = [proofOf('a', '1'), proofOf('b', '1'), proofOf('a', '2')]
    assert.equal(new Set(proofs).size, 3)
  })
})

describe('texts', () => {
  it('are the same or not, whatever their lengths and characters', () => {
    for (const text of ['', 'a', 'ü', '\0', 'x'.repeat(100_000)]) {
      assert.equal(isSameText(text, text), true)
      assert.equal(isSameText(text, `${text}a`), false)
    }
    assert.equal(isSameText('a', 'A'), false)
  })
})
