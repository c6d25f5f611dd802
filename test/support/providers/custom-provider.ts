import { createIssuedGrants, isVerifierOf, randomText } from './issued-grants.ts'
import {
  type ProviderAnswer,
  type ProviderRequest,
  type ProviderServer,
  basicOf,
  bearerOf,
  redirectTo,
  startProviderServer,
} from './provider-server.ts'

/** How one provider of the standard kind differs from another: mostly in its metadata. */
export type Vendor = {
  /** Where the metadata are; 404 everywhere else. */
  readonly metadataPath: string
  /** The endpoints named here are served, and the client is held to the methods named here. */
  readonly metadata: Readonly<Record<string, unknown>>
  /** What id tokens and `iss` name; default the `issuer` of the metadata. */
  readonly issuer?: string
  readonly sendsIss?: boolean
  /** Added to every token answer. */
  readonly tokenAnswer?: Readonly<Record<string, unknown>>
  /** Claims of the id token beside the required ones; without them there is no id token. */
  readonly idClaims?: Readonly<Record<string, unknown>>
  /** How id tokens say that they are signed; default RS256. */
  readonly idAlgorithm?: string
  readonly userinfo?: Readonly<Record<string, unknown>>
  /** What this client is registered for; default all methods of the metadata. */
  readonly registeredFor?: 'client_secret_basic' | 'client_secret_post'
  /** Whom the revocation endpoint refuses, and how; default who does not prove itself. */
  readonly revocation?: (request: ProviderRequest) => ProviderAnswer | undefined
}

export type CustomProvider = ProviderServer & {
  readonly client: { readonly id: string; readonly secret: string }
  readonly isAlive: (token: string) => boolean
  /** How the client proved who it is, in the order of its requests. */
  readonly proofs: ('basic' | 'post' | 'none')[]
}

/** A provider of the standard kind on loopback: code flow with PKCE, userinfo, RFC 7009, RFC 8414. */
export const startCustomProvider = async (
  vendorAt: (origin: string) => Vendor,
): Promise<CustomProvider> => {
  const client = { id: 'my-app', secret: randomText('s.e-c_r~e t+') }
  const grants = createIssuedGrants()
  const proofs: CustomProvider['proofs'] = []
  const devices = new Map<string, readonly string[]>()

  const authorize = (vendor: Vendor, { query }: ProviderRequest): ProviderAnswer => {
    if (query.get('client_id') !== client.id || query.get('code_challenge_method') !== 'S256')
      return { status: 400, body: 'no such client, or no PKCE' }
    const redirectUri = query.get('redirect_uri') ?? ''
    const code = grants.issueCode({
      redirectUri,
      challenge: query.get('code_challenge') ?? undefined,
      nonce: query.get('nonce') ?? undefined,
      person: 'person-1',
      scopes: (query.get('scope') ?? '').split(' '),
    })
    const iss = vendor.sendsIss ? issuerOf(vendor) : undefined
    return redirectTo(redirectUri, { code, state: query.get('state') ?? undefined, iss })
  }

  /** How the client proved who it is, or undefined when it did not, or not in a way that is allowed. */
  const prove = ({ metadata, registeredFor }: Vendor, request: ProviderRequest) => {
    const { form } = request
    const [user, password] = basicOf(request)?.map(formDecoded) ?? []
    const how = user === undefined ? (form.has('client_secret') ? 'post' : 'none') : 'basic'
    proofs.push(how)
    if (how === 'none') return form.get('client_id') === client.id ? how : undefined
    const listed = metadata['token_endpoint_auth_methods_supported'] ?? ['client_secret_basic']
    const allowed = registeredFor ? [registeredFor] : listed
    if (!(allowed as string[]).includes(`client_secret_${how}`)) return undefined
    const [id, secret] =
      how === 'basic' ? [user, password] : [form.get('client_id'), form.get('client_secret')]
    return id === client.id && secret === client.secret ? how : undefined
  }

  const token = (vendor: Vendor, request: ProviderRequest): ProviderAnswer => {
    const { form } = request
    if (!prove(vendor, request)) return refuse(401, 'invalid_client')
    if (form.get('grant_type')?.endsWith(':device_code')) {
      const scopes = devices.get(form.get('device_code') ?? '')
      return scopes ? issue(vendor, scopes) : refuse(400, 'authorization_pending')
    }
    const code = grants.takeCode(form.get('code') ?? '')
    if (!code || code.redirectUri !== form.get('redirect_uri')) return refuse(400, 'invalid_grant')
    if (!isVerifierOf(code.challenge, form.get('code_verifier')))
      return refuse(400, 'invalid_grant')
    return issue(vendor, code.scopes, code.nonce)
  }

  const issue = (vendor: Vendor, scopes: readonly string[], nonce?: string): ProviderAnswer => {
    const grant = grants.open('person-1', scopes)
    const issued = grants.addTokens(grant, { access: 'at-', refresh: 'rt-' })
    return {
      status: 200,
      body: {
        access_token: issued.accessToken,
        refresh_token: issued.refreshToken,
        token_type: 'Bearer',
        expires_in: 3600,
        scope: scopes.join(' '),
        ...(vendor.idClaims && {
          id_token: idTokenOf(
            { iss: issuerOf(vendor), aud: client.id, nonce, ...vendor.idClaims },
            vendor.idAlgorithm ?? 'RS256',
          ),
        }),
        ...vendor.tokenAnswer,
      },
    }
  }

  const userinfo = (vendor: Vendor, request: ProviderRequest): ProviderAnswer =>
    grants.byAccess(bearerOf(request) ?? '')
      ? { status: 200, body: vendor.userinfo ?? {} }
      : { status: 401, body: {} }

  const revoke = (vendor: Vendor, request: ProviderRequest): ProviderAnswer => {
    if (vendor.revocation) {
      const answer = vendor.revocation(request)
      if (answer) return answer
    } else if (!prove(vendor, request)) return refuse(401, 'invalid_client')
    grants.end(request.form.get('token') ?? '')
    return { status: 200 }
  }

  /** The person is quick here: the code is entered before the first poll. */
  const device = (vendor: Vendor, request: ProviderRequest): ProviderAnswer => {
    if (!prove(vendor, request)) return refuse(401, 'invalid_client')
    const code = randomText('')
    devices.set(code, (request.form.get('scope') ?? '').split(' '))
    const page = `${server.origin}/device`
    const body = { device_code: code, user_code: 'ABCD-1234', expires_in: 600, interval: 5 }
    return { status: 200, body: { ...body, verification_uri: page } }
  }

  const handlers: Readonly<
    Record<string, (vendor: Vendor, request: ProviderRequest) => ProviderAnswer>
  > = {
    authorization_endpoint: authorize,
    token_endpoint: token,
    userinfo_endpoint: userinfo,
    revocation_endpoint: revoke,
    device_authorization_endpoint: device,
  }
  const server = await startProviderServer((request) => {
    const vendor = vendorAt(server.origin)
    const { metadata, metadataPath } = vendor
    if (request.path === metadataPath) return { status: 200, body: metadata }
    const name = Object.keys(handlers).find(
      (key) => metadata[key] === `${server.origin}${request.path}`,
    )
    return name === undefined ? undefined : handlers[name]?.(vendor, request)
  })
  return { ...server, client, proofs, isAlive: grants.isAlive }
}

const issuerOf = ({ issuer, metadata }: Vendor): string => issuer ?? String(metadata['issuer'])

const refuse = (status: number, error: string): ProviderAnswer => ({ status, body: { error } })

/** RFC 6749 section 2.3.1. */
const formDecoded = (text: string): string => decodeURIComponent(text.replaceAll('+', ' '))

/** Nobody checks the signature of an id token that came straight from the token endpoint. */
export const idTokenOf = (claims: object, alg: string): string => {
  const now = Math.floor(Date.now() / 1000)
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const body = { iat: now, exp: now + 300, ...claims }
  return `${part({ alg, typ: 'JWT' })}.${part(body)}.c2ln`
}
