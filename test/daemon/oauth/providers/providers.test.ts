import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import {
  findProvider,
  isProviderName,
  providerNames,
} from '../../../../daemon/oauth/providers/providers.ts'
import { builtInProviders } from '../../../../shared/config/name-forms.ts'
import { gatewayOf } from '../../../support/providers/oauth-app.ts'

const find = (name: string, entry?: object) =>
  findProvider(name, gatewayOf(entry ? { providers: { [name]: entry } } : {}))
const at = (path: string) => `https://id.example/${path}`

describe('providers', () => {
  it('says where others go, also when the name is near a known one', () => {
    for (const [name, first] of [
      ['githib', 'did you mean "github"?'],
      [
        'keycloak',
        'known: atlassian, discord, dropbox, github, gitlab, google, linear, microsoft, notion, slack, spotify;',
      ],
    ] as const)
      assert.throws(() => find(name), {
        code: 'provider-unknown',
        hint: `${first} add others under providers: in gateway.yaml`,
      })
  })

  it('knows the built-in ones with the default scopes', () => {
    assert.deepEqual(providerNames(gatewayOf({})), [...builtInProviders].sort())
    assert.deepEqual(find('google').scopes, [
      'https://www.googleapis.com/auth/gmail.modify',
      'https://www.googleapis.com/auth/calendar',
    ])
    assert.deepEqual(find('github').scopes, ['repo', 'user'])
    assert.deepEqual(find('slack').scopes, ['chat:write', 'channels:read'])
  })

  it('checks iss of github against the exact issuer', () =>
    assert.equal(find('github').issuer, 'https://github.com/login/oauth'))

  it('lays single fields over a built-in', () => {
    const { scopes, clientId, redirectHost, tokenEndpoint } = find('google', {
      scopes: ['openid'],
      client_id: 'mine',
      redirect_host: 'localhost',
    })
    assert.deepEqual(
      { scopes, clientId, redirectHost, tokenEndpoint },
      {
        scopes: ['openid'],
        clientId: 'mine',
        redirectHost: 'localhost',
        tokenEndpoint: 'https://oauth2.googleapis.com/token',
      },
    )
  })

  it('gives a tenant of Microsoft its own metadata, and keeps scopes and redirect host', () => {
    const issuer = 'https://login.microsoftonline.com/72f988bf-86f1-41af-91ab-2d7cd011db47/v2.0'
    const provider = find('microsoft', { issuer })
    assert.deepEqual(
      [provider.issuer, provider.tokenEndpoint, provider.redirectHost, provider.quirks],
      [issuer, undefined, 'localhost', {}],
    )
    assert.ok(provider.scopes.includes('offline_access'))
  })

  it('drops the built-in issuer with the built-in authorization endpoint', () => {
    const provider = find('google', { authorization_endpoint: at('authorize') })
    assert.equal(provider.issuer, undefined)
    assert.equal(provider.tokenEndpoint, 'https://oauth2.googleapis.com/token')
  })

  it('sends the tokens of another token endpoint to no endpoint of the built-in', () => {
    const provider = find('google', { token_endpoint: at('token') })
    assert.equal(provider.revocationEndpoint, undefined)
    assert.equal(provider.userinfoEndpoint, undefined)
    assert.equal(provider.authorizationEndpoint, 'https://accounts.google.com/o/oauth2/v2/auth')
  })

  it('mixes no endpoint of a built-in with another issuer', () => {
    const provider = find('google', { issuer: 'https://id.example', token_endpoint: at('token') })
    assert.equal(provider.tokenEndpoint, at('token'))
    assert.equal(provider.authorizationEndpoint, undefined)
  })

  it('lets endpoints win over an issuer, which then is only what iss must be', () => {
    const provider = find('mine', {
      issuer: 'https://id.example',
      authorization_endpoint: at('authorize'),
      token_endpoint: at('token'),
    })
    assert.equal(provider.issuer, 'https://id.example')
    assert.equal(provider.tokenEndpoint, at('token'))
  })

  it('asks a second workspace as its dialect does', () => {
    const { scopeParameter, scopeSeparator, title, issuer } = find('slack-work', {
      dialect: 'slack',
      authorization_endpoint: at('authorize'),
      token_endpoint: at('token'),
    })
    assert.deepEqual(
      [scopeParameter, scopeSeparator, title, issuer],
      ['user_scope', ',', 'slack-work', undefined],
    )
  })

  it('refuses a provider that does not say where to log in', () => {
    for (const entry of [{ client_id: 'x' }, { token_endpoint: at('token') }])
      assert.throws(() => find('mine', entry), { code: 'provider-misconfigured' })
  })

  it('takes only names that are safe as file names', () => {
    for (const name of ['google', 'my-idp_2']) assert.equal(isProviderName(name), true)
    for (const name of ['', '.', '..', '../x', 'a/b', 'A', 'a.json', 'a\n', '-a', 'a'.repeat(65)])
      assert.equal(isProviderName(name), false, name)
  })
})
