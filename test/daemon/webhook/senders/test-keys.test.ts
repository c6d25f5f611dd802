import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { TestKeys } from '../../../../daemon/webhook/senders/test-keys.ts'

const pem = (format: 'spki' | 'pkcs8' = 'spki') => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  return format === 'spki'
    ? publicKey.export({ type: 'spki', format: 'pem' }).toString()
    : privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}

describe('the key of a test', () => {
  it('is for one delivery to its webhook, within a minute', () => {
    let now = 0
    const keys = new TestKeys(() => now)
    const id = keys.add('/a', pem())
    assert.equal(keys.take('/b', id), undefined)
    assert.equal(keys.take('/a', undefined), undefined)
    assert.equal(keys.take('/a', `${id}x`), undefined)
    assert.ok(keys.take('/a', id))
    assert.equal(keys.take('/a', id), undefined)
    const late = keys.add('/a', pem())
    now = 60_000
    assert.equal(keys.take('/a', late), undefined)
  })

  it('is a public key, and of many only the last stay', () => {
    const keys = new TestKeys()
    for (const text of ['', 'x', pem('pkcs8'), '-----BEGIN PUBLIC KEY-----\nAAAA\n'])
      assert.throws(() => keys.add('/a', text), { code: 'request-invalid' })
    const first = keys.add('/a', pem())
    const last = Array.from({ length: 30 }, () => keys.add('/a', pem())).at(-1)
    assert.equal(keys.take('/a', first), undefined)
    assert.ok(keys.take('/a', last))
  })
})
