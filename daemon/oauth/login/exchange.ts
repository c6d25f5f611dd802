import {
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  type IDToken,
  None,
  type TokenEndpointResponse,
  authorizationCodeGrantRequest,
  getValidatedIdTokenClaims,
  processAuthorizationCodeResponse,
  validateAuthResponse,
} from 'oauth4webapi'
import { DoorwardError } from '../../../shared/errors.ts'
import type { Client } from '../provider/client-file.ts'
import type { Endpoints } from '../provider/discovery.ts'
import { providerError } from '../provider/provider-error.ts'
import { requestOptions } from '../provider/request-provider.ts'

/** What a code is exchanged with; all of it was fixed when the login started. */
export type ExchangeRequest = {
  readonly parameters: URLSearchParams
  readonly state: string
  readonly codeVerifier: string
  readonly redirectUri: string
  readonly client: Client
  readonly endpoints: Endpoints
}

/** What a provider granted. `expiresInSeconds` counts from the answer; undefined means it did not say. */
export type Grant = {
  readonly accessToken: string
  readonly tokenType: string
  readonly refreshToken: string | undefined
  readonly expiresInSeconds: number | undefined
  /** What was really granted, or undefined when the answer does not say (then all that was asked). */
  readonly scopes: readonly string[] | undefined
  readonly idClaims: IDToken | undefined
}

/**
 * Exchanges the code for tokens. RFC 6749 section 4.1.3, with the verifier of RFC 7636. Throws
 * `provider-refused` or `provider-unavailable`; neither holds anything of the provider's answer.
 */
export const exchangeCode = async (
  { parameters, state, codeVerifier, redirectUri, client, endpoints }: ExchangeRequest,
  signal: AbortSignal,
): Promise<Grant> => {
  const { server } = endpoints
  const wireClient = { client_id: client.clientId }
  try {
    const response = await authorizationCodeGrantRequest(
      server,
      wireClient,
      clientAuthentication(client, endpoints),
      validateAuthResponse(server, wireClient, checkable(parameters, endpoints), state),
      redirectUri,
      codeVerifier,
      requestOptions(server.token_endpoint, signal),
    )
    // A provider that answers in a dialect of its own is translated here, before the standard reads it.
    const answer = endpoints.isIssuerKnown ? response : await withoutIdToken(response)
    return grantOf(await processAuthorizationCodeResponse(server, wireClient, answer))
  } catch (error) {
    throw providerError(error, `${new URL(server.token_endpoint).host} refused the login`)
  }
}

/** How the client proves who it is: by secret in the body, unless the server says it takes only Basic. */
export const clientAuthentication = (client: Client, { server }: Endpoints): ClientAuth => {
  if (client.clientSecret === undefined) return None()
  const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_post']
  const onlyBasic =
    methods.includes('client_secret_basic') && !methods.includes('client_secret_post')
  return onlyBasic ? ClientSecretBasic(client.clientSecret) : ClientSecretPost(client.clientSecret)
}

/** Without a known issuer there is nothing to hold `iss` against; the library would refuse any. */
const checkable = (parameters: URLSearchParams, { isIssuerKnown }: Endpoints): URLSearchParams => {
  const copy = new URLSearchParams(parameters)
  if (!isIssuerKnown) copy.delete('iss')
  return copy
}

const withoutIdToken = async (response: Response): Promise<Response> => {
  const { status, headers } = response
  const text = await response.text()
  try {
    const { id_token: _, ...body } = JSON.parse(text) as Record<string, unknown>
    return new Response(JSON.stringify(body), { status, headers })
  } catch {
    return new Response(text, { status, headers })
  }
}

const grantOf = (answer: TokenEndpointResponse): Grant => {
  const { access_token: accessToken, refresh_token: refreshToken } = answer
  // RFC 6749 appendix A.12 and A.17: a token with a line break would forge headers and lines wherever
  // it is used.
  if (![accessToken, refreshToken ?? ' '].every((token) => /^[\x20-\x7e]+$/.test(token)))
    throw new DoorwardError(
      'provider-refused',
      'the provider sent a token with characters that no token can have',
      { hint: 'check the token endpoint in gateway.yaml' },
    )
  return {
    accessToken,
    tokenType: answer.token_type === 'bearer' ? 'Bearer' : answer.token_type,
    refreshToken,
    expiresInSeconds: answer.expires_in,
    scopes: answer.scope === undefined ? undefined : scopesOf(answer.scope),
    idClaims: getValidatedIdTokenClaims(answer),
  }
}

/**
 * Scopes of an answer: RFC 6749 separates them with spaces, GitHub and Slack with commas. What cannot
 * be one (appendix A.4) is left out: they are shown to people.
 */
export const scopesOf = (text: string): string[] => [
  ...new Set(text.split(/[ ,]+/).filter((scope) => /^[\x21-\x7e]+$/.test(scope))),
]
