import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import { authorizeUrl } from '../../../../daemon/oauth/login/authorization-code.ts'
import { findProvider } from '../../../../daemon/oauth/providers/providers.ts'
import { gatewayOf } from '../../../support/providers/oauth-app.ts'

const request = {
  clientId: 'client 1',
  redirectUri: 'http://127.0.0.1:53174/callback',
  scopes: ['a:b', 'c'],
  state: 'state-1',
  codeVerifier: 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk',
}

const parametersFor = (name: string): Record<string, string> => {
  const provider = findProvider(name, gatewayOf({}))
  const url = new URL(authorizeUrl(provider.authorizationEndpoint ?? '', provider, request))
  return Object.fromEntries(url.searchParams)
}

describe('authorize url', () => {
  const common = {
    response_type: 'code',
    client_id: 'client 1',
    redirect_uri: 'http://127.0.0.1:53174/callback',
    state: 'state-1',
    code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
    code_challenge_method: 'S256',
  }

  it('asks github with PKCE and scopes set off by spaces', () => {
    assert.deepEqual(parametersFor('github'), { ...common, scope: 'a:b c' })
  })

  it('asks google for a refresh token', () => {
    assert.deepEqual(parametersFor('google'), {
      ...common,
      scope: 'a:b c',
      access_type: 'offline',
      prompt: 'consent',
    })
  })

  it('asks slack for the scopes of a person, set off by commas', () => {
    assert.deepEqual(parametersFor('slack'), { ...common, user_scope: 'a:b,c' })
  })

  it('keeps the query of the endpoint but lets nothing replace what protects the login', () => {
    const url = new URL(
      authorizeUrl(
        'https://id.example/authorize?tenant=1&state=planted',
        {
          ...findProvider('github', gatewayOf({})),
          authorizationParameters: { code_challenge_method: 'plain', nonce: 'planted' },
        },
        { ...request, scopes: [], nonce: 'nonce-1' },
      ),
    )
    assert.equal(url.searchParams.get('tenant'), '1')
    assert.deepEqual(url.searchParams.getAll('state'), ['state-1'])
    assert.deepEqual(url.searchParams.getAll('nonce'), ['nonce-1'])
    assert.deepEqual(url.searchParams.getAll('code_challenge_method'), ['S256'])
    assert.equal(url.searchParams.has('scope'), false)
  })
})
