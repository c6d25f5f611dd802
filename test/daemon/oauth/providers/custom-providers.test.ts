import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, it } from 'mocha'
import type { Login, Logout, StartedDeviceLogin } from '../../../../shared/api/api.ts'
import { browse } from '../../../support/desktop/browser.ts'
import {
  type CustomProvider,
  type Vendor,
  startCustomProvider,
} from '../../../support/providers/custom-provider.ts'
import { createManualTime } from '../../../support/manual-time.ts'
import { type OAuthApp, startOAuthApp } from '../../../support/providers/oauth-app.ts'

/*
 * The metadata are those of the real providers as far as they matter, under an origin of loopback.
 */

const tenant = '72f988bf-86f1-41af-91ab-2d7cd011db47'

/** https://login.microsoftonline.com/<tenant>/v2.0/.well-known/openid-configuration */
const microsoft =
  (tenantName: string, issuerTenant: string) =>
  (origin: string): Vendor => ({
    metadataPath: `/${tenantName}/v2.0/.well-known/openid-configuration`,
    issuer: `${origin}/${tenant}/v2.0`,
    metadata: {
      issuer: `${origin}/${issuerTenant}/v2.0`,
      authorization_endpoint: `${origin}/${tenantName}/oauth2/v2.0/authorize`,
      token_endpoint: `${origin}/${tenantName}/oauth2/v2.0/token`,
      device_authorization_endpoint: `${origin}/${tenantName}/oauth2/v2.0/devicecode`,
      userinfo_endpoint: `${origin}/oidc/userinfo`,
      end_session_endpoint: `${origin}/${tenantName}/oauth2/v2.0/logout`,
      token_endpoint_auth_methods_supported: [
        'client_secret_post',
        'private_key_jwt',
        'client_secret_basic',
      ],
      id_token_signing_alg_values_supported: ['RS256'],
      response_modes_supported: ['query', 'fragment', 'form_post'],
      tenant_region_scope: null,
      cloud_instance_name: 'microsoftonline.com',
    },
    idClaims: { sub: 'AAAAx', preferred_username: 'ada@contoso.example', tid: tenant, ver: '2.0' },
    tokenAnswer: { scope: 'User.Read profile openid email', ext_expires_in: 3600 },
  })

/** https://gitlab.com/.well-known/openid-configuration */
const gitlab = (origin: string): Vendor => ({
  metadataPath: '/.well-known/openid-configuration',
  metadata: {
    issuer: origin,
    authorization_endpoint: `${origin}/oauth/authorize`,
    token_endpoint: `${origin}/oauth/token`,
    revocation_endpoint: `${origin}/oauth/revoke`,
    introspection_endpoint: `${origin}/oauth/introspect`,
    userinfo_endpoint: `${origin}/oauth/userinfo`,
    device_authorization_endpoint: `${origin}/oauth/authorize_device`,
    token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
    id_token_signing_alg_values_supported: ['RS256'],
    code_challenge_methods_supported: ['plain', 'S256'],
  },
  tokenAnswer: { expires_in: 7200, created_at: 1_760_000_000 },
  userinfo: { sub: '42', sub_legacy: 'x', name: 'Ada', nickname: 'ada', email: 'ada@example.com' },
})

/** https://<host>/realms/<realm>/.well-known/openid-configuration */
const keycloak = (origin: string): Vendor => ({
  metadataPath: '/realms/acme/.well-known/openid-configuration',
  sendsIss: true,
  metadata: {
    issuer: `${origin}/realms/acme`,
    authorization_endpoint: `${origin}/realms/acme/protocol/openid-connect/auth`,
    token_endpoint: `${origin}/realms/acme/protocol/openid-connect/token`,
    userinfo_endpoint: `${origin}/realms/acme/protocol/openid-connect/userinfo`,
    revocation_endpoint: `${origin}/realms/acme/protocol/openid-connect/revoke`,
    device_authorization_endpoint: `${origin}/realms/acme/protocol/openid-connect/auth/device`,
    token_endpoint_auth_methods_supported: [
      'private_key_jwt',
      'client_secret_basic',
      'client_secret_post',
      'tls_client_auth',
    ],
    id_token_signing_alg_values_supported: ['PS384', 'RS384', 'EdDSA', 'RS256'],
    authorization_response_iss_parameter_supported: true,
    mtls_endpoint_aliases: { token_endpoint: 'https://elsewhere.example/token' },
  },
  idClaims: { sub: 'f:1:ada', preferred_username: 'ada', email: 'ada@acme.example' },
  tokenAnswer: {
    expires_in: 60,
    refresh_expires_in: 1800,
    'not-before-policy': 0,
    session_state: 'x',
  },
})

/** https://<tenant>.auth0.com/.well-known/openid-configuration: the issuer ends with a slash. */
const auth0 = (origin: string): Vendor => ({
  metadataPath: '/.well-known/openid-configuration',
  metadata: {
    issuer: `${origin}/`,
    authorization_endpoint: `${origin}/authorize`,
    token_endpoint: `${origin}/oauth/token`,
    userinfo_endpoint: `${origin}/userinfo`,
    revocation_endpoint: `${origin}/oauth/revoke`,
    device_authorization_endpoint: `${origin}/oauth/device/code`,
    token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
  },
  idClaims: { sub: 'auth0|1', nickname: 'ada', email: 'ada@example.com' },
})

describe('custom provider by its issuer', () => {
  let app: OAuthApp
  let provider: CustomProvider
  let stop = async (): Promise<void> => undefined
  const time = createManualTime()

  afterEach(() => stop())

  const startAt = async (
    vendor: (origin: string) => Vendor,
    entry: (origin: string) => object,
    isConfidential = true,
  ) => {
    await stop()
    provider = await startCustomProvider(vendor)
    app = await startOAuthApp({
      wait: time.wait,
      env: isConfidential ? { MY_SECRET: provider.client.secret } : {},
      gateway: {
        providers: {
          mine: {
            client_id: provider.client.id,
            client_secret_env: 'MY_SECRET',
            scopes: ['openid', 'profile'],
            ...entry(provider.origin),
          },
        },
      },
    })
    const [startedApp, startedProvider] = [app, provider]
    stop = async () => {
      await startedApp.close()
      startedProvider.close()
    }
  }
  const logIn = async (): Promise<Login> => {
    const { loginId, authorizationUrl } = await app.start({ provider: 'mine' })
    const page = await browse(authorizationUrl)
    assert.doesNotMatch(page.text, /^no such client/)
    return app.ended(loginId)
  }
  const logInByDevice = async (): Promise<Login> => {
    const body = { provider: 'mine', device: true }
    const started = await app.send<StartedDeviceLogin>('POST', '/oauth/start', body)
    assert.equal(started.status, 201, JSON.stringify(started.body))
    ;(await time.next()).pass()
    return app.ended(started.body.loginId)
  }
  const record = async () =>
    JSON.parse(await readFile(join(app.home.tokens, 'mine.json'), 'utf8')) as Record<string, string>
  const refusal = async () => {
    const { status, body } = await app.send('POST', '/oauth/start', { provider: 'mine' })
    return { status, code: body.code, detail: body.detail, hint: body.hint ?? '' }
  }

  it('logs in to a tenant of Microsoft, which cannot revoke', async () => {
    await startAt(microsoft(tenant, tenant), (origin) => ({ issuer: `${origin}/${tenant}/v2.0` }))
    assert.deepEqual((await logIn()).account, { id: 'AAAAx', name: 'ada@contoso.example' })
    assert.deepEqual((await record())['scopes'], ['User.Read', 'profile', 'openid', 'email'])
    assert.equal((await logInByDevice()).status, 'authorized')
    const { body } = await app.send<Logout>('DELETE', '/oauth/tokens/mine')
    assert.deepEqual([body.removed, body.revokedAtProvider], [true, false])
  })

  it('names the issuer that the consumers of Microsoft have', async () => {
    await startAt(microsoft('consumers', tenant), (origin) => ({
      issuer: `${origin}/consumers/v2.0`,
    }))
    const { status, code, detail, hint } = await refusal()
    assert.deepEqual([status, code], [422, 'provider-misconfigured'])
    assert.ok(detail?.endsWith(`the metadata are of ${provider.origin}/${tenant}/v2.0`), detail)
    assert.match(hint, /or set both endpoints instead/)
  })

  it('logs in to GitLab and out again by RFC 7009', async () => {
    await startAt(gitlab, (origin) => ({ issuer: origin, scopes: ['openid', 'read_user'] }))
    assert.deepEqual((await logIn()).account, { id: '42', name: 'ada@example.com' })
    const { accessToken = '', refreshToken = '', scopes } = await record()
    assert.deepEqual(scopes, ['openid', 'read_user'])
    const { body } = await app.send<Logout>('DELETE', '/oauth/tokens/mine')
    assert.equal(body.revokedAtProvider, true)
    assert.deepEqual([accessToken, refreshToken].map(provider.isAlive), [false, false])
    assert.equal((await logInByDevice()).status, 'authorized')
  })

  it('logs in by an issuer and its endpoints, however its id tokens are signed', async () => {
    for (const idAlgorithm of ['ES256', 'PS384', 'EdDSA']) {
      await startAt(
        (origin) => ({ ...keycloak(origin), idAlgorithm }),
        (origin) => ({
          issuer: `${origin}/realms/acme`,
          authorization_endpoint: `${origin}/realms/acme/protocol/openid-connect/auth`,
          token_endpoint: `${origin}/realms/acme/protocol/openid-connect/token`,
        }),
      )
      assert.deepEqual((await logIn()).account, { id: 'f:1:ada', name: 'ada@acme.example' })
    }
  })

  it('logs in to a realm of Keycloak, whose tokens live for a minute', async () => {
    await startAt(keycloak, (origin) => ({ issuer: `${origin}/realms/acme` }))
    const before = Date.now()
    assert.deepEqual((await logIn()).account, { id: 'f:1:ada', name: 'ada@acme.example' })
    const { expiresAt = '', refreshExpiresAt = '', accessToken = '' } = await record()
    const seconds = (text: string) => Math.floor((Date.parse(text) - before) / 10_000) * 10
    assert.deepEqual([seconds(expiresAt), seconds(refreshExpiresAt)], [60, 1800])
    assert.equal(provider.isAlive(accessToken), true)
    assert.equal((await logInByDevice()).status, 'authorized')
    await app.send('DELETE', '/oauth/tokens/mine')
    assert.deepEqual(provider.proofs, Array(provider.proofs.length).fill('post'))
  })

  for (const slash of ['', '/'])
    it(`logs in to Auth0, the issuer written ${slash ? 'with' : 'without'} its slash`, async () => {
      await startAt(auth0, (origin) => ({ issuer: `${origin}${slash}` }))
      assert.deepEqual((await logIn()).account, { id: 'auth0|1', name: 'ada@example.com' })
    })

  it('sends a nonce with openid, and accepts no id token with another one', async () => {
    const vendor = (nonce: object) => (origin: string) => ({
      ...keycloak(origin),
      idClaims: { sub: 'f:1:ada', email: 'ada@acme.example', ...nonce },
    })
    const entry = (origin: string) => ({ issuer: `${origin}/realms/acme` })
    await startAt(vendor({}), entry)
    assert.equal((await logIn()).account?.id, 'f:1:ada')
    const nonces = provider.requests.flatMap(({ query }) => query.getAll('nonce'))
    assert.match(nonces.join(), /^[\w-]{43}$/)
    for (const nonce of ['planted', undefined]) {
      await startAt(vendor({ nonce }), entry)
      const { status, error } = await logIn()
      assert.deepEqual([status, error?.code], ['failed', 'provider-refused'])
      assert.match(error?.message ?? '', /"nonce"/)
    }
  })

  it('is held to the methods of authentication that make sense in its metadata', async () => {
    const nonsense = (methods: unknown) => (origin: string) => {
      const vendor = gitlab(origin)
      return {
        ...vendor,
        metadata: { ...vendor.metadata, token_endpoint_auth_methods_supported: methods },
      }
    }
    const cases: [unknown, string][] = [
      [['client_secret_post'], 'post'],
      [['client_secret_basic', 5, null], 'basic'],
    ]
    for (const [methods, expected] of cases) {
      await startAt(nonsense(methods), (origin) => ({ issuer: origin }))
      assert.equal((await logIn()).status, 'authorized')
      assert.deepEqual(provider.proofs, [expected])
    }
  })

  /** Without metadata: both endpoints are in gateway.yaml. */
  const endpointsOf = (origin: string) => ({
    authorization_endpoint: `${origin}/oauth/authorize`,
    token_endpoint: `${origin}/oauth/token`,
    revocation_endpoint: `${origin}/oauth/revoke`,
  })
  const onlyBasic = (origin: string) => ({
    ...gitlab(origin),
    registeredFor: 'client_secret_basic' as const,
  })
  const logOut = async () => (await app.send<Logout>('DELETE', '/oauth/tokens/mine')).body

  it('tries Basic where the secret in the body is refused, for a login and a logout', async () => {
    for (const entry of [endpointsOf, (issuer: string) => ({ issuer })]) {
      await startAt(onlyBasic, entry)
      assert.equal((await logIn()).status, 'authorized')
      const { accessToken = '', refreshToken = '' } = await record()
      assert.equal((await logOut()).revokedAtProvider, true)
      assert.deepEqual([accessToken, refreshToken].map(provider.isAlive), [false, false])
      assert.deepEqual(provider.proofs.slice(0, 4), ['post', 'basic', 'post', 'basic'])
    }
    await startAt(onlyBasic, (issuer) => ({ issuer }))
    assert.equal((await logInByDevice()).status, 'authorized')
  })

  it('tries the body where Basic is refused', async () => {
    const vendor = (origin: string) => ({
      ...gitlab(origin),
      metadata: { ...gitlab(origin).metadata, token_endpoint_auth_methods_supported: undefined },
      registeredFor: 'client_secret_post' as const,
    })
    await startAt(vendor, (issuer) => ({ issuer }))
    assert.equal((await logIn()).status, 'authorized')
    assert.deepEqual(provider.proofs, ['basic', 'post'])
  })

  it('sends the secret as token_auth says, and in no other way', async () => {
    await startAt(onlyBasic, (origin) => ({ ...endpointsOf(origin), token_auth: 'basic' }))
    assert.equal((await logIn()).status, 'authorized')
    assert.equal((await logOut()).revokedAtProvider, true)
    assert.deepEqual(provider.proofs, ['basic', 'basic', 'basic'])
    await startAt(onlyBasic, (issuer) => ({ issuer, token_auth: 'post' }))
    const { error } = await logIn()
    assert.equal(error?.code, 'provider-refused')
    assert.match(error?.hint ?? '', /compare both, and token_auth \(post\), with the settings/)
    assert.deepEqual(provider.proofs, ['post'])
  })

  it('revokes for a client without a secret by its id in the body, else by Basic', async () => {
    for (const refuses of [false, true]) {
      const revocation: Vendor['revocation'] = ({ headers, form }) =>
        (headers.authorization !== undefined) === refuses && form.get('client_id') === 'my-app'
          ? undefined
          : { status: 401, body: { error: 'invalid_client' } }
      await startAt((origin) => ({ ...gitlab(origin), revocation }), endpointsOf, false)
      assert.equal((await logIn()).status, 'authorized')
      assert.equal((await logOut()).revokedAtProvider, true)
    }
  })
})
