import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { toEndpoint, computeProof } from '../../../shared/client/identity.ts'

describe('the proof of a daemon', () => {
  it('is an HMAC of the place and the challenge under the token, and holds neither', () => {
    const challenge = 'ab'.repeat(32)
    const expected = createHmac('sha256', 'token')
      .update(`doorward-health:127.0.0.1 1:${challenge}`)
      .digest('hex')
    assert.equal(computeProof('token', challenge, toEndpoint('127.0.0.1', 1)), expected)
  })

  it('differs with the token, the challenge, the address and the port', () => {
    const proofs = [
      computeProof('a', '1', toEndpoint('127.0.0.1', 1)),
      computeProof('b', '1', toEndpoint('127.0.0.1', 1)),
      computeProof('a', '2', toEndpoint('127.0.0.1', 1)),
      computeProof('a', '1', toEndpoint('::1', 1)),
      computeProof('a', '1', toEndpoint('127.0.0.1', 2)),
    ]
    assert.equal(new Set(proofs).size, proofs.length)
  })

  it('is the same for an address and for the same one mapped into IPv6', () => {
    assert.equal(toEndpoint('::ffff:127.0.0.1', 1), toEndpoint('127.0.0.1', 1))
  })
})
