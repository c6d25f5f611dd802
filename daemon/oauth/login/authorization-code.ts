import { createHash } from 'node:crypto'
import {
  authorizationCodeGrantRequest,
  nopkce,
  processAuthorizationCodeResponse,
  processPushedAuthorizationResponse,
  pushedAuthorizationRequest,
  validateAuthResponse,
} from 'oauth4webapi'
import { DoorwardError } from '../../../shared/errors.ts'
import { getDialect } from '../dialects/dialects.ts'
import {
  findIdToken,
  standardAnswer,
  tokenRequestOptions,
  withTenantIssuer,
} from '../dialects/token-endpoint.ts'
import { clientAuthentication } from '../providers/client-proof.ts'
import type { Client } from '../providers/client-store.ts'
import type { Endpoints } from '../providers/discovery.ts'
import { providerError, type Refusal } from '../providers/errors.ts'
import type { Provider } from '../providers/providers.ts'
import { isSafeAddress, safeErrorCode, toExplanation } from '../providers/request.ts'
import { type Grant, toGrant } from '../tokens/token-record.ts'

type AuthorizationRequest = {
  readonly clientId: string
  readonly redirectUri: string
  readonly scopes: readonly string[]
  readonly state: string
  readonly codeVerifier: string
  /** For a login with the scope openid: the id token must have the same (OpenID Connect Core 3.1.2.1). */
  readonly nonce?: string
}

/**
 * The URL a user opens to log in: the code flow with PKCE S256, where the provider has that. Keeps the query of
 * the endpoint (RFC 6749 section 3.1).
 */
export const authorizeUrl = (
  endpoint: string,
  provider: Provider,
  request: AuthorizationRequest,
): string => withParameters(endpoint, toParameters(provider, request))

const withParameters = (endpoint: string, parameters: Readonly<Record<string, string>>): string => {
  const url = new URL(endpoint)
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
  return url.href
}

/** A provider's own parameters cannot replace the ones that protect the login. */
const toParameters = (
  provider: Provider,
  request: AuthorizationRequest,
): Record<string, string> => ({
  ...provider.authorizationParameters,
  ...(request.scopes.length === 0
    ? {}
    : { [provider.scopeParameter]: request.scopes.join(provider.scopeSeparator) }),
  response_type: 'code',
  client_id: request.clientId,
  redirect_uri: request.redirectUri,
  state: request.state,
  ...(request.nonce !== undefined && { nonce: request.nonce }),
  ...(provider.quirks.pkce !== false && {
    code_challenge: toCodeChallenge(request.codeVerifier),
    code_challenge_method: 'S256',
  }),
})

/** The page to open for a login, and how long it can be opened where that is limited. */
export type Authorization = { readonly url: string; readonly lifetimeSeconds?: number }

/**
 * The page of a login. A server that demands it gets the request directly first (RFC 9126), and the page then
 * names that request. Throws `provider-refused`, `provider-unavailable` or `provider-misconfigured`.
 */
export const requestAuthorization = async (
  { provider, client, endpoints }: DirectRequest,
  request: Omit<AuthorizationRequest, 'clientId'>,
  signal: AbortSignal,
): Promise<Authorization> => {
  const { server } = endpoints
  const { authorization_endpoint: page, pushed_authorization_request_endpoint: endpoint } = server
  const { clientId } = client
  const whole = { ...request, clientId }
  if (!server.require_pushed_authorization_requests)
    return { url: authorizeUrl(page, provider, whole) }
  if (endpoint === undefined)
    throw new DoorwardError(
      'provider-misconfigured',
      `the issuer of ${provider.name} demands pushed authorization requests and names no endpoint for them`,
      { hint: `its metadata are wrong: ask who runs ${server.issuer}` },
    )
  const wireClient = { client_id: clientId }
  const { host } = new URL(endpoint)
  try {
    const response = await pushedAuthorizationRequest(
      server,
      wireClient,
      clientAuthentication(client, endpoints),
      toParameters(provider, whole),
      tokenRequestOptions(endpoint, endpoints, signal),
    )
    const answer = await standardAnswer(response, getDialect(provider), endpoints)
    const pushed = await processPushedAuthorizationResponse(server, wireClient, answer)
    const url = withParameters(page, { client_id: clientId, request_uri: pushed.request_uri })
    if (isSafeAddress(url, page)) return { url, lifetimeSeconds: pushed.expires_in }
    throw new DoorwardError('provider-refused', `${host} named a request of too many characters`)
  } catch (error) {
    const { redirectUri, state, nonce } = request
    const refused = { provider, client, redirectUri, secrets: [state, nonce] }
    throw providerError(error, `${host} did not take the authorization request`, refused)
  }
}

/** The S256 code challenge of a code verifier. RFC 7636 section 4.2. */
export const toCodeChallenge = (codeVerifier: string): string =>
  createHash('sha256').update(codeVerifier, 'ascii').digest('base64url')

/** The values of the login that a callback must match. */
type ExpectedCallback = {
  /** The only valid `iss`; undefined when the provider's issuer is not known. */
  readonly issuer: string | undefined
  /** True where the provider's metadata announce an `iss` with every answer. */
  readonly issuerRequired: boolean
  readonly authorizationEndpoint: string | undefined
}

/** The `state` of a callback, for finding its login. Throws `callback-invalid` unless there is exactly one. */
export const readState = (parameters: URLSearchParams): string => {
  const [state, ...more] = parameters.getAll('state')
  if (!state) throw invalid('it has no state')
  if (more.length > 0) throw invalid('it has more than one state')
  return state
}

/**
 * Reads an authorization response whose state was found: issuer first, then error, then code. Throws
 * `callback-invalid` or `issuer-mismatch` (RFC 9207 section 2.4), after which the login stays pending.
 */
export const readCallback = (
  parameters: URLSearchParams,
  expected: ExpectedCallback,
): { readonly kind: 'code' } | ({ readonly kind: 'error' } & Refusal) => {
  for (const name of ['iss', 'error', 'code', 'response', 'id_token', 'token', 'access_token'])
    if (parameters.getAll(name).length > 1) throw invalid(`it has more than one ${name}`)
  checkIssuer(parameters.get('iss'), expected)
  const error = parameters.get('error')
  if (error) {
    const explanation = toExplanation(parameters.get('error_description'))
    return {
      kind: 'error',
      code: safeErrorCode(error) ?? 'unnamed error',
      ...(explanation !== undefined && { explanation }),
    }
  }
  if (!parameters.get('code')) throw invalid('it has neither a code nor an error')
  return { kind: 'code' }
}

/** The parameters of a pasted address, which must be the redirect URI itself. Throws `callback-invalid`. */
export const readPasted = (text: string, redirectUri: string): URLSearchParams => {
  const url = URL.canParse(text.trim()) ? new URL(text.trim()) : undefined
  const isOurs = url && `${url.origin}${url.pathname}` === redirectUri && !url.username
  if (isOurs) return url.searchParams
  throw new DoorwardError('callback-invalid', 'the pasted address is not the redirect URI', {
    hint: `paste the whole address that begins with ${redirectUri}?`,
  })
}

const checkIssuer = (iss: string | null, expected: ExpectedCallback): void => {
  const { issuer, issuerRequired, authorizationEndpoint } = expected
  if (issuer === undefined) return checkOrigin(iss, authorizationEndpoint)
  if (iss === null && issuerRequired)
    throw new DoorwardError('issuer-mismatch', 'the answer does not say which provider it is from')
  if (iss !== null && iss !== issuer)
    throw new DoorwardError('issuer-mismatch', 'the answer comes from another provider')
}

/**
 * A provider without a known issuer may have redirected the browser to another provider, to get its code
 * from us (RFC 9207 section 2.4 advises to refuse an `iss` that was not announced).
 */
const checkOrigin = (iss: string | null, authorizationEndpoint = ''): void => {
  if (iss === null || parseOrigin(iss) === parseOrigin(authorizationEndpoint)) return
  throw new DoorwardError('issuer-mismatch', 'the answer comes from another provider', {
    hint: 'if it is the right one, set its issuer in gateway.yaml',
  })
}

const parseOrigin = (text: string): string | undefined =>
  URL.canParse(text) ? new URL(text).origin : undefined

const invalid = (why: string): DoorwardError =>
  new DoorwardError('callback-invalid', `this is not an answer to a pending login: ${why}`, {
    hint: 'use the address of the browser window in which you approved this login',
  })

/** What the requests to a provider need that pass no browser. */
type DirectRequest = {
  readonly provider: Provider
  readonly client: Client
  readonly endpoints: Endpoints
}

/** All but the parameters was fixed when the login started. */
type ExchangeRequest = DirectRequest & {
  readonly parameters: URLSearchParams
  readonly state: string
  readonly codeVerifier: string
  readonly nonce?: string
  readonly redirectUri: string
}

/**
 * Exchanges the code for tokens. RFC 6749 section 4.1.3, with the verifier of RFC 7636. Throws
 * `provider-refused` or `provider-unavailable`, with the provider's error but no token of its answer.
 */
export const exchangeCode = async (
  request: ExchangeRequest,
  signal: AbortSignal,
): Promise<Grant> => {
  const { parameters, state, codeVerifier, nonce, redirectUri, provider, client, endpoints } =
    request
  const { server } = endpoints
  const wireClient = { client_id: client.clientId }
  try {
    const response = await authorizationCodeGrantRequest(
      server,
      wireClient,
      clientAuthentication(client, endpoints),
      validateAuthResponse(server, wireClient, withoutUnknownIssuer(parameters, endpoints), state),
      redirectUri,
      provider.quirks.pkce === false ? nopkce : codeVerifier,
      tokenRequestOptions(server.token_endpoint, endpoints, signal),
    )
    const answer = await standardAnswer(response, getDialect(provider), endpoints)
    const idToken = await findIdToken(answer)
    const checked = withTenantIssuer(endpoints, idToken)
    const isNonceExpected = idToken !== undefined && nonce !== undefined
    return toGrant(
      await processAuthorizationCodeResponse(
        checked,
        wireClient,
        answer,
        isNonceExpected ? { expectedNonce: nonce } : {},
      ),
    )
  } catch (error) {
    const { host } = new URL(server.token_endpoint)
    const secrets = [parameters.get('code') ?? undefined, codeVerifier, state, nonce]
    const refused = { provider, client, redirectUri, secrets }
    throw providerError(error, `the login failed at ${host}`, refused)
  }
}

/** Without a known issuer there is nothing to compare `iss` with; the library would refuse any. */
const withoutUnknownIssuer = (
  parameters: URLSearchParams,
  { isIssuerKnown }: Endpoints,
): URLSearchParams => {
  const copy = new URLSearchParams(parameters)
  if (!isIssuerKnown) copy.delete('iss')
  return copy
}
