import assert from 'node:assert/strict'
import { findOtherAddress, toLoginServer } from '../../../../daemon/oauth/providers/login-server.ts'
import { findProvider } from '../../../../daemon/oauth/providers/providers.ts'
import { gatewayOf } from '../../../support/providers/oauth-app.ts'

const corp = 'https://corp.example'
const realm = { issuer: `${corp}/realms/a` }
const plain = { authorization_endpoint: `${corp}/authorize`, token_endpoint: `${corp}/token` }
const evil = 'https://evil.example'

const serverOf = (name: string, entry: object | undefined) =>
  toLoginServer(findProvider(name, gatewayOf(entry ? { providers: { [name]: entry } } : {})))

/** A login made with the first entry, used with the second: the address that it does not belong to. */
const other = (before: object | undefined, now: object | undefined, name = 'mine') =>
  findOtherAddress(serverOf(name, before), serverOf(name, now))

describe('the server of a login', () => {
  it('is the same after a change that leads to no other one', () => {
    const cases: [string, object, object][] = [
      ['a slash', realm, { issuer: `${corp}/realms/a/` }],
      ['letters of another case', realm, { issuer: 'https://Corp.example:443/realms/a' }],
      ['endpoints of the issuer itself', realm, { ...realm, ...plain }],
      ['endpoints by discovery', { ...realm, ...plain }, realm],
      ['an issuer for endpoints', plain, { ...plain, issuer: `${corp}/realms/a` }],
      ['an issuer instead of endpoints', plain, realm],
      ['endpoints instead of the issuer', realm, plain],
      ['another path', plain, { ...plain, token_endpoint: `${corp}/oauth2/token` }],
      ['an authorization page', plain, { ...plain, authorization_endpoint: evil }],
      ['a way to revoke', plain, { ...plain, revocation_endpoint: `${corp}/revoke` }],
      ['an API', plain, { ...plain, api_url: `${corp}/api/v3` }],
      ['an API on a subdomain', plain, { ...plain, api_url: 'https://api.corp.example' }],
      ['another path of the API', { ...plain, api_url: `${corp}/a` }, { ...plain, api_url: corp }],
      ['an API no more', { ...plain, api_url: 'https://api.example' }, plain],
    ]
    for (const [what, before, now] of cases) assert.equal(other(before, now), undefined, what)
    assert.equal(other(undefined, { client_id: 'x' }, 'github'), undefined)
    assert.equal(other(undefined, { issuer: 'https://accounts.google.com' }, 'google'), undefined)
  })

  it('is another one with any address that gets a token or the client secret', () => {
    const cases: [string, object, object, string][] = [
      ['issuer', realm, { issuer: evil }, evil],
      ['realm', realm, { issuer: `${corp}/realms/b` }, `${corp}/realms/b`],
      ['token endpoint', plain, { ...plain, token_endpoint: `${evil}/token` }, evil],
      [
        'token endpoint of the issuer',
        realm,
        { ...realm, ...plain, token_endpoint: `${evil}/t` },
        evil,
      ],
      ['issuer for endpoints', plain, { issuer: evil }, evil],
      ['http', plain, { ...plain, token_endpoint: 'http://127.0.0.1:1/t' }, 'http://127.0.0.1:1'],
      ['revocation', realm, { ...realm, revocation_endpoint: `${evil}/revoke` }, evil],
      ['API', plain, { ...plain, api_url: evil }, evil],
      [
        'a name that only ends alike',
        plain,
        { ...plain, api_url: 'https://evilcorp.example' },
        'https://evilcorp.example',
      ],
      [
        'another API',
        { ...plain, api_url: 'https://api.example' },
        { ...plain, api_url: evil },
        evil,
      ],
    ]
    for (const [what, before, now, address] of cases)
      assert.equal(other(before, now), address, what)
    const ownGitLab = { issuer: 'https://gitlab.corp.example' }
    assert.equal(other(ownGitLab, undefined, 'gitlab'), 'https://gitlab.com')
    assert.equal(other(undefined, ownGitLab, 'gitlab'), ownGitLab.issuer)
    assert.equal(other(undefined, { token_endpoint: `${evil}/t` }, 'github'), evil)
  })
})
