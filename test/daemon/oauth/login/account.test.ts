import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'mocha'
import { findAccount } from '../../../../daemon/oauth/login/save-grant.ts'
import type { Grant } from '../../../../daemon/oauth/tokens/token-record.ts'
import { sendJson, startScriptedProvider } from '../../../support/providers/scripted-provider.ts'

const grant: Grant = {
  accessToken: 'access',
  tokenType: 'Bearer',
  refreshToken: undefined,
  expiresInSeconds: undefined,
  refreshExpiresInSeconds: undefined,
  scopes: undefined,
  idClaims: { iss: 'https://id.example', aud: 'id', sub: 'ada', iat: 1, exp: 2 },
}

describe('who has logged in', () => {
  let provider: Awaited<ReturnType<typeof startScriptedProvider>>
  afterEach(() => provider.close())

  const accountBy = async (userinfo: object, of: Grant = grant) => {
    provider = await startScriptedProvider(() => ({
      '/userinfo': (response) => sendJson(response, 200, userinfo),
    }))
    const { origin } = provider
    const server = {
      issuer: origin,
      authorization_endpoint: `${origin}/authorize`,
      token_endpoint: `${origin}/token`,
      userinfo_endpoint: `${origin}/userinfo`,
    }
    const endpoints = { server, isIssuerKnown: true }
    return findAccount(of, endpoints, { identify: undefined }, new AbortController().signal)
  }

  it('has the name that userinfo gives to the one of the id token', async () =>
    assert.deepEqual(await accountBy({ sub: 'ada', email: 'ada@example.com' }), {
      id: 'ada',
      name: 'ada@example.com',
    }))

  it('is never somebody else of whom userinfo speaks', async () =>
    assert.deepEqual(await accountBy({ sub: 'eve', email: 'eve@example.com' }), {
      id: 'ada',
      name: 'ada',
    }))

  it('is the one of userinfo where there is no id token', async () =>
    assert.deepEqual(
      await accountBy({ sub: 'eve', email: 'eve@example.com' }, { ...grant, idClaims: undefined }),
      { id: 'eve', name: 'eve@example.com' },
    ))
})
