import assert from 'node:assert/strict'
import { isSafeToOpen } from '../../shared/net.ts'

describe('isSafeToOpen', () => {
  it('opens https and loopback addresses only', () => {
    for (const url of [
      'https://a.example/x?y',
      'http://127.0.0.1:1/',
      'http://[::1]/',
      'http://localhost:3',
    ])
      assert.equal(isSafeToOpen(url), true, url)
    for (const url of [
      'http://a.example/',
      'file:///etc/passwd',
      'javascript:1',
      'http://127.0.0.1.a.example/',
      '-x',
      '',
    ])
      assert.equal(isSafeToOpen(url), false, url)
  })
})
