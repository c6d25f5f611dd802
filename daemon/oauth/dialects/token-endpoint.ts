import { customFetch } from 'oauth4webapi'
import { DoorwardError } from '../../../shared/errors.ts'
import { withOtherProof } from '../providers/client-proof.ts'
import { type Endpoints, keyPairAlgorithms } from '../providers/discovery.ts'
import { jsonObjectIn, requestOptions } from '../providers/request.ts'
import type { Dialect } from './dialect.ts'

/** The options of a request to the token or revocation endpoint, with the headers and body of this provider. */
export const tokenRequestOptions = (
  endpoint: string,
  { server, quirks }: Endpoints,
  signal: AbortSignal,
) => {
  const options = requestOptions(endpoint, signal)
  const send = async (url: string, init: RequestInit): Promise<Response> =>
    options[customFetch](url, quirks?.requestBody === 'json' ? withJsonBody(init) : init)
  return {
    ...options,
    ...(quirks?.headers && { headers: { ...quirks.headers } }),
    [customFetch]:
      quirks?.clientAuthentication === undefined
        ? withOtherProof(send, endpoint === server.revocation_endpoint)
        : send,
  }
}

/** The library sends forms only. */
const withJsonBody = (init: RequestInit): RequestInit => {
  if (!(init.body instanceof URLSearchParams)) return init
  const headers = new Headers(init.headers)
  headers.set('content-type', 'application/json')
  return { ...init, headers, body: JSON.stringify(Object.fromEntries(init.body)) }
}

/**
 * A token endpoint's answer as in the standard: normalised by the provider's dialect, with the token type
 * Bearer, and without an id token that cannot be checked. An answer that is not a JSON object is returned
 * unchanged. Throws `provider-refused` for a token of another type, and for an id token that is not signed by
 * a key pair.
 */
export const standardAnswer = async (
  response: Response,
  dialect: Dialect,
  { isIssuerKnown, quirks }: Pick<Endpoints, 'isIssuerKnown' | 'quirks'>,
): Promise<Response> => {
  const text = await response.text()
  const headers = new Headers(response.headers)
  const document = jsonObjectIn(text)
  if (!document) return new Response(text || null, { status: response.status, headers })
  const { status, body } = dialect.normalise({
    status: response.status,
    body: withoutEmptyFields(document),
  })
  const { id_token: idToken, ...rest } =
    typeof body['access_token'] === 'string' ? asBearer(body) : body
  const isCheckable = isIssuerKnown || quirks?.idTokenIssuer !== undefined
  if (isCheckable && typeof idToken === 'string') requireKeyPair(idToken)
  // The library would use a challenge (RFC 6749 section 5.2 has one with 401) instead of the error.
  if (typeof body['error'] === 'string') headers.delete('www-authenticate')
  return new Response(
    JSON.stringify(isCheckable && idToken !== undefined ? { ...rest, id_token: idToken } : rest),
    { status, headers },
  )
}

/** Bearer and its other spellings; LinkedIn and Shopify leave the type out. */
const bearerForm = /^\s*bearer([ _-]?(access[ _-]?)?token)?\s*$/i

const asBearer = (answer: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> => {
  const { token_type: type = '' } = answer
  if (type === '' || (typeof type === 'string' && bearerForm.test(type)))
    return { ...answer, token_type: 'Bearer' }
  // Letters only: never a token.
  const shown =
    typeof type === 'string' && /^[a-z][a-z _-]{0,30}$/i.test(type) ? `"${type}"` : 'unknown'
  throw new DoorwardError(
    'provider-refused',
    `the provider sent a token of the type ${shown}, and only Bearer can be used`,
    { hint: 'check the token endpoint in gateway.yaml, and what tokens the app gets' },
  )
}

/**
 * The signature is not checked: TLS vouches for an id token of the token endpoint (OpenID Connect Core section
 * 3.1.3.7). But one that anyone, or every program with the client secret, can make must not name an account.
 */
const requireKeyPair = (idToken: string): void => {
  const algorithm = readJwtPart(idToken, 0)?.['alg']
  if (typeof algorithm === 'string' && keyPairAlgorithms.includes(algorithm)) return
  const shown =
    typeof algorithm === 'string' && /^\w{1,10}$/.test(algorithm) ? `"${algorithm}"` : 'unknown'
  throw new DoorwardError(
    'provider-refused',
    `the signature algorithm of the id token is ${shown}, and only those with a key pair can be used`,
    {
      hint: 'choose RS256 or ES256 in the settings of the app at the provider, or log in without the scope openid',
    },
  )
}

const readJwtPart = (jwt: string, index: 0 | 1): Readonly<Record<string, unknown>> | undefined =>
  jsonObjectIn(Buffer.from(jwt.split('.')[index] ?? '', 'base64url').toString())

/** The id token in a token endpoint's answer, which stays readable. */
export const findIdToken = async (answer: Response): Promise<string | undefined> => {
  const idToken = jsonObjectIn(await answer.clone().text())?.['id_token']
  return typeof idToken === 'string' ? idToken : undefined
}

/**
 * The server whose id token this is: where the issuer depends on the tenant, that of the tenant which the id
 * token names. Its `iss` must then be that issuer.
 */
export const withTenantIssuer = (
  { server, quirks }: Endpoints,
  idToken: string | undefined,
): Endpoints['server'] => {
  if (quirks?.idTokenIssuer === undefined || idToken === undefined) return server
  const tenant = readJwtPart(idToken, 1)?.['tid']
  if (typeof tenant !== 'string' || !/^[\w-]{1,64}$/.test(tenant)) return server
  const path = quirks.idTokenIssuer.replace('{tid}', tenant)
  return { ...server, issuer: new URL(path, server.token_endpoint).href }
}

/**
 * Many servers send null, or an empty token, where the standard omits the field, and some send the
 * scopes as a list: https://dev.twitch.tv/docs/authentication/getting-tokens-oidc
 */
const withoutEmptyFields = (
  document: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(document)
      .filter(([name, value]) => value !== null && !(name.endsWith('_token') && value === ''))
      .map(([name, value]) => [name, name === 'scope' ? joinScopes(value) : value]),
  )

/** A list of strings as in RFC 6749 section 3.3; other values unchanged. */
const joinScopes = (scope: unknown): unknown =>
  Array.isArray(scope) && scope.every((item) => typeof item === 'string') ? scope.join(' ') : scope
