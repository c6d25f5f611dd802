import {
  authorizationCodeGrantRequest,
  processAuthorizationCodeResponse,
  validateAuthResponse,
} from 'oauth4webapi'
import { dialectOf } from '../dialect/dialects.ts'
import { clientAuthentication } from '../provider/client-authentication.ts'
import type { Client } from '../provider/client-file.ts'
import type { Endpoints } from '../provider/discovery.ts'
import { providerError } from '../provider/provider-error.ts'
import type { Provider } from '../provider/providers.ts'
import { requestOptions } from '../provider/request-provider.ts'
import { type Grant, grantOf } from '../token/grant.ts'
import { standardAnswer } from '../token/read-answer.ts'

/** What a code is exchanged with; all of it was fixed when the login started. */
export type ExchangeRequest = {
  readonly parameters: URLSearchParams
  readonly state: string
  readonly codeVerifier: string
  readonly redirectUri: string
  readonly provider: Provider
  readonly client: Client
  readonly endpoints: Endpoints
}

/**
 * Exchanges the code for tokens. RFC 6749 section 4.1.3, with the verifier of RFC 7636. Throws
 * `provider-refused` or `provider-unavailable`; neither holds anything of the provider's answer.
 */
export const exchangeCode = async (
  { parameters, state, codeVerifier, redirectUri, provider, client, endpoints }: ExchangeRequest,
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
    const answer = await standardAnswer(response, dialectOf(provider), endpoints)
    return grantOf(await processAuthorizationCodeResponse(server, wireClient, answer))
  } catch (error) {
    const { host } = new URL(server.token_endpoint)
    throw providerError(error, `the login failed at ${host}`, { provider, client, redirectUri })
  }
}

/** Without a known issuer there is nothing to hold `iss` against; the library would refuse any. */
const checkable = (parameters: URLSearchParams, { isIssuerKnown }: Endpoints): URLSearchParams => {
  const copy = new URLSearchParams(parameters)
  if (!isIssuerKnown) copy.delete('iss')
  return copy
}
