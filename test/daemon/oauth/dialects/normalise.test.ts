import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import { getDialect } from '../../../../daemon/oauth/dialects/dialects.ts'
import type { DialectName } from '../../../../shared/config/schema.ts'

type Body = Readonly<Record<string, unknown>>

const normalised = (dialect: DialectName, body: Body, status = 200) =>
  getDialect({ dialect }).normalise({ status, body })

describe('answers of a token endpoint', () => {
  const errors: [DialectName, string, string][] = [
    ['github', 'bad_verification_code', 'invalid_grant'],
    ['github', 'bad_refresh_token', 'invalid_grant'],
    ['github', 'incorrect_client_credentials', 'invalid_client'],
    ['github', 'Not Found', 'invalid_client'],
    ['github', 'device_flow_disabled', 'unauthorized_client'],
    ['slack', 'invalid_code', 'invalid_grant'],
    ['slack', 'code_already_used', 'invalid_grant'],
    ['slack', 'invalid_refresh_token', 'invalid_grant'],
    ['slack', 'token_revoked', 'invalid_grant'],
    ['slack', 'token_expired', 'invalid_grant'],
    ['slack', 'bad_client_secret', 'invalid_client'],
    ['slack', 'invalid_client_id', 'invalid_client'],
    ['slack', 'bad_redirect_uri', 'redirect_uri_mismatch'],
    ['slack', 'ratelimited', 'temporarily_unavailable'],
    ['slack', 'internal_error', 'temporarily_unavailable'],
  ]
  for (const [dialect, own, standard] of errors)
    it(`of ${dialect} that say ${own} mean ${standard}`, () => {
      const { status, body } = normalised(dialect, { ok: false, error: own })
      assert.deepEqual([status, body['error'], body['provider_error']], [400, standard, own])
    })

  it('keep the words of the device flow', () => {
    for (const error of ['authorization_pending', 'slow_down', 'access_denied', 'expired_token'])
      assert.deepEqual(normalised('github', { error, interval: 5 }), {
        status: 400,
        body: { error, interval: 5 },
      })
  })

  it('keep an unknown error code, whatever it is called', () => {
    for (const error of ['something_new', 'toString', '__proto__'])
      for (const dialect of ['github', 'slack'] as const)
        assert.deepEqual(normalised(dialect, { ok: false, error }), {
          status: 400,
          body: { ok: false, error },
        })
    assert.deepEqual(normalised('slack', { ok: false }).body['error'], 'invalid_request')
    assert.deepEqual(normalised('slack', { ok: false, error: 7 }).body['error'], 'invalid_request')
  })

  it('are errors by the standard too where one comes with HTTP 200, and nothing else is changed', () => {
    const error = { error: 'invalid_grant' }
    assert.deepEqual(normalised('standard', error), { status: 400, body: error })
    for (const [body, status] of [
      [{ ...error, access_token: 'a' }, 200],
      [{ error: 7 }, 200],
      [{ error: 'invalid_client' }, 401],
      [{ error: 'temporarily_unavailable' }, 503],
    ] as const)
      assert.deepEqual(normalised('standard', body, status), { status, body })
  })

  it('are left alone where Slack sends what it never should', () => {
    for (const user of ['text', 7, null, ['x'], { access_token: 7 }])
      assert.equal(
        normalised('slack', { ok: true, authed_user: user }).body['access_token'],
        undefined,
      )
    assert.equal(normalised('slack', { ok: true, token_type: 'mac' }).body['token_type'], 'mac')
  })
})
