import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'mocha'
import {
  isSealed,
  openText,
  parseKey,
  type SealKey,
  sealText,
} from '../../../../daemon/oauth/tokens/sealed-file.ts'

const newKey = (): SealKey => {
  const key = parseKey(randomBytes(32).toString('base64'))
  assert.ok(key)
  return key
}
const label = 'doorward token github'
const text = '{"accessToken":"canary-token","name":"Zoë 🔑"}\n'

describe('a sealed token file', () => {
  const key = newKey()

  it('opens with its key and under its name only, and shows nothing of its text', () => {
    const sealed = sealText(key, label, text)
    assert.deepEqual(openText(key, label, sealed), { text })
    assert.doesNotMatch(sealed, /canary|accessToken/)
    assert.equal(openText(key, 'doorward token github@work', sealed), undefined)
    assert.equal(openText(newKey(), label, sealed), 'other-key')
  })

  it('differs at each write', () => {
    const nonces = new Set(
      Array.from(
        { length: 100 },
        () => (JSON.parse(sealText(key, label, text)) as { nonce: string }).nonce,
      ),
    )
    assert.equal(nonces.size, 100)
  })

  it('opens no more after any change of one character', () => {
    const sealed = sealText(key, label, text)
    const { data } = JSON.parse(sealed) as { data: string }
    const start = sealed.indexOf('"nonce"')
    for (let at = start; at < sealed.indexOf(data) + data.length; at += 1) {
      const changed = `${sealed.slice(0, at)}${sealed[at] === 'A' ? 'B' : 'A'}${sealed.slice(at + 1)}`
      const opened = openText(key, label, changed)
      // Unused bits at the end of base64 change nothing.
      if (opened !== undefined) assert.deepEqual(opened, { text }, changed)
    }
  })

  it('is told from a plain one, also when it is damaged or of a later version', () => {
    assert.equal(isSealed(sealText(key, label, text)), true)
    const damaged = ['{"sealed":"aes-256-gcm"}', '{"sealed":"x","version":2}']
    for (const each of damaged) {
      assert.equal(isSealed(each), true)
      assert.equal(openText(key, label, each), undefined)
    }
    for (const each of [text, '', '{', 'null', '"sealed"', '[]'])
      assert.equal(isSealed(each), false)
  })

  it('takes a short tag, a short nonce and a text that is not base64 for damage', () => {
    const sealed = JSON.parse(sealText(key, label, text)) as Record<string, string>
    const change = (more: object) => openText(key, label, JSON.stringify({ ...sealed, ...more }))
    assert.equal(change({ tag: sealed['tag']?.slice(0, 8) }), undefined)
    assert.equal(change({ nonce: 'AAAA' }), undefined)
    assert.equal(change({ data: 'not base64!' }), undefined)
    assert.deepEqual(change({}), { text })
  })
})

describe('the key of the token files', () => {
  it('is 32 bytes in base64, and nothing else', () => {
    assert.ok(parseKey(randomBytes(32).toString('base64')))
    for (const bad of [
      '',
      'x',
      randomBytes(31).toString('base64'),
      randomBytes(32).toString('hex'),
    ])
      assert.equal(parseKey(bad), undefined)
    assert.equal(parseKey(` ${randomBytes(32).toString('base64')}`), undefined)
  })
})
