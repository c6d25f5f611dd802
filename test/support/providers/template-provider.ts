import { idTokenOf } from './custom-provider.ts'
import { createIssuedGrants, type IssuedGrant, isVerifierOf, randomText } from './issued-grants.ts'
import {
  type ProviderAnswer,
  type ProviderRequest,
  type ProviderServer,
  basicOf,
  bearerOf,
  redirectTo,
  startProviderServer,
} from './provider-server.ts'

type Fields = Readonly<Record<string, string>>

/** How one provider speaks, as its documentation has it. */
export type Speech = {
  /** What an authorization request must have, and what it must not have. */
  readonly authorize?: Fields
  readonly notAuthorize?: readonly string[]
  /** The scopes that are expected, as one text; undefined for no scope at all. */
  readonly scope: string | undefined
  readonly redirectHost?: string
  /** Where the client has its secret; `none` for a public client. */
  readonly client: 'basic' | 'post' | 'none'
  readonly body: 'form' | 'json'
  /** All fields of a token request; others are refused, as servers with a schema do. */
  readonly onlyFields?: readonly string[]
  /** What requests to token, userinfo and revocation endpoint must have. */
  readonly headers?: Fields
  readonly tokenAnswer: Readonly<Record<string, unknown>>
  /** Default true. */
  readonly refreshBringsRefreshToken?: boolean
  readonly idClaims?: (origin: string) => Readonly<Record<string, unknown>>
  readonly userinfo: {
    readonly method: 'GET' | 'POST'
    readonly body?: string
    readonly answer: unknown
  }
  /** `standard`: RFC 7009; `bearer`: the token that is revoked is the one of the request. */
  readonly revocation?: 'standard' | 'bearer'
}

export type TemplateProvider = ProviderServer & {
  readonly client: { readonly id: string; readonly secret: string }
  /** For `providers:` of gateway.yaml, under the name of the built-in provider. */
  readonly gatewayEntry: Readonly<Record<string, string>>
  readonly isAlive: (token: string) => boolean
  /** Added to the claims of the next id tokens. */
  claims: Readonly<Record<string, unknown>>
}

/** A provider on loopback that refuses whatever its documentation does not have. */
export const startTemplateProvider = async (speech: Speech): Promise<TemplateProvider> => {
  const client = { id: 'my-app', secret: randomText('secret-') }
  const grants = createIssuedGrants()
  const state: Pick<TemplateProvider, 'claims'> = { claims: {} }

  const authorize = ({ query }: ProviderRequest): ProviderAnswer => {
    const redirectUri = query.get('redirect_uri') ?? ''
    const wrong = [
      ...Object.entries(speech.authorize ?? {}).filter(
        ([name, value]) => query.get(name) !== value,
      ),
      ...(speech.notAuthorize ?? []).filter((name) => query.has(name)),
      ...((query.get('scope') ?? undefined) === speech.scope ? [] : ['scope']),
      ...(query.get('client_id') === client.id ? [] : ['client_id']),
      ...(new URL(redirectUri).hostname === (speech.redirectHost ?? '127.0.0.1')
        ? []
        : ['redirect_uri']),
    ]
    if (wrong.length > 0) return { status: 400, body: `wrong: ${wrong.join(' ')}` }
    const code = grants.issueCode({
      redirectUri,
      challenge: query.get('code_challenge') ?? undefined,
      nonce: query.get('nonce') ?? undefined,
      person: 'ada',
      scopes: [],
    })
    return redirectTo(redirectUri, { code, state: query.get('state') ?? undefined })
  }

  /** The fields of a request that is as it should be, else why not. */
  const read = (request: ProviderRequest): Fields | ProviderAnswer => {
    const type = request.headers['content-type'] ?? ''
    const isRight =
      speech.body === 'json'
        ? type === 'application/json'
        : type.startsWith('application/x-www-form-urlencoded')
    if (!isRight) return refuse('invalid_request', `content type ${type}`)
    const fields = (
      speech.body === 'json' ? JSON.parse(request.body) : Object.fromEntries(request.form)
    ) as Fields
    const unknown = Object.keys(fields).filter(
      (name) => speech.onlyFields && !speech.onlyFields.includes(name),
    )
    if (unknown.length > 0) return refuse('invalid_request', `body has ${unknown.join(' ')}`)
    if (!hasHeaders(request)) return refuse('invalid_request', 'a header is missing')
    const [user, password] = basicOf(request) ?? []
    const how =
      user !== undefined ? 'basic' : fields['client_secret'] === undefined ? 'none' : 'post'
    const id = user ?? fields['client_id']
    const secret = password ?? fields['client_secret']
    const isProven = id === client.id && (how === 'none' || secret === client.secret)
    return how === speech.client && isProven ? fields : refuse('invalid_client', `proof by ${how}`)
  }

  const hasHeaders = ({ headers }: ProviderRequest): boolean =>
    Object.entries(speech.headers ?? {}).every(([name, value]) => headers[name] === value)

  const token = (request: ProviderRequest): ProviderAnswer => {
    const fields = read(request)
    if (isAnswer(fields)) return fields
    if (fields['grant_type'] === 'refresh_token') {
      const grant = grants.byRefresh(fields['refresh_token'] ?? '')
      if (!grant) return refuse('invalid_grant', 'no such refresh token')
      const isRotated = speech.refreshBringsRefreshToken ?? true
      if (isRotated) grants.end(fields['refresh_token'] ?? '')
      return issue(grant, isRotated, undefined)
    }
    const code = grants.takeCode(fields['code'] ?? '')
    if (!code || code.redirectUri !== fields['redirect_uri'])
      return refuse('invalid_grant', 'no such code')
    if (!isVerifierOf(code.challenge, fields['code_verifier'] ?? null))
      return refuse('invalid_grant', 'not the verifier')
    return issue(grants.open('ada', []), true, code.nonce)
  }

  const issue = (grant: IssuedGrant, hasRefresh: boolean, nonce: string | undefined) => {
    const prefixes = { access: 'at-', ...(hasRefresh && { refresh: 'rt-' }) }
    const { accessToken, refreshToken } = grants.addTokens(grant, prefixes)
    const claims = speech.idClaims?.(server.origin)
    return {
      status: 200,
      body: {
        access_token: accessToken,
        ...(refreshToken !== undefined && { refresh_token: refreshToken }),
        ...(claims && {
          id_token: idTokenOf({ aud: client.id, nonce, ...claims, ...state.claims }, 'RS256'),
        }),
        ...speech.tokenAnswer,
      },
    }
  }

  const userinfo = (request: ProviderRequest): ProviderAnswer => {
    const { method, body = '', answer } = speech.userinfo
    const isRight = request.method === method && request.body === body && hasHeaders(request)
    if (!isRight) return refuse('invalid_request', `${request.method} ${request.body}`)
    return grants.byAccess(bearerOf(request) ?? '')
      ? { status: 200, body: answer }
      : { status: 401, body: {} }
  }

  const revoke = (request: ProviderRequest): ProviderAnswer | undefined => {
    if (speech.revocation === undefined) return undefined
    if (speech.revocation === 'bearer') {
      const grant = grants.byAccess(bearerOf(request) ?? '')
      if (!grant || request.body !== '') return refuse('invalid_request', 'no bearer, or a body')
      grants.endGrant(grant)
      return { status: 200, body: null }
    }
    const fields = read(request)
    if (isAnswer(fields)) return fields
    grants.end(fields['token'] ?? '')
    return { status: 200, body: {} }
  }

  const routes: Readonly<Record<string, (request: ProviderRequest) => ProviderAnswer | undefined>> =
    { '/authorize': authorize, '/token': token, '/me': userinfo, '/revoke': revoke }
  const server = await startProviderServer((request) => routes[request.path]?.(request))
  return {
    ...server,
    client,
    gatewayEntry: {
      authorization_endpoint: `${server.origin}/authorize`,
      token_endpoint: `${server.origin}/token`,
      userinfo_endpoint: `${server.origin}/me`,
      client_id: client.id,
      ...(speech.revocation && { revocation_endpoint: `${server.origin}/revoke` }),
    },
    isAlive: grants.isAlive,
    get claims() {
      return state.claims
    },
    set claims(claims) {
      state.claims = claims
    },
  }
}

const refuse = (error: string, description: string): ProviderAnswer => ({
  status: 400,
  body: { error, error_description: description },
})

const isAnswer = (value: Fields | ProviderAnswer): value is ProviderAnswer =>
  typeof value['status'] === 'number'
