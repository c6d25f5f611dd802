import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import { processRefreshTokenResponse } from 'oauth4webapi'
import { providerError } from '../../../../daemon/oauth/providers/errors.ts'

const server = { issuer: 'https://auth.example' }
const secret = 'canary-of-the-answer'

/** What is said of an answer of a token endpoint that cannot be used. */
const saidOf = async (body: string, init: ResponseInit = {}) => {
  const headers = { 'content-type': 'application/json' }
  const answer = new Response(body, { headers, ...init })
  try {
    await processRefreshTokenResponse(server, { client_id: 'me' }, answer)
  } catch (error) {
    const { code, message, hint = '', cause } = providerError(error, 'it failed')
    assert.deepEqual([code, cause], ['provider-refused', undefined])
    assert.match(hint, /check the endpoints/)
    assert.ok(!`${message} ${hint}`.includes(secret))
    return message
  }
  throw new Error('it was taken')
}

describe('an answer of a token endpoint that cannot be used', () => {
  it('is said to have a bad field, by its name alone', async () => {
    const good = { access_token: secret, token_type: 'bearer' }
    for (const [field, more] of [
      ['access_token', { access_token: undefined }],
      ['token_type', { token_type: '' }],
      ['expires_in', { expires_in: secret }],
      ['refresh_token', { refresh_token: { of: secret } }],
      ['scope', { scope: 7 }],
    ] as const)
      assert.match(
        await saidOf(JSON.stringify({ ...good, ...more })),
        new RegExp(`^it failed: "response" body "${field}" property must [a-z -]+$`),
      )
  })

  it('is said to be none of OAuth, with its status', async () => {
    const foreign = (status: number) =>
      `it failed: an answer with status ${status} that is not an OAuth answer`
    assert.equal(await saidOf('{}', { status: 201 }), foreign(201))
    const html = { headers: { 'content-type': 'text/html' } }
    assert.equal(await saidOf(`<p>${secret}`, html), foreign(200))
    assert.equal(await saidOf(`{ "${secret}`), foreign(200))
    assert.equal(await saidOf(`<p>${secret}`, { status: 403, ...html }), foreign(403))
  })
})
