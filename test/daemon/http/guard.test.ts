import assert from 'node:assert/strict'
import { isFromWebPage, isLoopbackPeer, isOurHost } from '../../../daemon/http/guard.ts'

describe('isLoopbackPeer', () => {
  for (const address of ['127.0.0.1', '127.255.255.254', '::1', '::ffff:127.0.0.1'])
    it(`is true for ${address}`, () => assert.ok(isLoopbackPeer(address)))
  for (const address of [
    undefined,
    '',
    '0.0.0.0',
    '10.0.0.1',
    '128.0.0.1',
    '127.0.0.1.example.com',
    '127.1',
    '::',
    '::ffff:10.0.0.1',
    '::ffff:127.evil',
    'fe80::1',
    'localhost',
  ])
    it(`is false for ${address}`, () => assert.ok(!isLoopbackPeer(address)))
})

describe('isOurHost', () => {
  for (const host of ['127.0.0.1:80', 'localhost:80', 'LocalHost:80', '[::1]:80', '127.0.0.2:80'])
    it(`is true for ${host}`, () => assert.ok(isOurHost([host], 80)))
  for (const host of [
    '',
    'localhost',
    '127.0.0.1',
    '127.0.0.1:81',
    '127.0.0.1:080',
    '127.0.0.1:80 ',
    '127.0.0.1:80:80',
    '127.0.0.1.example.com:80',
    '127.0.0.1@example.com:80',
    '127.1:80',
    '127.0.0.1234:80',
    '2130706433:80',
    '0.0.0.0:80',
    'localhost.:80',
    'localhost.example.com:80',
    'example.com:80',
    '::1:80',
    '[::ffff:127.0.0.1]:80',
  ])
    it(`is false for "${host}"`, () => assert.ok(!isOurHost([host], 80)))

  it('is false for none and for more than one', () => {
    assert.ok(!isOurHost(undefined, 80))
    assert.ok(!isOurHost([], 80))
    assert.ok(!isOurHost(['localhost:80', 'localhost:80'], 80))
  })
})

describe('isFromWebPage', () => {
  it('is false for programs, and for what a person opens', () => {
    assert.ok(!isFromWebPage(undefined, undefined))
    assert.ok(!isFromWebPage(undefined, 'none'))
    assert.ok(!isFromWebPage(undefined, 'same-origin'))
  })

  it('is true for any Origin, even an empty one or our own', () => {
    for (const origin of ['', 'null', 'http://127.0.0.1:80', 'https://example.com'])
      assert.ok(isFromWebPage(origin, 'none'))
  })

  it('is true for another site, for its look-alikes and for a doubled header', () => {
    for (const site of ['cross-site', 'same-site', '', 'None', 'none, none'])
      assert.ok(isFromWebPage(undefined, site))
  })
})
