import assert from 'node:assert/strict'
import { replacePrivate } from '../../shared/privacy.ts'

describe('replacing private texts', () => {
  const words = [
    ['/codex', '<webhook>'],
    ['/a+(b', '<other>'],
    ['https://t.example', '<url>'],
  ] as const

  it('finds them wherever they stand, as they are', () => {
    for (const [text, clean] of [
      ['/codex', '<webhook>'],
      ['"/codex" has no secret', '"<webhook>" has no secret'],
      ['https://t.example/webhook/codex', '<url>/webhook<webhook>'],
      ['https://me@t.example/codex', 'https://<mail><webhook>'],
      ['https://me@local/codex', 'https://me@local<webhook>'],
      ['/a+(b is open', '<other> is open'],
    ] as const)
      assert.equal(replacePrivate(text, words), clean)
    assert.equal(replacePrivate('/codex', [['/codex', '$&']]), '$&')
  })

  it('leaves the name of a package whole', () => {
    for (const text of ['install it with: npm install -g @openai/codex', '@openai/codex'])
      assert.equal(replacePrivate(text, words), text)
  })
})
